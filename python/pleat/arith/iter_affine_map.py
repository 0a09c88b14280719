# SPDX-License-Identifier: Apache-2.0
"""Iteration maps: indices as sums of digits of loops, with TVM's classes."""
import enum

from pleat.arith.analyzer import Analyzer
from pleat.tir import nodes
from pleat.tir.nodes import KINDS
from pleat.tir.op import as_expression


class _Level(enum.IntEnum):
    @classmethod
    def from_str(cls, name):
        """The level of a name in any case; None: NoCheck."""
        levels = {str(level.name).lower(): level for level in cls}
        if name is not None and name.lower() not in levels:
            raise ValueError(f"Unknown check level {name}")
        return levels["nocheck" if name is None else name.lower()]


# How the points of the indices are met: once each, at least once, or any way.
IterMapLevel = _Level("IterMapLevel", {"Bijective": 0, "Surjective": 1, "NoCheck": 3})


class IterMapExpr(nodes.PrimExpr):
    """An expression of an iteration map."""


class IterMark(nodes.Node):
    """An expression that takes the values from 0 to before extent."""
    ARGUMENTS = ("source", "extent")


class IterSplitExpr(IterMapExpr):
    """(source // lower_factor) % extent * scale"""
    ARGUMENTS = ("source", "lower_factor", "extent", "scale")
    TYPE = staticmethod(lambda fields: fields["extent"].dtype)


class IterSumExpr(IterMapExpr):
    """The sum of splits, and a base."""
    ARGUMENTS = ("args", "base")
    TYPE = staticmethod(lambda fields: fields["base"].dtype)


class IterMapResult:
    """The indices of a map, each an IterSumExpr; none, and errors, where there is none."""

    def __init__(self, indices, errors):
        self.indices, self.errors, self.padding_predicate = indices, errors, nodes.const(False)


def _digit(digit, scale):
    mark = IterMark(digit["source"], digit["source_extent"])
    return IterSplitExpr(mark, nodes.const(digit["cut"], digit["extent"].dtype), digit["extent"], scale)


def _sum(index):
    """An index as one split, whose source is a sum where it has several digits."""
    digits = index["digits"]
    if not digits or index["extent"] == 1:
        return IterSumExpr([], index["base"])
    if len(digits) == 1 and digits[0]["extent"].dtype == index["extent"].dtype and \
            nodes.nodes_equal(digits[0]["extent"], index["extent"], False):
        return IterSumExpr([_digit(digits[0], index["scale"])], index["base"])
    dtype = index["base"].dtype
    whole = IterSumExpr([_digit(digit, digit["scale"]) for digit in digits], nodes.const(0, dtype))
    split = IterSplitExpr(IterMark(whole, index["extent"]), nodes.const(1, dtype), index["extent"],
                          index["scale"])
    return IterSumExpr([split], index["base"])


def _level(check_level):
    known = isinstance(check_level, IterMapLevel)
    return check_level if known else IterMapLevel.from_str(check_level)


def _asked(indices, input_iters, predicate, check_level, analyzer):
    variables = [[var, dom.min, dom.extent] for var, dom in input_iters.items()]
    condition = nodes.const(predicate) if isinstance(predicate, bool) else as_expression(predicate)
    return (analyzer or Analyzer()).ask(
        "iter_map", indices=[as_expression(one) for one in indices], vars=variables, condition=condition,
        level=int(_level(check_level)))


def detect_iter_map(indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective,
                    simplify_trivial_iterators=True, analyzer=None):
    """The indices as an iteration map of loops with domains, {variable: Range}, where the predicate
    holds. Loops of one iteration are left out."""
    found = _asked(indices, input_iters, predicate, check_level, analyzer)
    return IterMapResult([_sum(one) for one in found["map"]], [found["why"]] if found["why"] else [])


def iter_map_simplify(indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective,
                      simplify_trivial_iterators=True, analyzer=None):
    """The indices, simplified by the map where there is one."""
    found = detect_iter_map(indices, input_iters, predicate, check_level, analyzer=analyzer).indices
    return [normalize_iter_map_to_expr(one) for one in found] or list(indices)


def _times(e, factor):
    return e if factor == 1 else KINDS["Mul"](e, factor)


def normalize_iter_map_to_expr(expr):
    """The expression that a part of an iteration map stands for."""
    if isinstance(expr, IterMark):
        return normalize_iter_map_to_expr(expr.source)
    if isinstance(expr, IterSumExpr):
        parts = [normalize_iter_map_to_expr(one) for one in expr.args]
        parts += [] if parts and expr.base == 0 else [expr.base]
        whole = parts[0]
        for part in parts[1:]:
            whole = KINDS["Add"](whole, part)
        return whole
    if not isinstance(expr, IterSplitExpr):
        return expr
    digit = normalize_iter_map_to_expr(expr.source)
    if not expr.lower_factor == 1:
        digit = KINDS["FloorDiv"](digit, expr.lower_factor)
    whole = expr.lower_factor * expr.extent
    if not (isinstance(whole, nodes.IntImm) and whole == expr.source.extent or
            nodes.nodes_equal(whole, expr.source.extent, False)):
        digit = KINDS["FloorMod"](digit, expr.extent)
    return _times(digit, expr.scale)
