# SPDX-License-Identifier: Apache-2.0
"""The dialect T of TVM since 2026. It differs from pleat.script.tir in one rule: `x = value` makes or
sets a variable, and `x: T.let = value` names a value."""
from pleat.script import tir
from pleat.script.tir import inline, macro, prim_func

__all__ = ["inline", "macro", "prim_func"]


def __getattr__(name):
    return getattr(tir, name)
