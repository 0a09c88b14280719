# SPDX-License-Identifier: Apache-2.0
"""The methods of buffers that make accesses of their elements, and pointers to them."""
import functools
import operator

from pleat.tir.nodes import KINDS, const, lanes_of, with_lanes
from pleat.tir.op import as_expression, tvm_access_ptr

_MASKS = {"r": 1, "w": 2}


def _simplified(expression):
    from pleat.arith import Analyzer
    return Analyzer().simplify(expression)


def _product(factors, dtype):
    return functools.reduce(operator.mul, factors, const(1, dtype))


def _index_type(buffer):
    return buffer.shape[0].dtype if buffer.shape else "int32"


def _strides(buffer):
    """The elements between neighbours along each axis."""
    if buffer.strides:
        return buffer.strides
    return [_product(buffer.shape[i + 1:], _index_type(buffer)) for i in range(len(buffer.shape))]


def _begin(buffer, begin):
    """The indices of an access, as expressions."""
    begin = [as_expression(one) for one in (begin if isinstance(begin, (list, tuple)) else [begin])]
    if len(begin) != len(buffer.shape):
        raise ValueError(f"{buffer.name} has {len(buffer.shape)} axes, and {len(begin)} indices are given")
    return begin


def _as_vector(begin, lanes):
    return begin if lanes == 1 else [*begin[:-1], KINDS["Ramp"](begin[-1], const(1, begin[-1].dtype), lanes)]


def _refuse_mask(predicate):
    if predicate is not None:
        raise ValueError("the predicate of an access is T.if_then_else of the lanes, or a condition around a store")


def vload(buffer, begin, dtype=None, predicate=None):
    """The element at some indices; with a type of several lanes, as many elements from there on."""
    _refuse_mask(predicate)
    lanes, own = lanes_of(dtype or buffer.dtype), lanes_of(buffer.dtype)
    if dtype and with_lanes(dtype, 1) != with_lanes(buffer.dtype, 1) or lanes % own:
        raise TypeError(f"{buffer.name} has elements of {buffer.dtype}, which are not loaded as {dtype}")
    return KINDS["BufferLoad"](buffer, _as_vector(_begin(buffer, begin), lanes // own))


def vstore(buffer, begin, value, predicate=None):
    """The statement that stores a value, whose lanes are the elements from some indices on."""
    _refuse_mask(predicate)
    value = as_expression(value, buffer.dtype)
    lanes = lanes_of(value.dtype) // lanes_of(buffer.dtype)
    return KINDS["BufferStore"](buffer, value, _as_vector(_begin(buffer, begin), lanes))


def offset_of(buffer, indices):
    """The index of an element in the flat memory, as a list of one expression."""
    if buffer.axis_separators:
        raise ValueError(f"{buffer.name} has axis separators: its memory has several axes")
    terms = [index * stride for index, stride in zip(_begin(buffer, indices), _strides(buffer))]
    offset = const(0, _index_type(buffer)) if buffer.elem_offset is None else buffer.elem_offset
    return [_simplified(functools.reduce(operator.add, terms, offset))]


def flattened(buffer):
    """A buffer of one axis over the same memory; the buffer itself where it is one."""
    if len(buffer.shape) == 1 and not buffer.strides:
        return buffer
    if buffer.axis_separators:
        raise ValueError(f"{buffer.name} has axis separators: its memory has several axes")
    return buffer.with_fields(shape=[_simplified(_extent(buffer))], strides=[])


def _extent(buffer):
    """The elements from the first one on that the buffer spans, as TVM counts them."""
    return buffer.strides[0] * buffer.shape[0] if buffer.strides else _product(buffer.shape, _index_type(buffer))


def access_ptr(buffer, access_mask, ptr_type="handle", content_lanes=1, offset=0, extent=None):
    """A pointer to the elements from an offset on, for a function outside; access_mask: "r", "w" or "rw", or the
    sum of 1 for reading and 2 for writing."""
    if ptr_type != "handle":
        raise ValueError("a pointer to elements of another type than the buffer's is not made")
    if isinstance(access_mask, str):
        if not access_mask or set(access_mask) - set(_MASKS):
            raise ValueError(f'expected "r", "w" or "rw", saw {access_mask!r}')
        access_mask = sum(_MASKS[letter] for letter in set(access_mask))
    dtype, index = with_lanes(buffer.dtype, content_lanes), _index_type(buffer)
    offset = as_expression(offset, index)
    first = offset if buffer.elem_offset is None else buffer.elem_offset + offset
    extent = _extent(buffer) - offset if extent is None else as_expression(extent, index)
    if content_lanes > 1:
        first, extent = first // content_lanes, extent // content_lanes
    return tvm_access_ptr(dtype, buffer.data, _simplified(first), _simplified(extent), access_mask)
