# SPDX-License-Identifier: Apache-2.0
"""The dialect I of modules."""
import importlib
import sys

from pleat.script import _parse
from pleat.script._values import Value


def _decorated(cls, frame):
    made = importlib.import_module("pleat.ir._module")
    return made.IRModule(handle=_parse.parse_definition(cls, frame, "ir.ir_module"))


def ir_module(cls=None, check_well_formed=True, s_tir=False):
    """Makes a pleat.IRModule of a class: its source text is a module of functions."""
    frame = sys._getframe(1)
    if cls is not None:
        return _decorated(cls, frame)
    return lambda cls: _decorated(cls, frame)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Value(f"I.{name}")
