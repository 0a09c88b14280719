# SPDX-License-Identifier: Apache-2.0
"""The functions that LegalizeOps calls for operators, which replace the calls of these by their results:

    def swapped(bb, call):
        return bb.call_te(topi.add, call.args[1], call.args[0])

    relax.transform.LegalizeOps({"relax.add": swapped})(module)"""
import ast

from pleat._library import PleatError
from pleat.ir._module import Function, IRModule
from pleat.relax.block_builder import BlockBuilder
from pleat.relax.emitted import Sizes
from pleat.relax.expr import Call, StatedCall, TensorStructInfo, Var
from pleat.relax.expr_functor import PyExprMutator, _Builder, _definition
from pleat.relax.nodes import If, LocalFunction, function_of
from pleat.script._parse import from_source
from pleat.script._values import text_of
from pleat.tir.nodes import sizes_named


class _LegalizingBuilder(_Builder):
    """A part of BlockBuilder, for bindings before the call that is replaced."""

    emit_te, call_te, add_func = BlockBuilder.emit_te, BlockBuilder.call_te, BlockBuilder.add_func
    match_cast = BlockBuilder.match_cast
    _module = property(lambda self: self._mod)

    def emit(self, expr, name_hint="gv"):
        name = str(super().emit(expr, name_hint or "gv"))
        if isinstance(expr, StatedCall) and expr.stated_info is not None:
            return Var(name, expr.stated_info)
        return Var(name, builder=_Untyped())


class _Untyped:
    """The builder of a variable whose type is not known until the whole function is read."""

    def infer(self, var):
        raise PleatError(f"the type of '{var.name_hint}' is not known while operators are replaced; that of what "
                         "emit_te gives is")


class _Legalizer(PyExprMutator):
    """Replaces the calls of the operators in `rules` in one function."""

    def __init__(self, module, name, rules):
        super().__init__(module)
        self.builder_, self.rules = _LegalizingBuilder(self, module), rules
        sizes = Sizes()
        self.types = {var.name_hint: _with_sizes(var, sizes)
                      for var in _variables(function_of(module.script(), name))}

    def visit_call_(self, call):
        rule = self.rules.get(str(call.op))
        if rule is None:
            return super().visit_call_(call)
        args = [self.types.get(str(argument), argument) for argument in call.args]
        return rule(self.builder_, Call(call.op, args, call.attrs))

    def _result(self, expr, tree):
        body, i = _definition(tree, expr.__name__)
        whole = ast.parse(self.builder_.get().script())
        target, k = _definition(whole, expr.__name__)
        target[k] = body[i]
        return from_source(ast.unparse(whole) + "\n")


def _with_sizes(var, sizes):
    """The variable, with variables of sizes in place of their names in the shape of its type."""
    info = var._struct_info
    if not isinstance(info, TensorStructInfo) or info.shape is None or all(isinstance(e, int) for e in info.shape):
        return var
    extents = [eval(text_of(extent), {}, sizes) for extent in info.shape]  # noqa: S307 - text of the library
    return Var(var.name_hint, TensorStructInfo(extents, info.dtype))


def _variables(function):
    """The parameters and the variables of the bindings, also those in branches and local functions."""
    found, waiting = list(function.params), [function.body]
    while waiting:
        for binding in (one for block in waiting.pop().blocks for one in block.bindings):
            found.append(binding.var)
            value = binding.value
            if isinstance(value, If):
                waiting += [value.true_branch, value.false_branch]
            elif isinstance(value, LocalFunction):
                found += value.params
                waiting.append(value.body)
    return found


def legalized_by(module, rules):
    """The module with the calls of operators replaced. rules: by the name of an operator, a function of a
    builder and a call"""
    for name in [name for name in module if isinstance(module[name], Function)]:
        with sizes_named(lambda size: size.name):
            legal = _Legalizer(module, name, rules).visit_expr(module[name])
        module = legal if isinstance(legal, IRModule) else IRModule({name: legal})
    return module
