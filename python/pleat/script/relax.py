# SPDX-License-Identifier: Apache-2.0
"""The dialect R of graph functions."""
import importlib
import sys

from pleat.script import _parse
from pleat.script._values import Value


# The names that are no operators, beside the types.
_NO_OPERATORS = {"const", "dataflow", "dist", "dtype", "emit_te", "func_attr", "match_cast", "output", "prim_value",
                 "shape", "str", "tuple"}


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


def rewriter(cls):
    """Makes a PatternMatchingRewriter of a class with the functions `pattern` and `replacement`."""
    handle = _parse.parse_definition(cls, sys._getframe(1), "ir.ir_module", replaces=True)
    module = importlib.import_module("pleat.ir._module").IRModule(handle=handle)
    return importlib.import_module("pleat.relax.dpl").PatternMatchingRewriter.from_module(module)


def macro(*args, hygienic=True):
    """Makes a macro of a Python function: `y = name(x)` in a graph function stands for its statements and the
    value that it returns. With hygienic=False it sees the names of the graph function where it is used."""
    return _parse.make_macro(args, hygienic, sys._getframe(1))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "Tensor":
        return importlib.import_module("pleat.relax.expr").TensorMaker()
    if name in _NO_OPERATORS or not name[0].islower():
        return Value(f"R.{name}")
    return importlib.import_module("pleat.relax.op").Operator(f"R.{name}")
