# SPDX-License-Identifier: Apache-2.0
"""Reductions over axes of a tensor: all of them, or those given."""
from pleat import te, tir
from pleat.topi._shapes import axes_of, flat_index


def _reduced(x, axis, keepdims, reduce, name):
    """reduce(element, axes, index): a reduction of the elements, given as a function of their index."""
    axes = axes_of(axis, x.ndim)
    shape = [1 if k in axes else e for k, e in enumerate(x.shape) if keepdims or k not in axes]
    over = [te.reduce_axis((0, x.shape[k]), f"k{k}") for k in axes]

    def element(*ax):
        kept = iter(ax)
        places = {k: next(kept) for k in range(x.ndim) if keepdims or k not in axes}
        places.update(zip(axes, over))
        return reduce(x(*(places[k] for k in range(x.ndim))), over)
    if not shape:
        return te.compute((), lambda: element(), name=name, tag="comm_reduce")
    return te.compute(shape, lambda *ax: element(*ax), name=name, tag="comm_reduce")


def _operator(reduce, name):
    def operator(data, axis=None, keepdims=False):
        if not axes_of(axis, data.ndim):
            return te.compute(data.shape, lambda *ax: data(*ax), name=f"{data.op.name}_red")
        return _reduced(data, axis, keepdims, reduce, f"{data.op.name}_red")
    operator.__name__ = operator.__qualname__ = name
    return operator


sum = _operator(lambda e, axes: te.sum(e, axis=axes), "sum")  # noqa: A001
max = _operator(lambda e, axes: te.max(e, axis=axes), "max")  # noqa: A001
min = _operator(lambda e, axes: te.min(e, axis=axes), "min")  # noqa: A001
_product = te.comm_reducer(lambda a, b: a * b, lambda t: tir.const(1, t), name="prod")
_all = te.comm_reducer(lambda a, b: tir.all(a, b), lambda t: tir.const(True, "bool"), name="all")
_any = te.comm_reducer(lambda a, b: tir.any(a, b), lambda t: tir.const(False, "bool"), name="any")
prod = _operator(lambda e, axes: _product(e, axis=axes), "prod")
all = _operator(lambda e, axes: _all(e, axis=axes), "all")  # noqa: A001
any = _operator(lambda e, axes: _any(e, axis=axes), "any")  # noqa: A001


def _arg(better, worst, name):
    """The number of the best element; of equal ones the first, or with select_last_index the last."""
    def operator(data, axis=None, keepdims=False, select_last_index=False):
        def combine(lhs, rhs):
            equal = tir.EQ(lhs[1], rhs[1])
            first = lhs[0] >= rhs[0] if select_last_index else tir.any(lhs[0] <= rhs[0], rhs[0] < 0)
            keep = tir.any(better(lhs[1], rhs[1]), tir.all(equal, tir.all(lhs[0] >= 0, first)))
            return tir.Select(keep, lhs[0], rhs[0]), tir.Select(keep, lhs[1], rhs[1])

        reducer = te.comm_reducer(combine, lambda i, t: (tir.const(-1, i), worst(t)), name=name)
        axes = axes_of(axis, data.ndim)
        sizes = [data.shape[k] for k in axes]
        pairs = _reduced(data, axis, keepdims,
                         lambda e, over: reducer((flat_index(over, sizes), e), axis=over),
                         f"{data.op.name}_red_temp")
        return te.compute(pairs[0].shape, lambda *i: pairs[0](*i), name=f"{data.op.name}_red",
                          tag="comm_reduce_idx")
    operator.__name__ = operator.__qualname__ = name
    return operator


argmax = _arg(lambda a, b: a > b, te.min_value, "argmax")
argmin = _arg(lambda a, b: a < b, te.max_value, "argmin")
