# SPDX-License-Identifier: Apache-2.0
"""Graph functions, their passes and analyses, with TVM's names. The parts that build and run graphs are
imported when they are first used."""
import importlib

from pleat.ir._module import Function
from pleat.relax import analysis, transform

__all__ = ["Function", "analysis", "transform"]

_MODULES = {"pleat.relax.block_builder": ("BlockBuilder",),
            "pleat.relax.expr": ("Call", "Expr", "GlobalVar", "TensorStructInfo", "TensorType", "Tuple", "Var",
                                 "call_dps_packed", "call_tir", "const"),
            "pleat.relax.nodes": ("BindingBlock", "Constant", "DataTypeImm", "DataflowBlock", "DataflowVar",
                                  "ExternFunc", "FuncStructInfo", "If", "MatchCast", "ObjectStructInfo",
                                  "PrimStructInfo", "PrimValue", "SeqExpr", "ShapeExpr", "ShapeStructInfo",
                                  "StringImm", "TupleGetItem", "TupleStructInfo", "VarBinding"),
            "pleat.relax.vm": ("Executable", "VMExecutable", "VirtualMachine", "build", "get_pipeline")}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}


_PARTS = ("backend", "block_builder", "dpl", "expr", "expr_functor", "frontend", "nodes", "op", "vm")


def __dir__():
    return sorted({*__all__, *_NAMES, *_PARTS})


def __getattr__(name):
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _PARTS:
        return importlib.import_module(f"pleat.relax.{name}")
    raise AttributeError(f"module 'pleat.relax' has no attribute {name!r}")
