# SPDX-License-Identifier: Apache-2.0
"""pleat.arith: what analyzers answer, on random expressions beside all values of their variables."""
import itertools
import random

import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import arith, tir  # noqa: E402
from pleat.ir import structural_equal  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir import nodes  # noqa: E402

OPERATIONS = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b,
              "FloorDiv": lambda a, b: a // b, "FloorMod": lambda a, b: a % b, "Min": min, "Max": max,
              "Div": lambda a, b: int(a / b), "Mod": lambda a, b: a - int(a / b) * b,
              "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "EQ": lambda a, b: a == b,
              "NE": lambda a, b: a != b, "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b,
              "And": lambda a, b: a and b, "Or": lambda a, b: a or b}


def value(e, values):
    """The value of an expression where variables have values, by their names."""
    kind = type(e).__name__
    if isinstance(e, tir.Var):
        return values[e.name]
    if kind in ("IntImm", "Cast"):
        return e.value if kind == "IntImm" else value(e.value, values)
    if kind == "Not":
        return not value(e.a, values)
    if kind == "Select":
        return value(e.true_value if value(e.condition, values) else e.false_value, values)
    return OPERATIONS[kind](value(e.a, values), value(e.b, values))


class Random:
    """Expressions of variables with small ranges."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.ranges = {nodes.Var(name): (self.random.randint(-5, 5), self.random.choice([1, 2, 3, 5, 7]))
                       for name in "xyz"}

    def expression(self, depth=3):
        if depth == 0 or self.random.random() < 0.2:
            return self.random.choice([*self.ranges, nodes.const(self.random.randint(-9, 9))])
        kind = self.random.choice(["Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Div", "Mod", "Min", "Max"])
        a = self.expression(depth - 1)
        if kind in ("FloorDiv", "FloorMod", "Div", "Mod"):
            divisors = [2, 3, 4, 7, 8] if kind.startswith("Floor") else [2, 3, 4, 6, -4]
            return nodes.KINDS[kind](a, nodes.const(self.random.choice(divisors)))
        return nodes.KINDS[kind](a, self.expression(depth - 1))

    def condition(self):
        kind = self.random.choice(["LT", "LE", "EQ", "NE", "GT", "GE"])
        return nodes.KINDS[kind](self.expression(2), self.expression(1))

    def points(self):
        ranges = [range(low, low + extent) for low, extent in self.ranges.values()]
        names = [var.name for var in self.ranges]
        return [dict(zip(names, point)) for point in itertools.product(*ranges)]

    def analyzer(self):
        analyzer = arith.Analyzer()
        for var, (low, extent) in self.ranges.items():
            analyzer.bind(var, tir.Range.from_min_extent(low, extent))
        return analyzer


@pytest.mark.parametrize("seed", range(60))
def test_random_answers(seed):
    made = Random(seed)
    analyzer, points = made.analyzer(), made.points()
    for _ in range(6):
        e, condition = made.expression(), made.condition()
        values = [value(e, point) for point in points]
        simple, bounds, residue = analyzer.simplify(e), analyzer.const_int_bound(e), analyzer.modular_set(e)
        assert [value(simple, point) for point in points] == values
        assert bounds.min_value <= min(values) and max(values) <= bounds.max_value
        assert all((v - residue.base) % (residue.coeff or 1 << 62) == 0 for v in values)
        if analyzer.can_prove(condition):
            assert all(value(condition, point) for point in points)
        holds = [point for point in points if value(condition, point)]
        with analyzer.constraint_scope(condition):
            inside, simple = analyzer.const_int_bound(e), analyzer.simplify(e)
        for point in holds:
            assert value(simple, point) == value(e, point)
            assert inside.min_value <= value(e, point) <= inside.max_value
        assert repr(analyzer.const_int_bound(e)) == repr(bounds)  # the scope has ended


@pytest.mark.parametrize("seed", range(60))
def test_random_regions(seed):
    made = Random(seed)
    domain = {var: tir.Range.from_min_extent(*bounds) for var, bounds in made.ranges.items()}
    region = [tir.Range.from_min_extent(made.expression(2), made.random.choice([1, 2, 5])) for _ in range(2)]
    condition = made.condition()
    points = [point for point in made.points() if value(condition, point)]
    taken = set(itertools.chain.from_iterable(itertools.product(
        *(range(value(one.min, point), value(one.min, point) + one.extent.value) for one in region))
        for point in points))

    def box(found):
        ends = [(value(one.min_value, {}), value(one.max_value, {})) for one in found]
        return set(itertools.product(*(range(low, high + 1) for low, high in ends)))
    upper = arith.estimate_region_upper_bound(region, domain, condition)
    if all(isinstance(end, tir.IntImm) for one in upper for end in (one.min_value, one.max_value)):
        assert taken <= box(upper)
    exact = arith.estimate_region_lower_bound(region, domain, condition)
    if exact is not None and points:
        assert taken == box(exact)


def test_answers():
    i, n = tir.Var("i"), tir.Var("n")
    analyzer = arith.Analyzer()
    analyzer.bind(i, tir.Range(0, 16))
    assert analyzer.simplify((i * 4 + 3) // 4).same_as(i)
    assert analyzer.can_prove(i < 16) and not analyzer.can_prove(i < 15)
    assert analyzer.can_prove_equal(i + i, i * 2)
    assert (analyzer.const_int_bound(i * 2 + 1).max_value, analyzer.modular_set(i * 4 + 3).base) == (31, 3)
    with analyzer.constraint_scope(n % 3 == 0):
        assert analyzer.modular_set(n).coeff == 3
    assert analyzer.modular_set(n).coeff == 1
    j = tir.Var("j")
    analyzer.bind(j, tir.Range(0, 13))
    with analyzer.constraint_scope(i * 13 + j < 64):  # of the sum, not of its terms
        assert analyzer.simplify((n * 64 + i * 13 + j) // 64).same_as(n)
        assert analyzer.can_prove_equal((n * 64 + i * 13 + j) % 64, i * 13 + j)
    assert not analyzer.simplify((n * 64 + i * 13 + j) // 64).same_as(n)
    analyzer.bind(n, i * 3 + 7)
    assert analyzer.can_prove_equal(n, i * 3 + 7)
    whole = analyzer.const_int_bound(tir.Var("x", "int64"))
    assert (whole.min_value, whole.max_value) == (arith.ConstIntBound.NEG_INF, arith.ConstIntBound.POS_INF)
    y = tir.Var("y")
    assert not analyzer.const_int_bound_is_bound(y)
    analyzer.update(y, arith.ConstIntBound(1, 8))
    analyzer.update(y, arith.ModularSet(4, 3))
    other = analyzer.clone()
    assert other.const_int_bound_is_bound(y) and (other.const_int_bound(y).max_value,
                                                  other.modular_set(y).base) == (8, 3)
    with pytest.raises(TypeError, match="ConstIntBound"):
        analyzer.update(i, 3)


def test_parts_of_sums_cancel():
    """Sums, divisions and conditions with the results that TVM gives them."""
    x, y, z = (tir.Var(name) for name in "xyz")
    u8 = tir.Var("u", "uint8")
    div, mod = tir.truncdiv, tir.truncmod
    simplify = arith.Analyzer().simplify
    for before, expected in [
            (tir.min(x + 16, y) - x, tir.min(16, y - x)), (x * 3 - tir.min(x, y) * 3, tir.max(x - y, 0) * 3),
            (x - tir.max(x + y, 0), tir.min(x, 0 - y)), (tir.max(2 - x * 4, 0) + x * 4, tir.max(x * 2, 1) * 2),
            (tir.min(x, y) - x - y, tir.max(x, y) * -1), (tir.max(x, y + 2) - 2, tir.max(y, x - 2)),
            (tir.Select(x < 0, y, 0) + tir.Select(x < 0, 1, z) * 2, tir.Select(x < 0, y + 2, z * 2)),
            (tir.Select(x < 0, y, z) - y, tir.Select(x < 0, 0, z - y)), (x - div(x + y, 5) * 5, mod(x + y, 5) - y),
            (div(x, 3) >= 0, x >= -2), (div(x, 3) >= 1, x >= 3), (div(x, 3) <= 0, x <= 2), (div(x, 3) < 0, x <= -3),
            (tir.all(x // 8 == 3, x % 8 == 4), tir.EQ(x, 28)), (tir.all(x % 8 == 9, x // 8 == 3), tir.const(False)),
            (tir.all(x // 10 == -5, x % 10 < 7), tir.all(x >= -50, x < -43)), (tir.all(x == 1, x < 2), tir.EQ(x, 1)),
            (x * y * 6 // (y * z * 3), x * 2 // z), (mod(x * x * 32, x * y), mod(x * 32, y) * x), (div(x, x), 1),
            (x * y * 4 % (x * -6), x * y * 4 % (x * -6)), (div(x * y * 2, y * -4), div(x, -2)),
            (tir.clz(tir.const(128)), 24), (tir.clz(tir.const(0, "int64")), 64), (tir.clz(tir.const(-1)), 0),
            (div(tir.Broadcast(y, 2), tir.Broadcast(x, 2)), tir.Broadcast(div(y, x), 2)),
            (mod(tir.Ramp(x % 5 * 8 + 1, 1, 4), tir.Broadcast(8, 4)), tir.Ramp(1, 1, 4)),
            (div(tir.Ramp(x % 5 * 8 - 40, 16, 2), tir.Broadcast(8, 2)), div(tir.Ramp(x % 5 * 8 - 40, 16, 2),
                                                                           tir.Broadcast(8, 2))),
            (tir.min(div(x, 10), div(y, 10)), div(tir.min(x, y), 10)),
            (tir.all(x < y, tir.all(y < z, z < 9)), tir.all(tir.all(x < y, y < z), z < 9)),
            (tir.any(x != 1, x > 1), tir.NE(x, 1)), (tir.any(x != 1, x > 0), tir.const(True)),
            (tir.min(x, y - z) + z, tir.min(y, x + z)), (tir.max(x, y) + tir.min(x, y), x + y),
            (tir.min(x + 10, y + 1) - tir.min(x, y - 9), 10), (tir.min(x // 10, y // 10), tir.min(x, y) // 10),
            (tir.max(tir.min(y, x), tir.min(z, x)), tir.min(x, tir.max(y, z))),
            ((x + 1) // 2 - x // 2, x % 2), (x % 2 + (x + 1) % 2, 1), (x * -1 % 2, x % 2),
            (x - div(x, 3) * 3, mod(x, 3)), (div(div(x, 2), 3), div(x, 6)), (div(x * 4, -2), x * -2),
            (mod(x * 10, -4), mod(x * 5, 2) * 2), (tir.min(mod(x, 2), mod(y, 2) + 10), mod(x, 2)),
            (tir.min(x, 11) < 10, x < 10), (tir.max(8, x) > 10, 11 <= x), (u8 - u8, tir.const(0, "uint8")),
            (tir.all(x == 1, x != 2), x == 1), (tir.any(x != 1, x != 2), tir.const(True)),
            (tir.min(x * -2, 4), tir.max(x, -2) * -2), (tir.min(x - y, x - z), x - tir.max(y, z))]:
        assert structural_equal(simplify(before), simplify(expected)), (before, expected, simplify(before))
    memory = tir.decl_buffer((8,), "int32")  # whose elements may be any numbers
    assert simplify(mod(memory[0] * 2, 2)).dtype == "int32"
    assert not isinstance(simplify(mod(memory[0] * 2, 2)), tir.IntImm)


def test_floats_that_are_computed():
    """Numbers, and operands that are neutral; a sum with 0.0 is 0.0 for -0.0, and stays."""
    f, simplify = tir.Var("f", "float32"), arith.Analyzer().simplify
    half = tir.const(0.5, "float32")
    assert simplify(half + half * 3.0).value == 2.0 and simplify(tir.const(3).astype("float32")).value == 3.0
    assert all(simplify(e).same_as(f) for e in (f * 1.0, f / 1.0, f - 0.0, f * (half + half)))
    assert isinstance(simplify(f + 0.0), tir.Add) and isinstance(simplify(f * 0.0), tir.Mul)


def test_numbers_beside_nodes():
    """T.int32(0) <= x, a number beside lanes, and the names of operations in both dialects."""
    x, v = tir.Var("x"), tir.Var("v", "int32x4")
    assert isinstance(T.int32(0) <= x, tir.LE) and (v + x).dtype == (x + v).dtype == "int32x4"
    assert isinstance(x.astype("float32x4"), tir.Broadcast) and arith.Extension.NoExtensions == 0
    assert isinstance(tir.And(x == 1, x != 2), tir.And) and isinstance(x == 1, tir.expr.EqualOp)
    shifted = tir.Call("int32", "tirx.shift_left", [1, 10])
    assert arith.Analyzer().simplify(shifted).value == 1024


def test_loads_are_the_same_buffer():
    A, i = tir.decl_buffer((8,), "int32", name="A"), tir.Var("i")
    simple = arith.Analyzer().simplify(A[i + 1 - 1] + 0)
    assert simple.buffer is A and simple.indices[0].same_as(i)


def test_sets():
    i, j = tir.Var("i"), tir.Var("j")
    analyzer = arith.Analyzer()
    interval = analyzer.int_set(i + j, {j: arith.IntervalSet(0, 10)})
    assert interval.min_value.same_as(i) and analyzer.can_prove_equal(interval.max_value, i + 10)
    half = analyzer.int_set(j, {j: arith.IntervalSet(0, arith.int_set.pos_inf())})
    assert half.min_value == 0 and half.max_value is arith.int_set.pos_inf()
    assert arith.detect_linear_equation(i * 3 + j * 2 + 7, [i, j])[:2] == [3, 2]
    assert arith.detect_linear_equation(i * j, [i, j]) == []
    strided = {i: tir.Range(0, 64)}
    region = [tir.Range.from_min_extent(i * 4, 2)]
    assert arith.estimate_region_lower_bound(region, strided, True) is None
    assert arith.estimate_region_upper_bound(region, strided, True)[0].max_value == 253


def test_range_has_ends_as_in_tvm():
    n = tir.Var("n")
    assert tir.Range(3, 10).extent == 7 and tir.Range(8).min == 0
    assert type(tir.Range(n, n + 2).extent).__name__ == "Sub"
    assert tir.Range.from_min_extent(n, 2).with_fields(extent=5).extent == 5


def random_map(seed):
    """Loops with domains, and indices made of their digits, of which some are not used well."""
    r = random.Random(seed)
    domain = {nodes.Var(name): tir.Range(0, r.choice([1, 2, 3, 4, 6, 8, 12])) for name in "xyz"}
    x, y, z = domain
    fused = x * domain[y].extent + y
    parts = [x, y, z, fused, x // 2, x % 2, fused // 2, fused % 3, (fused // 2) % 2, z // 3, z % 3]
    indices = []
    for _ in range(r.choice([1, 2, 3])):
        e = r.choice(parts)
        if r.random() < 0.4:
            e = e * r.choice([2, 3, domain[z].extent.value]) + r.choice(parts)
        indices.append(e * r.choice([1, 1, 2]) + r.choice([0, 0, 5, -3]))
    return r, domain, indices


@pytest.mark.parametrize("seed", range(150))
def test_random_iteration_maps(seed):
    r, domain, indices = random_map(seed)
    points = [dict(zip("xyz", point)) for point in
              itertools.product(*(range(dom.extent.value) for dom in domain.values()))]
    condition = True
    if r.random() < 0.3:
        condition = r.choice(indices) < r.randint(1, 20)
        points = [point for point in points if value(condition, point)]
    for level in ("surjective", "bijective"):
        found = arith.detect_iter_map(indices, domain, condition, level)
        if not found.indices:
            assert found.errors
            continue
        exprs = [arith.normalize_iter_map_to_expr(one) for one in found.indices]
        taken = [tuple(value(e, point) for e in indices) for point in points]
        assert [tuple(value(e, point) for e in exprs) for point in points] == taken
        ranges = [range(one.base.value, one.base.value + extent * scale, scale)
                  for one in found.indices
                  for extent, scale in [(one.args[0].extent.value, one.args[0].scale.value)
                                        if one.args else (1, 1)]]
        assert set(taken) == set(itertools.product(*ranges))
        assert level == "surjective" or len(taken) == len(set(taken))


def test_iteration_maps():
    x, y, c = tir.Var("x"), tir.Var("y"), tir.Var("c")
    domain = {x: tir.Range(0, 3), y: tir.Range(0, 5)}
    (first, second) = arith.detect_iter_map([(x * 5 + y) // 3, (x * 5 + y) % 3 + c], domain,
                                            check_level="bijective").indices
    assert (first.args[0].extent, second.args[0].extent) == (5, 3) and second.base.same_as(c)
    assert arith.detect_iter_map([x, x], domain).errors == ["two digits of x overlap"]
    assert arith.detect_iter_map([x], domain, check_level="bijective").errors
    assert arith.detect_iter_map([x], domain).indices
    with pytest.raises(ValueError, match="Unknown check level some"):
        arith.detect_iter_map([x], domain, check_level="some")
    simple, = arith.iter_map_simplify([(x * 5 + y) // 3 * 3 + (x * 5 + y) % 3], domain)
    assert pleat.ir.structural_equal(simple, x * 5 + y)
