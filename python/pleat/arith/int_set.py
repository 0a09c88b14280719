# SPDX-License-Identifier: Apache-2.0
"""Intervals of integers with expressions as ends, and the boxes of index ranges."""
from pleat.tir import nodes
from pleat.tir.op import as_expression

_ENDS = {"pos": nodes.Var("pos_inf", "handle"), "neg": nodes.Var("neg_inf", "handle")}


def pos_inf():
    """The end of an interval without an upper bound."""
    return _ENDS["pos"]


def neg_inf():
    """The beginning of an interval without a lower bound."""
    return _ENDS["neg"]


class IntSet:
    """A set of integers."""

    @staticmethod
    def single_point(point):
        """The interval of one value."""
        return IntervalSet(point, point)

    @staticmethod
    def vector(vec):
        """The interval of the lanes of a vector."""
        if not isinstance(vec, nodes.KINDS["Ramp"]):
            return IntervalSet(vec, vec)
        last = pos_inf() if not isinstance(vec.lanes, int) else vec.base + vec.stride * (vec.lanes - 1)
        return IntervalSet(vec.base, last)

    def is_nothing(self):
        """Is it the empty set?"""
        return self.min_value is pos_inf() or self.max_value is neg_inf()

    def is_everything(self):
        """Are all integers in it?"""
        return self.min_value is neg_inf() and self.max_value is pos_inf()


class IntervalSet(IntSet):
    """The integers from min_value to max_value, both included."""

    def __init__(self, min_value, max_value):
        self.min_value, self.max_value = as_expression(min_value), as_expression(max_value)

    def __repr__(self):
        return f"IntervalSet[{self.min_value!r}, {self.max_value!r}]"


def _is_infinite(interval):
    return interval.min_value is neg_inf() or interval.max_value is pos_inf()


def interval_of(analyzer, expr, dom_map):
    """The interval that Analyzer.int_set gives: with constant ends where an interval of a variable has
    no end."""
    with analyzer.scope():
        ranges = []
        for var, interval in dom_map.items():
            if not _is_infinite(interval):
                ranges.append([var, interval.min_value, interval.max_value - interval.min_value + 1])
            elif interval.min_value is not neg_inf():
                analyzer.ask("assume", condition=nodes.KINDS["GE"](var, interval.min_value))
            elif interval.max_value is not pos_inf():
                analyzer.ask("assume", condition=nodes.KINDS["LE"](var, interval.max_value))
        if len(ranges) < len(dom_map):
            return _constant_interval(analyzer, expr, ranges)
        point = nodes.Range.from_min_extent(expr, nodes.const(1, expr.dtype))
        return _boxes(analyzer, [point], ranges, True)[0][0] or IntervalSet(neg_inf(), pos_inf())


def _constant_interval(analyzer, expr, ranges):
    for var, low, extent in ranges:
        analyzer.bind(var, nodes.Range.from_min_extent(low, extent))
    bounds = analyzer.const_int_bound(expr)
    type_bounds = analyzer.const_int_bound(nodes.Var("any", expr.dtype))
    low = neg_inf() if bounds.min_value == type_bounds.min_value else nodes.const(bounds.min_value, expr.dtype)
    high = pos_inf() if bounds.max_value == type_bounds.max_value else nodes.const(bounds.max_value, expr.dtype)
    return IntervalSet(low, high)


def _boxes(analyzer, region, ranges, predicate):
    """An IntervalSet for each range of a region, None without a bound; and whether the box is exact."""
    condition = nodes.const(predicate) if isinstance(predicate, bool) else as_expression(predicate)
    found = analyzer.ask("regions", indices=[one.min for one in region], vars=ranges,
                         extents=[one.extent for one in region], condition=condition)
    return [box and IntervalSet(*box) for box in found["boxes"]], found["exact"]


def _estimated(region, var_dom, predicate, analyzer, is_exact):
    from pleat.arith.analyzer import Analyzer
    ranges = [[var, dom.min, dom.extent] for var, dom in var_dom.items()]
    boxes, exact = _boxes(analyzer or Analyzer(), region, ranges, predicate)
    if is_exact:
        return boxes if exact else None
    return [box or IntervalSet(neg_inf(), pos_inf()) for box in boxes]


def estimate_region_lower_bound(region, var_dom, predicate, analyzer=None):
    """The intervals of a list of Ranges while the variables of var_dom run where the predicate holds, or
    None where the box has other values."""
    return _estimated(region, var_dom, predicate, analyzer, True)


estimate_region_strict_bound = estimate_region_lower_bound


def estimate_region_upper_bound(region, var_dom, predicate, analyzer=None):
    """Intervals that hold all values of a list of Ranges."""
    return _estimated(region, var_dom, predicate, analyzer, False)
