# SPDX-License-Identifier: Apache-2.0
"""Modules, and their comparison, hashes and files, with TVM's names."""
from pleat.ir import transform
from pleat.ir._module import (BaseFunc, GlobalVar, IRModule, Op, StructuralDifference,
                              assert_structural_equal, load_json, save_json, structural_equal,
                              structural_hash)

__all__ = ["BaseFunc", "GlobalVar", "IRModule", "Op", "StructuralDifference", "assert_structural_equal", "load_json",
           "save_json", "structural_equal", "structural_hash", "transform"]
