# SPDX-License-Identifier: Apache-2.0
"""Matrix products as external code of tensor expressions, with TVM's names. NumPy computes them."""
from pleat import te
from pleat.registry import register_func


def _turned(array, turns):
    return array.swapaxes(-1, -2) if turns else array


def _matmul(a, b, c, transa, transb):
    c[...] = _turned(a, transa) @ _turned(b, transb)


register_func("tvm.contrib.cblas.matmul", _matmul, override=True)
register_func("tvm.contrib.cblas.batch_matmul", _matmul, override=True)


def _product(function, lhs, rhs, transa, transb, options):
    from pleat.tir.op import call_packed
    rows = lhs.shape[-1] if transa else lhs.shape[-2]
    columns = rhs.shape[-2] if transb else rhs.shape[-1]
    batch = [b if repr(a) == "1" else a for a, b in zip(lhs.shape[:-2], rhs.shape[:-2])]
    return te.extern((*batch, rows, columns), [lhs, rhs],
                     lambda ins, outs: call_packed(function, *ins, *outs, transa, transb),
                     **{"name": "C", **options})


def matmul(lhs, rhs, transa=False, transb=False, **options):
    """The product of two matrices, or of their transposes. The options are those of te.extern."""
    return _product("tvm.contrib.cblas.matmul", lhs, rhs, transa, transb, options)


def batch_matmul(lhs, rhs, transa=False, transb=False, iterative=False, **options):
    """The products of the matrices of two batches. `iterative` says how BLAS is called in TVM, and changes
    nothing."""
    return _product("tvm.contrib.cblas.batch_matmul", lhs, rhs, transa, transb, options)
