# SPDX-License-Identifier: Apache-2.0
"""The dialect T of tensor programs. Every name of it that a script uses is an attribute here too, so
that Python can evaluate annotations and functions that give expressions."""
import importlib
import sys

from pleat.script import _parse
from pleat.script._values import Value


def _decorated(function, frame):
    if _parse.is_in_module_class(frame):
        return function
    made = importlib.import_module("pleat.ir._module")
    return made.only_function(_parse.parse_definition(function, frame, "tir.prim_func"))


def prim_func(function=None, private=False, check_well_formed=True, s_tir=False):
    """Makes a pleat.tir.PrimFunc of a Python function: its source text is a tensor program."""
    frame = sys._getframe(1)
    if function is not None:
        return _decorated(function, frame)
    return lambda function: _decorated(function, frame)


def macro(*args, hygienic=True):
    """Makes a macro of a Python function: a call of it in a script stands for its statements. With
    hygienic=False it sees the names of the script where it is used."""
    return _parse.make_macro(args, hygienic, sys._getframe(1))


inline = macro


class _IntegerType(Value):
    """An integer type, such as T.int64, whose call without a value is a new variable."""

    def __call__(self, *args, **keywords):
        if args or keywords:
            return super().__call__(*args, **keywords)
        return importlib.import_module("pleat.tir.nodes").Var("n", self.__name__)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return (_IntegerType if name in ("int32", "int64") else Value)(f"T.{name}")
