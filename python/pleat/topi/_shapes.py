# SPDX-License-Identifier: Apache-2.0
"""Shapes and axes: what the definitions of operators have in common."""
from pleat import tir
from pleat.te.tensor import Tensor, as_extent
from pleat.tir.analysis import expr_deep_equal


def is_tensor(value):
    return isinstance(value, Tensor)


def axes_of(axis, rank):
    """The numbers of axes, which may be negative, a single one, or None for all of them: ascending."""
    if axis is None:
        return list(range(rank))
    axes = [int(a) for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    for a in axes:
        if not -rank <= a < rank:
            raise ValueError(f"axis {a} is not one of a tensor with {rank} axes")
    return sorted({a % rank for a in axes})


def one_axis(axis, rank):
    return axes_of([axis], rank)[0]


def pair(value, count=2):
    """A number, or one for each axis, as a list."""
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) == 1:
        values *= count
    if len(values) != count:
        raise ValueError(f"expected a number or {count} of them, not {value!r}")
    return [as_extent(v) for v in values]


def quotient(a, b):
    """a // b, as a number where both are."""
    return a // b if isinstance(a, int) and isinstance(b, int) else tir.floordiv(a, b)


def product(extents):
    total = 1
    for extent in extents:
        total = total * extent
    return total


def same_extent(a, b):
    return a is b or (a == b if isinstance(a, int) and isinstance(b, int) else
                      not isinstance(a, int) and not isinstance(b, int) and expr_deep_equal(a, b))


def broadcast_shape(shapes):
    """The shape of the results of an elementwise operation on tensors of these shapes."""
    rank = max(map(len, shapes))
    result = []
    for k in range(rank):
        extents = [s[k - rank + len(s)] for s in shapes if k - rank + len(s) >= 0]
        others = [e for e in extents if not (isinstance(e, int) and e == 1)]
        for other in others[1:]:
            if not same_extent(others[0], other):
                raise ValueError(f"the shapes {', '.join(str(list(s)) for s in shapes)} do not broadcast")
        result.append(others[0] if others else 1)
    return result


def broadcast_element(value, indices):
    """The element of a tensor for an index of the shape that it is broadcast to."""
    if not is_tensor(value):
        return value
    own = indices[len(indices) - value.ndim:]
    return value(*(0 if isinstance(e, int) and e == 1 else i for e, i in zip(value.shape, own)))


def flat_index(indices, shape):
    """The number of an element in row-major order."""
    index = 0
    for i, extent in zip(indices, shape):
        index = i if isinstance(index, int) and index == 0 else index * extent + i
    return index


def from_flat(index, shape):
    """The indices of the element with this number."""
    indices = []
    for k in range(len(shape) - 1, -1, -1):
        indices.append(index if k == 0 else tir.floormod(index, shape[k]))
        index = tir.floordiv(index, shape[k])
    return indices[::-1]

