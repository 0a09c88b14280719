# SPDX-License-Identifier: Apache-2.0
"""Operators that choose elements by tensors of indices and lengths."""
from pleat import te, tir
from pleat.topi._shapes import one_axis


def gather(data, axis, indices):
    """The elements whose index of one axis a tensor of the same number of axes tells."""
    axis = one_axis(axis, data.ndim)
    if indices.ndim != data.ndim:
        raise ValueError(f"the indices have {indices.ndim} axes, and the tensor {data.ndim}")
    return te.compute(indices.shape, lambda *ax: data(*ax[:axis], indices(*ax), *ax[axis + 1:]), name="T_gather",
                      tag="injective")


def gather_nd(a, indices):
    """The elements, or parts, whose first indices stand along the first axis of a tensor."""
    count = indices.shape[0]
    if not isinstance(count, int) or not 0 < count <= a.ndim:
        raise ValueError(f"the first axis of the indices has extent {count}, expected 1 to {a.ndim}")
    rest = indices.ndim - 1
    return te.compute([*indices.shape[1:], *a.shape[count:]],
                      lambda *ax: a(*(indices(k, *ax[:rest]) for k in range(count)), *ax[rest:]),
                      name="T_gather_nd", tag="injective")


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """A new axis of extent `depth`, along which the element at the index is on_value and the others off_value."""
    axis = indices.ndim if axis == -1 else axis
    if not 0 <= axis <= indices.ndim:
        raise ValueError(f"axis {axis} is not one of a tensor with {indices.ndim + 1} axes")
    shape = [*indices.shape[:axis], depth, *indices.shape[axis:]]
    return te.compute(shape, lambda *ax: tir.Select(indices(*ax[:axis], *ax[axis + 1:]) == ax[axis],
                                                    tir.const(on_value, dtype), tir.const(off_value, dtype)),
                      name="T_one_hot", tag="injective")


def sequence_mask(data, valid_length, mask_value=0, axis=0):
    """The sequences of a batch along axis 0 or 1, the other of which is the batch, with mask_value from the length
    of each on."""
    if axis not in (0, 1) or data.ndim < 2 or valid_length.ndim != 1:
        raise ValueError(f"axis {axis} of {data.ndim} axes, and {valid_length.ndim} axes of lengths: expected axis 0 "
                         "or 1 of at least two, and one axis of lengths")
    return te.compute(data.shape, lambda *ax: tir.if_then_else(
        ax[axis] >= valid_length(ax[1 - axis]), tir.const(mask_value, data.dtype), data(*ax)),
        name="T_sequence_mask", tag="injective")


def reverse_sequence(a, seq_lengths, seq_axis=1, batch_axis=0):
    """The first elements of each sequence of a batch, as many as its length tells, in reverse order."""
    seq_axis, batch_axis = one_axis(seq_axis, a.ndim), one_axis(batch_axis, a.ndim)

    def element(*ax):
        length, at = seq_lengths(ax[batch_axis]), ax[seq_axis]
        source = tir.if_then_else(tir.Or(length <= 1, length <= at), at, length - 1 - at)
        return a(*ax[:seq_axis], source, *ax[seq_axis + 1:])
    return te.compute(a.shape, element, name="T_reverse_sequence", tag="injective")


def trilu(data, k, upper):
    """The upper, or else lower, triangle of the last two axes with diagonal number k; other elements are 0."""
    if data.ndim < 2:
        raise ValueError("a triangle is of at least two axes")

    def element(*ax):
        row, column = ax[-2:]
        inside = row <= column - k if upper else row >= column - k
        return tir.Select(inside, data(*ax), tir.const(0, data.dtype))
    return te.compute(data.shape, element, name="T_trilu", tag="injective")


def meshgrid(a_tuple, indexing):
    """For each of the tensors of one axis, its elements along that axis of the grid of all. indexing: "ij", or "xy"
    with the first two axes swapped"""
    order = list(range(len(a_tuple)))
    if indexing not in ("ij", "xy"):
        raise ValueError(f"the indexing is {indexing!r}, expected ij or xy")
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = [a_tuple[k].shape[0] if a_tuple[k].ndim else 1 for k in order]

    def spread(a, at):
        return te.compute(shape, lambda *ax: a(ax[at]) if a.ndim else a(), name="T_meshgrid", tag="injective")
    return [spread(a, order.index(k)) for k, a in enumerate(a_tuple)]
