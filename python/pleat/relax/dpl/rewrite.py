# SPDX-License-Identifier: Apache-2.0
"""Replacing what patterns match in graph functions:

    def doubled(call, found):
        return relax.op.multiply(found[x], relax.const(2.0))
    rewrite_call(is_op("relax.add")(x, x), doubled, module["main"])"""
from pleat._library import PleatError
from pleat.ir._module import Function, IRModule
from pleat.relax.dpl.context import match_bindings
from pleat.relax.dpl.pattern import Matching, OrPattern
from pleat.relax.expr import Var
from pleat.relax.graph_text import Bound, GraphText, used_by
from pleat.script._values import text_of

__all__ = ["ExprPatternRewriter", "OrRewriter", "PatternMatchingRewriter", "rewrite_bindings", "rewrite_call"]

_ROUNDS, _REPLACEMENTS = 64, 64  # at most, and for each binding


class PatternMatchingRewriter:
    """Replaces expressions; called with a function or a module. `a | b` does what a does, and then b."""

    def __init__(self, rules):
        self.rules = list(rules)

    @staticmethod
    def from_pattern(pattern, func):
        """Replaces what a pattern matches by what a function gives: see rewrite_call."""
        return PatternMatchingRewriter([(pattern, func)])

    @staticmethod
    def from_module(mod):
        """Replaces what the function `pattern` of a module computes by what its function `replacement` does, of the
        same parameters. R.rewriter makes one of a class."""
        from pleat.relax.dpl.rules import rule_of
        return PatternMatchingRewriter([rule_of(mod)])

    def __or__(self, other):
        return PatternMatchingRewriter(self.rules + other.rules)

    def __call__(self, obj):
        if isinstance(obj, IRModule):
            for name, function in obj.items():
                obj = _rewritten(obj, str(name), self.rules) if isinstance(function, Function) else obj
            return obj
        return _rewritten(IRModule({obj.__name__: obj}), obj.__name__, self.rules)[obj.__name__]


def ExprPatternRewriter(pattern, func):
    """PatternMatchingRewriter.from_pattern"""
    return PatternMatchingRewriter.from_pattern(pattern, func)


def OrRewriter(lhs, rhs):
    """lhs | rhs"""
    return lhs | rhs


def rewrite_call(pattern, rewriter, func):
    """The function with the expressions that a pattern matches replaced, until nothing changes.

    rewriter: a function of the expression and a dictionary from patterns to what they match; it gives the
        replacement, or the expression itself, or None"""
    return PatternMatchingRewriter.from_pattern(pattern, rewriter)(func)


def _rewritten(module, name, rules):
    """The module with one function rewritten by the pairs of patterns and functions."""
    text, rounds, replaced = GraphText(module, name), 0, 0
    most = _REPLACEMENTS * len(text.bindings)
    while rounds < _ROUNDS and replaced <= most:
        changed = sum(_rewrite(text, block, rules) for block in text.blocks)
        if not changed:
            return module
        module = _cleaned(text.module(), name)
        text, rounds, replaced = GraphText(module, name), rounds + 1, replaced + changed
    raise PleatError(f"the replacements in '{name}' do not come to an end: after {replaced} replacements in {rounds} "
                     "rounds the patterns still match; a function gives None for what stays as it is")


def _rewrite(text, block, rules):
    """Replaces in one block; returns how many expressions."""
    values, done, changed = text.values(), [], 0
    named = {id(value): var for var, value in values.items()}
    for bound in block.bindings:
        made = None if bound.var not in values else _replacement(bound.value, values, rules)
        if made is not None:
            named.pop(id(bound.value), None)  # which may be an operand of what takes its place
            added, value = text.emitted(made, named)
            done += added
            bound = Bound(bound.var, value)
            named[id(value)] = bound.var
            values |= {one.var: one.value for one in (*added, bound)}  # which the next patterns see
            changed += 1
        done.append(bound)
    block.bindings = done
    return changed


def _alternatives(pattern):
    """The patterns of which a pattern at the root is one or the other, each with those around it."""
    if not isinstance(pattern, OrPattern):
        return [(pattern, [])]
    return [(one, [*around, pattern]) for side in (pattern.left, pattern.right) for one, around in _alternatives(side)]


def _replacement(expr, values, rules):
    """The expression that takes the place of another one, or None."""
    for whole, function in rules:
        for pattern, around in _alternatives(whole):
            attempt = Matching(values)
            if not attempt.match(pattern, expr):
                continue
            made = function(expr, attempt.found | dict.fromkeys(around, expr))
            if made is not None and made is not expr and text_of(made) != text_of(expr):
                return made
    return None


def _cleaned(module, name):
    """Without the values in the function that nothing uses any more. The outputs of dataflow blocks are what is
    used outside of them."""
    text, is_done = GraphText(module, name), False
    while not is_done:
        is_done = True
        for block in filter(lambda one: one.outputs is not None, text.blocks):
            outside = set(used_by(text.result)) | {n for other in text.blocks if other is not block
                                                   for one in other.bindings for n in one.uses()}
            used = outside | {n for one in block.bindings for n in one.uses()}
            kept = [one for one in block.bindings if one.var.name_hint in used]
            is_done = is_done and len(kept) == len(block.bindings)
            block.bindings, block.outputs = kept, [one.var.name_hint for one in kept if one.var.name_hint in outside]
    text.blocks = [block for block in text.blocks if block.bindings]
    return text.module()


def rewrite_bindings(ctx, rewriter, func):
    """The function with variables of its dataflow blocks bound to other values, wherever the patterns of a
    PatternContext match.

    rewriter: a function of a dictionary from patterns to variables, and one from variables to their values; it
        gives a dictionary from variables to their new values"""
    module, name, done = IRModule({func.__name__: func}), func.__name__, set()
    text = GraphText(module, name)
    for block in text.blocks:
        while block.outputs is not None and _rebound(text, block, ctx, rewriter, done):
            pass
    return _cleaned(text.module(), name)[name] if done else func


def _rebound(text, block, ctx, rewriter, done):
    """Replaces the values of one match; returns whether there was one."""
    pairs = [(one.var, one.value) for one in block.bindings if not one.is_cast]
    outside = {*block.outputs, *(name for one in block.bindings if one.is_cast for name in one.uses())}
    outputs = {one.var for one in block.bindings if one.var.name_hint in outside}
    found = match_bindings(ctx, pairs, outputs, done)
    if found is None:
        return False
    named, added, first = {}, [], len(block.bindings)
    values = rewriter(found, dict(pairs))
    done |= {one for one in found.values() if isinstance(one, Var) and one in values}
    for i, bound in enumerate(block.bindings):
        if bound.var in values:
            first = min(first, i)
            more, value = text.emitted(values[bound.var], named)
            added += more
            bound.value, bound.lines = value, None
    done |= {one.var for one in added}
    block.bindings[first:first] = added
    text.sort(block)
    return bool(values)
