# SPDX-License-Identifier: Apache-2.0
"""Passes over modules and nodes with TVM's names, which need no pass of the library."""
import enum

from pleat._library import PleatError
from pleat.ir.transform import Pass, _on_functions, run_passes
from pleat.target import Target
from pleat.tir import analysis
from pleat.tir.nodes import KINDS, const
from pleat.tir.stmt_functor import ir_transform, substitute

__all__ = ["AnnotateEntryFunc", "Apply", "BindTarget", "CanonicalizeLoop", "ConvertForLoopsToSerial",
           "Filter", "HoistedConditionals", "HoistedLetBindings", "SkipAssert", "SplitHostDevice", "VerifyMemory"]


class HoistedConditionals(enum.Flag):
    """The conditions that HoistExpression moves."""
    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4  # parts of a conjunction
    UsingBlockVar = 8      # on threads, and out of loops over threads
    All = IfElseStmt | IfElseExpr | BooleanExpression | UsingBlockVar


class HoistedLetBindings(enum.Flag):
    """The values that HoistExpression moves; those inside of expressions (LetExpr) stay in any case."""
    Never = 0
    RequiredByConditional = 1
    Bind = 2
    LetStmt = 2
    LetExpr = 4
    All = RequiredByConditional | LetStmt | LetExpr


def _on_each(name, function):
    return Pass(name, _on_functions(lambda one, module, context: function(one)))


def Apply(ftransform):
    """Replaces each tensor program by ftransform(program)."""
    return _on_each("Apply", ftransform)


def Filter(fcond):
    """Keeps the tensor programs for which fcond(program) is true."""
    def transform(module, _):
        from pleat.tir import PrimFunc
        kept = module.clone()
        for name, one in module.items():
            if isinstance(one, PrimFunc) and not fcond(one):
                del kept[name]
        return kept
    return Pass("Filter", transform)


def SplitHostDevice():
    """Makes functions of loops over threads, which the host calls (src/passes/split_host_device.c)."""
    return Pass("SplitHostDevice", lambda module, _: run_passes(module, "SplitHostDevice"))


def BindTarget(target):
    """Gives each program without one the attribute "target": one of the host its host, and a private one
    the target without its host."""
    target = Target(target)

    def bound(function):
        attrs = function.attrs
        if "target" in attrs:
            return function
        if attrs.get("tir.is_host_func") or attrs.get("tirx.is_host_func"):
            name = next(key for key in ("tir.is_host_func", "tirx.is_host_func") if key in attrs)
            return function.without_attr(name).with_attr("target", target.host or target)
        own = Target(target.options) if "private" in attrs else target
        return function.with_attr("target", own)
    return _on_each("BindTarget", bound)


def AnnotateEntryFunc():
    """Gives the only program of a module, or its only one that is not private, the attribute
    "tir.is_entry_func"."""
    def transform(module, _):
        from pleat.tir import PrimFunc
        programs = {name: one for name, one in module.items() if isinstance(one, PrimFunc)}
        public = [name for name, one in programs.items() if "private" not in one.attrs]
        names = list(programs) if len(programs) == 1 else public
        if len(names) != 1:
            return module
        result = module.clone()
        result[names[0]] = programs[names[0]].with_attr("tir.is_entry_func", True)
        return result
    return Pass("AnnotateEntryFunc", transform)


def _on_nodes(name, kind, change):
    """A pass that replaces the nodes of one kind, from the inside out."""
    def changed(function):
        body = ir_transform(function.body, None, change, [f"tir.{kind}"])
        return function if body is function.body else function.with_body(body)
    return lambda: _on_each(name, changed)


def _without_assert(node):
    return node.body if node.body is not None else KINDS["Evaluate"](const(0))


def _serial(node):
    return node.with_fields(kind=0) if int(node.kind) == 1 else node


def _from_zero(node):
    if isinstance(node.min, KINDS["IntImm"]) and node.min.value == 0:
        return node
    moved = substitute(node.body, {node.loop_var: node.loop_var + node.min})
    return node.with_fields(min=const(0, node.loop_var.dtype), body=moved)


SkipAssert = _on_nodes("SkipAssert", "AssertStmt", _without_assert)
SkipAssert.__doc__ = "Leaves out all asserts."
ConvertForLoopsToSerial = _on_nodes("ConvertForLoopsToSerial", "For", _serial)
ConvertForLoopsToSerial.__doc__ = "Makes parallel loops serial."
CanonicalizeLoop = _on_nodes("CanonicalizeLoop", "For", _from_zero)
CanonicalizeLoop.__doc__ = "Makes loops begin at 0."


def VerifyMemory():
    """Raises PleatError for a program that verify_memory refuses."""
    def checked(function):
        if not analysis.verify_memory(function):
            raise PleatError(f"memory verification of {function.__name__} failed: its parameters are accessed "
                             "outside of loops over threads; bind such loops to threads of the device")
        return function
    return _on_each("VerifyMemory", checked)
