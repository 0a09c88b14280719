# SPDX-License-Identifier: Apache-2.0
"""The dialect R of graph functions."""
import importlib
import sys

from pleat.script import _parse
from pleat.script._values import Value


def _decorated(function, frame):
    if _parse.is_in_module_class(frame):
        return function
    made = importlib.import_module("pleat.ir._module")
    return made.only_function(_parse.parse_definition(function, frame, "relax.function"))


def function(function=None, pure=True, private=False, check_well_formed=True):
    """Makes a pleat.relax.Function of a Python function: its source text is a graph."""
    frame = sys._getframe(1)
    if function is not None:
        return _decorated(function, frame)
    return lambda function: _decorated(function, frame)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "Tensor":
        return importlib.import_module("pleat.relax.expr").TensorMaker()
    return Value(f"R.{name}")
