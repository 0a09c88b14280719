# SPDX-License-Identifier: Apache-2.0
"""Modules, and their comparison, hashes and files, with TVM's names."""
import importlib

from pleat.ir import base, module, op, transform
from pleat.ir._module import (BaseFunc, GlobalVar, IRModule, Op, StructuralDifference,
                              assert_structural_equal, load_json, save_json, structural_equal,
                              structural_hash)
from pleat.ir.op import register_intrin_lowering, register_op_attr

Array, Map = list, dict  # what fields of nodes are; TVM has classes of its own

__all__ = ["Array", "Map", "base", "BaseFunc", "GlobalVar", "IRModule", "Op", "StructuralDifference", "assert_structural_equal", "is_prim_expr", "load_json",
           "module", "op", "register_intrin_lowering", "register_op_attr", "save_json", "structural_equal", "structural_hash", "transform"]

_NODES = {"Call", "Expr", "FloatImm", "IntImm", "Node", "PointerType", "PrimExpr", "PrimType", "Range",
          "Var"}  # of pleat.tir.nodes


def __dir__():
    return sorted({*__all__, *_NODES, "instrument"})


def is_prim_expr(value):
    """Is it the node of an expression?"""
    return isinstance(value, importlib.import_module("pleat.tir.nodes").PrimExpr)


def __getattr__(name):
    if name == "instrument":
        return importlib.import_module("pleat.ir.instrument")
    if name in _NODES:
        return getattr(importlib.import_module("pleat.tir.nodes"), name)
    raise AttributeError(f"module 'pleat.ir' has no attribute {name!r}")
