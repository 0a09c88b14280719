# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements, and products of matrices."""
from pleat import te, tir
from pleat.te.tensor import as_extent
from pleat.topi._shapes import (broadcast_element, broadcast_shape, flat_index, from_flat, one_axis, pair,
                                product, quotient)


def transpose(a, axes=None):
    """The axes in another order; None reverses them."""
    axes = [one_axis(k, a.ndim) for k in (range(a.ndim - 1, -1, -1) if axes is None else axes)]
    if sorted(axes) != list(range(a.ndim)):
        raise ValueError(f"{axes} is no order of {a.ndim} axes")
    return te.compute([a.shape[k] for k in axes], lambda *ax: a(*(ax[axes.index(k)] for k in range(a.ndim))),
                      name="T_transpose", tag="injective")


def reshape(a, newshape):
    """The elements in row-major order with another shape; an extent of -1 follows from the others."""
    shape = [as_extent(e) for e in newshape]
    free = [k for k, e in enumerate(shape) if isinstance(e, int) and e == -1]
    if len(free) > 1:
        raise ValueError("more than one extent of the new shape is -1")
    if free:
        others = product(e for k, e in enumerate(shape) if k not in free)
        shape[free[0]] = quotient(product(a.shape), others)
    sizes = product(shape), product(a.shape)
    if all(isinstance(s, int) for s in sizes) and sizes[0] != sizes[1]:
        raise ValueError(f"a tensor of {sizes[1]} elements has not the shape {shape}")
    return te.compute(shape, lambda *ax: a(*from_flat(flat_index(ax, shape), a.shape)), name="T_reshape",
                      tag="injective")


def expand_dims(a, axis, num_newaxis=1):
    """New axes of extent 1 in front of an axis."""
    axis = axis + a.ndim + 1 if axis < 0 else axis
    shape = [*a.shape[:axis], *[1] * num_newaxis, *a.shape[axis:]]
    return te.compute(shape, lambda *ax: a(*ax[:axis], *ax[axis + num_newaxis:]), name="T_expand_dims",
                      tag="broadcast")


def squeeze(a, axis=None):
    """The tensor without axes of extent 1: all of them, or those given."""
    given = [k for k, e in enumerate(a.shape) if isinstance(e, int) and e == 1] if axis is None else (
        [one_axis(k, a.ndim) for k in (axis if isinstance(axis, (list, tuple)) else [axis])])
    for k in given:
        if not (isinstance(a.shape[k], int) and a.shape[k] == 1):
            raise ValueError(f"axis {k} has extent {a.shape[k]}, not 1")
    shape = [e for k, e in enumerate(a.shape) if k not in given]

    def element(*ax):
        rest = iter(ax)
        return a(*(0 if k in given else next(rest) for k in range(a.ndim)))
    return te.compute(shape, element, name="T_squeeze", tag="injective")


def broadcast_to(data, shape):
    """The tensor repeated along axes of extent 1, and along new ones in front."""
    shape = [as_extent(e) for e in shape]
    if len(broadcast_shape([data.shape, shape])) != len(shape):
        raise ValueError(f"{list(data.shape)} has more axes than {shape}")
    return te.compute(shape, lambda *ax: broadcast_element(data, ax), name="T_broadcast_to",
                      tag="broadcast")


def concatenate(a_tuple, axis=0):
    """Tensors one behind the other along an axis."""
    tensors, axis = list(a_tuple), one_axis(axis, a_tuple[0].ndim)
    total = tensors[0].shape[axis]
    for t in tensors[1:]:
        total = total + t.shape[axis]
    shape = [*tensors[0].shape[:axis], total, *tensors[0].shape[axis + 1:]]

    def element(*ax):
        begins = [0]
        for t in tensors[:-1]:
            begins.append(begins[-1] + t.shape[axis])

        def part(k):
            return tensors[k](*ax[:axis], ax[axis] - begins[k] if k else ax[axis], *ax[axis + 1:])
        value = part(0)
        for k in range(1, len(tensors)):
            value = tir.if_then_else(ax[axis] >= begins[k], part(k), value)
        return value
    return te.compute(shape, element, name="T_concat", tag="injective")


def stack(tensors, axis=0):
    """Tensors of one shape as parts of a new axis."""
    axis = axis + tensors[0].ndim + 1 if axis < 0 else axis
    shape = [*tensors[0].shape[:axis], len(tensors), *tensors[0].shape[axis:]]

    def element(*ax):
        value = tensors[0](*ax[:axis], *ax[axis + 1:])
        for k in range(1, len(tensors)):
            value = tir.if_then_else(tir.EQ(ax[axis], k), tensors[k](*ax[:axis], *ax[axis + 1:]), value)
        return value
    return te.compute(shape, element, name="T_stack", tag="injective")


def split(ary, indices_or_sections, axis=0):
    """Parts of equal extent, or those between indices: a list of tensors."""
    axis = one_axis(axis, ary.ndim)
    extent = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        if not isinstance(extent, int) or extent % indices_or_sections:
            raise ValueError(f"an axis of extent {extent} has no {indices_or_sections} equal parts")
        step = extent // indices_or_sections
        begins = [k * step for k in range(indices_or_sections)]
    else:
        begins = [0, *indices_or_sections]
    ends = [*begins[1:], extent]

    def part(begin, end):
        shape = [*ary.shape[:axis], end - begin, *ary.shape[axis + 1:]]
        return te.compute(shape, lambda *ax: ary(*ax[:axis], ax[axis] + begin, *ax[axis + 1:]),
                          name="T_split_sections", tag="injective")
    return [part(begin, end) for begin, end in zip(begins, ends)]


def strided_slice(a, begin, end, strides=None, axes=None):
    """Every strides[k]-th element from begin[k] to before end[k] of each axis, as Python slices them."""
    axes = range(len(begin)) if axes is None else [one_axis(k, a.ndim) for k in axes]
    ranges = {k: range(a.shape[k]) for k in range(a.ndim) if isinstance(a.shape[k], int)}
    steps = pair(1 if strides is None else strides, len(begin))
    for k, first, last, step in zip(axes, begin, end, steps):
        if k not in ranges:
            raise ValueError(f"axis {k} has a free size, and cannot be sliced")
        ranges[k] = ranges[k][slice(first, last, step)]
    shape = [len(ranges[k]) if k in ranges else e for k, e in enumerate(a.shape)]

    def place(k, i):
        r = ranges.get(k, range(1))
        return i if (r.start, r.step) == (0, 1) else r.start + i * r.step
    return te.compute(shape, lambda *ax: a(*(place(k, i) for k, i in enumerate(ax))),
                      name="T_strided_slice", tag="injective")


def flip(a, axis=0):
    """The elements along an axis in reverse order."""
    axis = one_axis(axis, a.ndim)
    return te.compute(a.shape, lambda *ax: a(*ax[:axis], a.shape[axis] - ax[axis] - 1, *ax[axis + 1:]),
                      name="T_reverse_sequence", tag="injective")


def repeat(a, repeats, axis):
    """Each element so many times along an axis."""
    axis = one_axis(axis, a.ndim)
    shape = [*a.shape[:axis], a.shape[axis] * repeats, *a.shape[axis + 1:]]
    return te.compute(shape, lambda *ax: a(*ax[:axis], tir.floordiv(ax[axis], repeats), *ax[axis + 1:]),
                      name="T_repeat", tag="broadcast")


def tile(a, reps):
    """The tensor so many times along each axis."""
    reps = list(reps) if isinstance(reps, (list, tuple)) else [reps]
    rank = max(len(reps), a.ndim)
    reps = [1] * (rank - len(reps)) + reps
    own = [1] * (rank - a.ndim) + list(a.shape)
    shape = [e * r for e, r in zip(own, reps)]
    return te.compute(shape, lambda *ax: a(*(tir.floormod(i, e) for i, e in zip(ax[rank - a.ndim:], a.shape))),
                      name="T_tile", tag="broadcast")


def take(a, indices, axis=None, mode="fast"):
    """The elements, or with an axis the parts, that a tensor of indices names. mode: "clip" bounds
    the indices, "wrap" takes them modulo the extent; with "fast" a run refuses those outside"""
    if axis is None:
        a, axis = reshape(a, (-1,)), 0
    axis = one_axis(axis, a.ndim)
    extent = a.shape[axis]
    if mode not in ("clip", "wrap", "fast"):
        raise ValueError(f"the mode is {mode!r}, expected clip, wrap or fast")

    def inside(index):
        if mode == "clip":
            return tir.min(tir.max(index, 0), extent - 1)
        return tir.floormod(index, extent) if mode == "wrap" else index
    shape = [*a.shape[:axis], *indices.shape, *a.shape[axis + 1:]]
    end = axis + indices.ndim
    return te.compute(shape, lambda *ax: a(*ax[:axis], inside(indices(*ax[axis:end])), *ax[end:]),
                      name="T_take", tag="injective")


def arange(start, stop=None, step=1, dtype="float32"):
    """Numbers from start to before stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    count = max(-(-(stop - start) // step), 0)
    return te.compute((int(count),), lambda i: (start + step * i).astype(dtype), name="T_arange",
                      tag="injective")


def matmul(a, b, transp_a=False, transp_b=False):
    """The product of two matrices, each of which may be transposed before."""
    rows, inner = a.shape[::-1] if transp_a else a.shape
    columns = b.shape[0] if transp_b else b.shape[1]
    k = te.reduce_axis((0, inner), "k")
    return te.compute((rows, columns),
                      lambda i, j: te.sum((a(k, i) if transp_a else a(i, k)) * (b(j, k) if transp_b else b(k, j)),
                                          axis=k), name="T_matmul", tag="matmul")
