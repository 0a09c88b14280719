# SPDX-License-Identifier: Apache-2.0
"""Tensor programs and index maps, with TVM's names. The parts that need the library are imported
when they are first used."""
import functools
import importlib
import sys

from pleat import _expression
from pleat.tir.index_map import IndexMap

__all__ = ["IndexMap", "PrimFunc", "Schedule", "Select", "analysis", "max", "min", "nodes",
           "stmt_functor", "transform"]

_FUNCTIONS = {"const", "decl_buffer", "stmt_list"}  # of nodes.py
MODULES = ("analysis", "expr_functor", "functor", "index_map", "ir_builder", "nodes", "op", "schedule", "stmt_functor", "tensor_intrin",
           "transform")


def _chosen(name, of_indices, arguments):
    """The function of this name of index maps; with a node among its arguments, that of pleat.tir.op."""
    nodes = sys.modules.get("pleat.tir.nodes")
    if nodes and any(isinstance(a, nodes.Node) or hasattr(a, "as_expression") for a in arguments):
        return getattr(importlib.import_module("pleat.tir.op"), name)(*arguments)
    return of_indices(*arguments)


def _chooser(name, of_indices):
    def choose(*arguments):
        return _chosen(name, of_indices, arguments)
    choose.__name__, choose.__doc__ = name, of_indices.__doc__
    return choose


class _Choices(type):
    """The class of Select: nodes of this kind are its instances."""

    def __instancecheck__(cls, one):
        nodes = sys.modules.get("pleat.tir.nodes")
        return bool(nodes) and isinstance(one, nodes.KINDS["Select"])

    def __call__(cls, *arguments):
        return _chosen("Select", _expression.select, arguments)


class Select(metaclass=_Choices):
    __doc__ = _expression.select.__doc__


min = _chooser("min", _expression.minimum)  # noqa: A001
max = _chooser("max", _expression.maximum)  # noqa: A001


# Names that are imported when they are first used, and their modules.
_LAZY = {"PrimFunc": "pleat.ir._module", "build": "pleat.runtime", "CallEffectKind": "pleat.ir.op",
         **dict.fromkeys(("BlockScope", "Schedule", "ScheduleError", "ScheduleState", "StmtSRef",
                          "TensorIntrin"), "pleat.tir.schedule"),
         **dict.fromkeys(("PyStmtExprMutator", "PyStmtExprVisitor"), "pleat.tir.functor"),
         **dict.fromkeys(("EqualOp", "NotEqualOp"), "pleat.tir.nodes"),
         **dict.fromkeys(("Reduce", "comm_reducer", "sum"), "pleat.te"), "ProducerLoad": "pleat.te.tensor"}
_SINGLE_MODULES = ("buffer", "expr", "function", "stmt")  # of TVM, whose names all are names of this one


def __dir__():
    nodes, functions = (importlib.import_module(f"pleat.tir.{name}") for name in ("nodes", "op"))
    return sorted({*__all__, *MODULES, *_LAZY, *_FUNCTIONS, "SizeVar", *nodes.KINDS, *functions.__all__})


def __getattr__(name):
    if name in MODULES:
        return importlib.import_module(f"pleat.tir.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _SINGLE_MODULES:
        return sys.modules[__name__]
    if name == "SizeVar":
        return importlib.import_module("pleat.tir.nodes").Var
    if not name.startswith("_"):
        nodes = importlib.import_module("pleat.tir.nodes")
        if name in nodes.KINDS or name in _FUNCTIONS:
            return nodes.KINDS.get(name) or getattr(nodes, name)
        functions = importlib.import_module("pleat.tir.op")
        if name in functions.__all__:
            return getattr(functions, name)
    raise AttributeError(f"module 'pleat.tir' has no attribute {name!r}")


def _add_single_modules(package):
    """Makes modules of TVM's package of which all names are names of this one this package itself."""
    for module in _SINGLE_MODULES:
        sys.modules[f"{package}.{module}"] = sys.modules[__name__]


_add_single_modules(__name__)


def _as_package(name):
    """Makes the modules here those of a package with another name too; returns its __getattr__ and __dir__."""
    _add_single_modules(name)
    for module in MODULES:
        sys.modules[f"{name}.{module}"] = importlib.import_module(f"pleat.tir.{module}")
    passes = importlib.import_module("pleat.tir.transform").of_dialect(name.rpartition(".")[2])
    sys.modules[f"{name}.transform"] = sys.modules[name].transform = passes
    return functools.partial(getattr, sys.modules[__name__]), __dir__
