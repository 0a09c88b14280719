# SPDX-License-Identifier: Apache-2.0
"""Rules that a module states by two functions of the same parameters, `pattern` and `replacement`."""
from pleat._library import PleatError
from pleat.ir._module import Function
from pleat.relax.dpl.pattern import (CallPattern, ExprPattern, PrimArrPattern, TupleGetItemPattern, TuplePattern,
                                     WildcardPattern)
from pleat.relax.expr import Call, GlobalVar, TensorStructInfo, Tuple, Var
from pleat.relax.nodes import If, LocalFunction, MatchCast, ShapeExpr, TupleGetItem
from pleat.script._values import text_of

_TYPES = ("out_sinfo", "out_ty", "sinfo_args", "ty_args")


def rule_of(module):
    """The pattern and the function for PatternMatchingRewriter of a module."""
    pattern, replacement = _function(module, "pattern"), _function(module, "replacement")
    signatures = [[text_of(one._struct_info) for one in function.params] for function in (pattern, replacement)]
    if signatures[0] != signatures[1]:
        raise ValueError("`pattern` and `replacement` must have the same signature, saw "
                         f"({', '.join(signatures[0])}) and ({', '.join(signatures[1])})")
    params = {one: _param_pattern(one) for one in pattern.params}
    values = _values(pattern)
    root = _Patterns({**params}, values).of(pattern.body.body)
    made = dict(zip(replacement.params, params.values()))
    new_values, result = _values(replacement), replacement.body.body
    return root, lambda _, found: _substituted(result, new_values, {one: found[p] for one, p in made.items()})


def _function(module, name):
    if name not in module:
        raise KeyError(f"a rewriter has a function `{name}`")
    if not isinstance(module[name], Function):
        raise TypeError(f"`{name}` of a rewriter is an @R.function")
    return module[name]


def _param_pattern(param):
    info = param._struct_info
    pattern = WildcardPattern()
    if isinstance(info, TensorStructInfo) and info.shape is None and not info.dtype:
        return pattern
    if any(not isinstance(extent, int) for extent in getattr(info, "shape", None) or ()):
        raise PleatError(f"the parameter '{param.name_hint}' of a rewriter has the shape {info}: expected extents "
                         "that are numbers, or none")
    return pattern.has_ty(info)


def _values(function):
    bindings = [one for block in function.body.blocks for one in block.bindings]
    for one in bindings:
        if isinstance(one, MatchCast) or isinstance(one.value, (If, LocalFunction)):
            raise PleatError(f"`{function.__name__}` of a rewriter has calls and tuples only, saw {one!r}")
    return {one.var: one.value for one in bindings}


class _Patterns:
    """Makes patterns of expressions; `known` has those of variables."""

    def __init__(self, known, values):
        self.known, self.values = known, values

    def of(self, expr):
        if isinstance(expr, Var):
            if expr not in self.known:
                self.known[expr] = self.of(self.values[expr])
            return self.known[expr]
        if isinstance(expr, Call):
            return self.call(expr)
        if isinstance(expr, (Tuple, tuple, list)):
            return TuplePattern([self.of(one) for one in (expr.fields if isinstance(expr, Tuple) else expr)])
        if isinstance(expr, TupleGetItem):
            return TupleGetItemPattern(self.of(expr.tuple_value), expr.index)
        return PrimArrPattern(expr.values) if isinstance(expr, ShapeExpr) else ExprPattern(expr)

    def call(self, call):
        if isinstance(call.op, GlobalVar):
            raise PleatError(f"a rewriter calls operators and functions outside, saw {call}")
        pattern = CallPattern(ExprPattern(call.op), list(map(self.of, call.args)), add_constraint=False)
        attrs = {key: value for key, value in call.attrs.items() if key not in _TYPES}
        return pattern.has_attr(attrs) if attrs else pattern


def _substituted(expr, values, given):
    """An expression with other ones in the place of variables, of which `given` keeps those of bindings too."""
    if isinstance(expr, Var):
        if expr not in given:
            given[expr] = _substituted(values[expr], values, given)
        return given[expr]
    if isinstance(expr, Call):
        return Call(expr.op, [_substituted(one, values, given) for one in expr.args], expr.attrs)
    if isinstance(expr, Tuple):
        return Tuple([_substituted(one, values, given) for one in expr.fields])
    if isinstance(expr, TupleGetItem):
        return TupleGetItem(_substituted(expr.tuple_value, values, given), expr.index)
    return expr
