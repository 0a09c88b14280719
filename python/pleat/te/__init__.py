# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: tensors that are defined by what an element is, with TVM's names.

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    program = te.create_prim_func([A, B, C])

The parts are imported when they are first used."""
import importlib

from pleat._expression import AXIS_SEPARATOR

# The module of each name; those of the functions of expressions are in pleat.tir.op.
_MODULES = {
    "pleat.te.tensor": ("CommReducer", "ComputeOp", "ExternOp", "IterVar", "Operation",
                        "PlaceholderOp", "Reduce", "ScanOp", "Tensor", "TensorSlice", "comm_reducer",
                        "compute", "extern", "max", "min", "placeholder", "reduce_axis", "scan", "size_var",
                        "sum", "tag_scope", "thread_axis", "var"),
    "pleat.te.program": ("create_prim_func",),
    "pleat.te.schedule": ("Schedule", "Stage", "create_schedule"),
    "pleat.te.lowering": ("lower", "schedule_of"),
    "pleat.te.tensor_intrin": ("TensorIntrin", "decl_tensor_intrin"),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}
# Advice for names of TVM's that are absent.
_OTHERS = {
    "hybrid": "write a tensor program with @T.prim_func, or te.compute",
}
__all__ = ["AXIS_SEPARATOR", *_NAMES]  # noqa: PLE0604


def __dir__():
    return sorted({*__all__, *importlib.import_module("pleat.tir.op").__all__})


def __getattr__(name):
    if name == "schedule":
        return importlib.import_module("pleat.te.schedule")
    if not name.startswith("_"):
        module = importlib.import_module(_NAMES.get(name, "pleat.tir.op"))
        if name in _NAMES or name in module.__all__:
            return getattr(module, name)
    advice = f": {_OTHERS[name]}" if name in _OTHERS else ""
    raise AttributeError(f"module 'pleat.te' has no attribute {name!r}{advice}")
