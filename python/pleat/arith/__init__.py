# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of integer expressions, with TVM's names. The library proves and simplifies.

    analyzer = pleat.arith.Analyzer()
    analyzer.bind(i, pleat.ir.Range(0, 16))
    assert analyzer.can_prove((i * 4 + 3) // 4 < 16)

The parts are imported when they are first used."""
import importlib

_MODULES = {
    "pleat.arith.analyzer": ("Analyzer", "ConstIntBound", "ConstraintScope", "ModularSet",
                             "Extension", "ProofStrength"),
    "pleat.arith.int_set": ("IntSet", "IntervalSet", "estimate_region_lower_bound",
                            "estimate_region_strict_bound", "estimate_region_upper_bound"),
    "pleat.arith.iter_affine_map": ("IterMapExpr", "IterMapLevel", "IterMapResult", "IterMark",
                                    "IterSplitExpr", "IterSumExpr", "detect_iter_map",
                                    "iter_map_simplify", "normalize_iter_map_to_expr"),
    "pleat.arith.pattern": ("detect_linear_equation",),
}
_NAMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = list(_NAMES)  # noqa: PLE0605


def __dir__():
    return sorted({*__all__, *(name.rpartition(".")[2] for name in _MODULES)})


def __getattr__(name):
    if f"pleat.arith.{name}" in _MODULES:
        return importlib.import_module(f"pleat.arith.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'pleat.arith' has no attribute {name!r}")
