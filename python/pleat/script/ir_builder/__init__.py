# SPDX-License-Identifier: Apache-2.0
"""Builds programs by calls, with TVM's names:

    from pleat.script.ir_builder import IRBuilder, tir as T

    with IRBuilder() as builder:
        with T.prim_func():
            A = T.arg("A", T.Buffer((7,), "float32"))
            with T.serial(7) as i:
                T.buffer_store(A, A[i] + 1.0, [i])
    program = builder.get()

Each call becomes a line of TVMScript, and the library's parser reads the text."""
from pleat.script.ir_builder._builder import IRBuilder

__all__ = ["IRBuilder", "ir", "tir", "tirx"]


def __getattr__(name):
    if name not in ("ir", "tir", "tirx"):
        raise AttributeError(f"module 'pleat.script.ir_builder' has no attribute {name!r}")
    import importlib
    return importlib.import_module(f"pleat.script.ir_builder.{name}")
