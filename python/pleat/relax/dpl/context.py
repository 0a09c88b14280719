# SPDX-License-Identifier: Apache-2.0
"""Matching of several patterns in a dataflow block, with constraints between them."""
from pleat.relax.dpl.pattern import Matching, same_extents, type_of
from pleat.relax.expr import Call, Tuple, Var
from pleat.relax.nodes import TupleGetItem

__all__ = ["PatternContext"]

_contexts = []


class PatternContext:
    """Keeps the constraints between patterns that are stated within it: `a ^ b` (b uses a), `a >> b` (only b
    uses a), and those between a call's pattern and the patterns of its operands.

        with PatternContext() as ctx:
            is_op("relax.nn.conv2d")(wildcard(), wildcard()) >> is_op("relax.nn.relu")(wildcard())
        ctx.match_dfb(block)

    incremental: it begins with the constraints of the context around it"""

    def __init__(self, incremental=False):
        around = _contexts[-1] if incremental and _contexts else None
        self.edges = list(around.edges) if around else []
        self.same_shapes = list(around.same_shapes) if around else []

    def __enter__(self):
        _contexts.append(self)
        return self

    def __exit__(self, *_):
        _contexts.remove(self)

    @staticmethod
    def current():
        """The innermost context, or None."""
        return _contexts[-1] if _contexts else None

    def add(self, producer, consumer, index, is_only):
        self.edges.append((producer, consumer, index, is_only))

    def match_dfb(self, dfb):
        """The variables that the patterns match in a dataflow block, or None. Different patterns match different
        variables."""
        return match_bindings(self, [(one.var, one.value) for one in dfb.bindings],
                              {one.var for one in dfb.bindings if type(one.var) is Var})


def _operands(value):
    """The operands of a value, by their positions."""
    if isinstance(value, Call):
        args = [one.fields if isinstance(one, Tuple) else one for one in value.args]
        if str(value.op) in ("relax.call_tir", "relax.call_dps_packed"):
            args = args[1] if isinstance(args[1], list) else [args[1]]
        return args
    if isinstance(value, Tuple):
        return value.fields
    return [value.tuple_value] if isinstance(value, TupleGetItem) else []


def _flat(operands):
    return [one for operand in operands for one in (operand if isinstance(operand, (tuple, list)) else [operand])]


class _Search:
    """Assigns variables to patterns, one after the other."""

    def __init__(self, context, bindings, outputs, left_out):
        self.context, self.outputs = context, outputs
        self.values = dict(bindings)
        self.operands = {var: _operands(value) for var, value in bindings}
        self.users = {}
        for var in self.operands:
            for one in _flat(self.operands[var]):
                if isinstance(one, Var):
                    self.users.setdefault(one, set()).add(var)
        self.candidates = [one for one in dict.fromkeys([*self.users, *self.values]) if one not in left_out]
        self.found = {}

    def order(self):
        """The patterns, each connected with one before it where there is one."""
        waiting = list(dict.fromkeys(one for edge in self.context.edges for one in edge[1::-1]))
        order = []
        while waiting:
            near = {one for a, b, *_ in self.context.edges if a in order or b in order for one in (a, b)}
            one = next((p for p in waiting if p in near), waiting[0])
            order.append(one)
            waiting.remove(one)
        return order

    def run(self, order, at=0):
        if at == len(order):
            return all(self._same_shape(patterns) for patterns in self.context.same_shapes)
        pattern = order[at]
        for var in self._candidates(pattern):
            if any(var is taken for taken in self.found.values()) or not self._fits(pattern, var):
                continue
            self.found[pattern] = var
            if self.run(order, at + 1):
                return True
            del self.found[pattern]
        return False

    def _candidates(self, pattern):
        for a, b, index, _ in self.context.edges:
            if a is pattern and b in self.found:
                operands = self.operands.get(self.found[b], [])
                found = _flat(operands if index < 0 else operands[index:index + 1])
                return list(dict.fromkeys(found)) + self._swapped(self.found[b])
            if b is pattern and a in self.found:
                return [one for one in self.candidates if one in self.users.get(self.found[a], ())]
        return self.candidates

    def _swapped(self, var):
        """The operands of a sum or product, which match in either order."""
        value = self.values.get(var)
        is_swapped = isinstance(value, Call) and str(value.op) in ("relax.add", "relax.multiply")
        return _flat(self.operands[var]) if is_swapped else []

    def _fits(self, pattern, var):
        if not Matching(self.values).match(pattern, var):
            return False
        for a, b, index, is_only in self.context.edges:
            producer, consumer = (var if one is pattern else self.found.get(one) for one in (a, b))
            if producer is None or consumer is None or pattern not in (a, b):
                continue
            operands = self.operands.get(consumer, [])
            near = _flat(operands if index < 0 else operands[index:index + 1]) + self._swapped(consumer)
            if not any(one is producer for one in near):
                return False
            if is_only and (self.users.get(producer) != {consumer} or producer in self.outputs):
                return False
        return True

    def _same_shape(self, patterns):
        shapes = [getattr(type_of(self.found[one]), "shape", None) for one in patterns if one in self.found]
        return all(same_extents(shapes[0], one) for one in shapes[1:])


def match_bindings(context, bindings, outputs, left_out=()):
    """The variables that the patterns of a context match, or None.

    bindings: pairs of variables and values; outputs: the variables that others use too; left_out: variables that
    no pattern matches"""
    search = _Search(context, bindings, outputs, left_out)
    return search.found if context.edges and search.run(search.order()) else None
