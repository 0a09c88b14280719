# SPDX-License-Identifier: Apache-2.0
"""Facts about variables, and what follows from them: bounds, residues, simplification, proofs."""
import contextlib
import enum
import json

from pleat._library import _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.tir import nodes
from pleat.tir.node_table import read_nodes, written_nodes
from pleat.tir.op import as_expression


class ProofStrength(enum.IntEnum):
    """How long a proof is searched; Pleat always searches in the same way."""
    DEFAULT, SYMBOLIC_BOUND = 0, 1


class Extension(enum.IntFlag):
    """Rules of TVM's simplifier that are off by default; Pleat applies what it can prove in any case."""
    NoExtensions = 0
    TransitivelyProveInequalities = 1
    ConvertBooleanToAndOfOrs = 2
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


class ModularSet:
    """The numbers base + coeff * x; coeff 0: base alone."""

    def __init__(self, coeff, base):
        self.coeff, self.base = coeff, base

    def __repr__(self):
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


class ConstIntBound:
    """The least and the greatest value; POS_INF and NEG_INF where there is none."""
    POS_INF = (1 << 63) - 1
    NEG_INF = -POS_INF

    def __init__(self, min_value, max_value):
        self.min_value, self.max_value = min_value, max_value

    def __repr__(self):
        return f"ConstIntBound(min_value={self.min_value}, max_value={self.max_value})"


class ConstraintScope:
    """In a `with`, the condition holds."""

    def __init__(self, analyzer, constraint):
        self._analyzer, self._constraint = analyzer, constraint

    def __enter__(self):
        self._mark = self._analyzer.ask("assume", condition=self._constraint)["mark"]
        self._analyzer._scopes += 1
        return self

    def __exit__(self, *_):
        self._analyzer._scopes -= 1
        self._analyzer.ask("forget", mark=self._mark)


class Analyzer:
    """Facts about integer variables, and answers under them. A fact that is given in a
    constraint_scope ends with it."""

    def __init__(self):
        made, messages = ffi.new("PleatAnalyzer **"), ffi.new("PleatMessages **")
        check_status(_lib.pleat_analyzer_new(made, messages), messages)
        self._handle = ffi.gc(made[0], _lib.pleat_analyzer_free)
        self._keys, self._objects = {}, []  # of the variables and buffers that both sides know
        self._facts = []  # the names and fields of the questions that gave facts outside of scopes
        self._bound = set()  # the variables with constant bounds, or a value
        self._scopes = 0

    def ask(self, op, **fields):
        """A question of pleat_analyzer_ask (pleat/tir.h), of nodes and numbers."""
        if "expr" in fields:
            fields["expr"] = as_expression(fields["expr"])
        table = written_nodes({name: _as_node(value) for name, value in fields.items()}, self._key_of)
        question = json.dumps({"op": op, **table})
        answer, messages = ffi.new("char **"), ffi.new("PleatMessages **")
        check_status(_lib.pleat_analyzer_ask(self._handle, question.encode(), answer, messages), messages)
        return read_nodes(json.loads(_owned_text(answer[0])), self._objects)

    def _key_of(self, node):
        if id(node) not in self._keys:
            self._keys[id(node)] = len(self._objects)
            self._objects.append(node)
        return self._keys[id(node)]

    def _learn(self, op, **fields):
        if not self._scopes:
            self._facts.append((op, fields))
        if "var" in fields:
            self._bound.add(id(fields["var"]))
        return self.ask(op, **fields)

    def clone(self):
        """Another analyzer with the same facts, outside of scopes."""
        other = Analyzer()
        for op, fields in self._facts:
            other._learn(op, **fields)
        other._bound |= self._bound
        return other

    def simplify(self, expr, steps=2):
        """An expression of the same value; Pleat's form does not depend on the steps."""
        return self.ask("simplify", expr=expr)["result"]

    rewrite_simplify = canonical_simplify = simplify

    def const_int_bound(self, expr):
        """The constant bounds of an expression."""
        found = self.ask("const_int_bound", expr=expr)
        return ConstIntBound(ConstIntBound.NEG_INF if found["min"] is None else found["min"],
                             ConstIntBound.POS_INF if found["max"] is None else found["max"])

    def modular_set(self, expr):
        """The remainder of an expression, as far as it is known."""
        found = self.ask("modular_set", expr=expr)
        return ModularSet(found["coeff"], found["base"])

    def can_prove(self, expr, strength=ProofStrength.DEFAULT):
        """Is the condition proved to hold for all values?"""
        return self.ask("prove", condition=expr)["proved"]

    def can_prove_equal(self, lhs, rhs):
        """Are both proved to be equal for all values?"""
        lhs, rhs = nodes.matched(as_expression(lhs), as_expression(rhs))
        return self.ask("prove_equal", a=lhs, b=rhs)["proved"]

    def bind(self, var, expr, allow_override=False):
        """Gives a variable a value, or the Range of its values."""
        if isinstance(expr, nodes.Range):
            self._learn("bind_range", var=var, min=expr.min, extent=expr.extent)
        else:
            self._learn("bind_value", var=var, value=as_expression(expr, var.dtype))

    def update(self, var, info, override=False):
        """Gives a variable constant bounds, a ConstIntBound, or a remainder, a ModularSet."""
        conditions = []
        if isinstance(info, ModularSet) and info.coeff:
            conditions.append(var % info.coeff == info.base % info.coeff)
        elif isinstance(info, ConstIntBound):
            self._bound.add(id(var))
            if info.min_value != ConstIntBound.NEG_INF:
                conditions.append(nodes.KINDS["GE"](var, info.min_value))
            if info.max_value != ConstIntBound.POS_INF:
                conditions.append(nodes.KINDS["LE"](var, info.max_value))
        else:
            raise TypeError(f"expected a ConstIntBound or a ModularSet, not {type(info).__name__}")
        for condition in conditions:
            self._learn("assume", condition=condition)

    def const_int_bound_is_bound(self, var):
        """Did bind or update give the variable constant bounds or a value?"""
        return id(var) in self._bound

    def int_set(self, expr, dom_map=None):
        """The interval of an expression's values while the variables of dom_map run over theirs."""
        from pleat.arith.int_set import interval_of
        return interval_of(self, as_expression(expr), dom_map or {})

    def constraint_scope(self, constraint):
        """A `with` in which a condition holds."""
        return ConstraintScope(self, constraint)

    @contextlib.contextmanager
    def scope(self):
        """A `with` at whose end the facts given in it are dropped."""
        with ConstraintScope(self, nodes.const(True)):
            yield self


def _as_node(value):
    """Numbers that are conditions or expressions in a question; lists stay lists."""
    if isinstance(value, list):
        return [_as_node(item) for item in value]
    is_expression = isinstance(value, (nodes.Node, bool)) or hasattr(value, "as_expression")
    return as_expression(value) if is_expression else value
