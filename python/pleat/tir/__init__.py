# SPDX-License-Identifier: Apache-2.0
"""Tensor programs and index maps, with TVM's names. The parts that need the library are imported
when they are first used."""
import importlib

from pleat._expression import maximum as max, minimum as min, select as Select  # noqa: A004
from pleat.tir.index_map import IndexMap

__all__ = ["IndexMap", "PrimFunc", "Schedule", "Select", "analysis", "max", "min", "nodes",
           "stmt_functor", "transform"]

_FUNCTIONS = {"const", "decl_buffer"}  # of nodes.py
_MODULES = {"analysis", "nodes", "schedule", "stmt_functor", "transform"}


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"pleat.tir.{name}")
    if name == "PrimFunc":
        return importlib.import_module("pleat.ir._module").PrimFunc
    if name == "Schedule":
        return importlib.import_module("pleat.tir.schedule").Schedule
    if not name.startswith("_"):
        nodes = importlib.import_module("pleat.tir.nodes")
        if name in nodes.KINDS or name in _FUNCTIONS:
            return nodes.KINDS.get(name) or getattr(nodes, name)
    raise AttributeError(f"module 'pleat.tir' has no attribute {name!r}")
