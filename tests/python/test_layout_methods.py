# SPDX-License-Identifier: Apache-2.0
"""The typed questions of pleat.layout.Layout, each against NumPy at every element, and on symbols."""
import inspect
import itertools
import re
import subprocess

import numpy as np
import pytest
from built import BUILD, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.layout import Layout, Place, PleatError, Undecided  # noqa: E402
from pleat.tir import IndexMap  # noqa: E402

BLOCKED = Layout("NCHW4c", (2, 6, 3, 5))
SKEWED = Layout("i, j -> i, (i + j) % 8", (4, 8))


def offsets(layout):
    """The offset of every element, in the logical shape."""
    return np.array([layout.offset(*i) for i in np.ndindex(*layout.shape)]).reshape(layout.shape)


def test_methods_are_those_of_the_table():
    """Each question that the command lists is asked by some method, and no other is."""
    text = subprocess.run([BUILD / "pleat", "layout", "--help-batch"], check=True,
                          capture_output=True, text=True).stdout
    listed = {line.split()[0] for line in text.partition("\nop ")[2].splitlines()[1:] if line}
    asked = re.findall(r'_(?:ask|value|runs)\(\s*"(\w+)"', inspect.getsource(Layout))
    assert len(listed) > 30 and set(asked) == listed


def test_shapes_that_the_spelling_says():
    assert Layout("(4,(2,3)):(8,(1,32))").shape == (4, 6)
    assert Layout("f32[2,3]{0,1}").physical_shape == (3, 2)
    free = Layout("NCHW16c", where=["C % 16 == 0", "N == 1"])
    assert free.shape == (1, "C", "H", "W") and free.physical_shape == (1, "C//16", "H", "W", 16)
    assert free.is_onto() and not Layout("NCHW16c").is_onto()
    with pytest.raises(PleatError, match="only a shape can tell"):
        Layout("*i, c -> *i, c//4, c%4")


@pytest.mark.parametrize("box, select", [
    (dict(c=(0, 4), h=slice(1, 3)), np.s_[:, 0:4, 1:3, :]),
    (dict(n=1, w=range(0, 5, 2)), np.s_[1:2, :, :, 0:5:2]),
    (dict(box=[0, (2, 6)]), np.s_[0:1, 2:6]),
    (dict(box="c=1:6:2", w=(2, 4)), np.s_[:, 1:6:2, :, 2:4]),
    (dict(box={"h": (0, None)}), np.s_[:]),
])
def test_slices_have_the_places_of_the_whole(box, select):
    part = BLOCKED.slice(**box)
    expected = offsets(BLOCKED)[select]
    assert part.layout.shape == expected.shape
    found = np.array([part.layout.offset(*i) for i in np.ndindex(*expected.shape)])
    assert (found.reshape(expected.shape) == expected).all()
    if part.strides is not None:
        steps = sum(np.arange(n).reshape([-1 if k == axis else 1 for k in range(4)]) * stride
                    for axis, (n, stride) in enumerate(zip(expected.shape, part.strides)))
        assert (steps + part.offset == expected).all()


def test_symbolic_slices():
    whole = Layout("NCHW16c", where="C % 32 == 0")
    part = whole.slice(c=(0, "C//2"))
    assert part.layout.shape == ("N", "C//2", "H", "W") and part.offset == 0
    assert part.layout.is_injective()
    with pytest.raises(PleatError):
        BLOCKED.slice(c=(0, 7))


def test_inverses_have_indices_on_padding_too():
    """The map would be -1 at the padding between rows."""
    whole = Layout("i, j -> i*3 + 1 - j", (12, 2))
    inverse, padding = whole.inverse()
    assert inverse.shape == (35,) and inverse.physical_shape == (12, 2) and padding is not None
    for i in range(12):
        for j in range(2):
            assert inverse.offset(whole.offset(i, j)) == i * 2 + j


def test_tiles():
    """Axis i of the tiled layout is the index in a tile, then the tile."""
    whole = Layout("i, j -> i, j", (8, 6))
    tiled = whole.tile(Layout("(4):(1)"), None)
    assert tiled.shape == (4, 2, 6)
    assert (offsets(tiled) == offsets(whole).reshape(2, 4, 6).transpose(1, 0, 2)).all()
    assert whole.tile(None, Layout("(2):(3)")).shape == (8, 2, 3)
    with pytest.raises(PleatError):
        whole.tile(Layout("(5):(1)"), None)
    with pytest.raises(PleatError, match="one for each of the 2"):
        whole.tile(None)


def test_shapes():
    assert Layout("n -> n", 4).shape == (4,) and Layout("NC", "2x3").shape == (2, 3)
    with pytest.raises(TypeError):
        Layout("n -> n", (2.5,))


def test_reshapes():
    flat = BLOCKED.reshape(2, 6, 15)
    assert (offsets(flat).reshape(BLOCKED.shape) == offsets(BLOCKED)).all()
    assert flat.is_reshape_of(BLOCKED) and not flat.is_reshape_of(Layout("NCHW", (2, 6, 3, 5)))
    assert Layout("NCHW").reshape(["N", "C", "H*W"]).is_onto()
    with pytest.raises(PleatError, match="number of elements"):
        BLOCKED.reshape(7)


def test_sums_and_products():
    a, b = Layout("i -> i//2, i%2", (5,)), Layout("j, k -> k, j", (2, 3))
    both = a.direct_sum(b)
    for (i,), (j, k) in itertools.product(np.ndindex(5), np.ndindex(2, 3)):
        assert both.offset(i, j, k) == a.offset(i) * 6 + b.offset(j, k)
    tile, grid = Layout("i, j -> j, i", (2, 3)), Layout("i, j -> i, j", (4, 5))
    blocked, raked = tile.product(grid), tile.product(grid, kind="raked")
    assert blocked.shape == raked.shape == (8, 15)
    for i, j in np.ndindex(8, 15):
        assert blocked.offset(i, j) == tile.offset(i % 2, j % 3) + 6 * grid.offset(i // 2, j // 3)
        assert raked.offset(i, j) == tile.offset(i // 4, j // 5) + 6 * grid.offset(i % 4, j % 5)
    assert tile.product(Layout("k -> k", (7,)), kind="logical").shape == (2, 3, 7)
    gaps = Layout("4:2").complement(24)
    assert sorted(x + y for x in (0, 2, 4, 6) for y in offsets(gaps).flat) == list(range(24))
    filled = Layout("4:2").product(Layout("6:1"), filled=True)
    assert sorted(offsets(filled).flat) == list(range(24))
    with pytest.raises(PleatError, match="logical, blocked or raked"):
        tile.product(grid, kind="sideways")


def test_divisions():
    a, b = Layout("NHWC", (1, 6, 3, 5)), Layout("NCHW4c", (1, 6, 3, 5))
    copy, padding = a.divide(b)
    assert padding is not None
    for index in np.ndindex(1, 6, 3, 5):
        place = [int(p) for p in np.unravel_index(b.offset(*index), b.physical_shape)]
        target = copy.index_map().map_indices(place)
        assert np.ravel_multi_index(target, a.physical_shape) == a.offset(*index)
    assert Layout("NHWC").divide(Layout("NCHW"))[0].is_bijective()
    transposed = Layout("i, j -> j, i", (6, 6))
    back, padding = transposed.left_divide(Layout("i, j -> i, j", (6, 6)))
    assert padding is None and back.offset(1, 4) == 4 * 6 + 1
    with pytest.raises(PleatError, match=r"no such map: \[0, 1\] and \[1, 0\] have the same"):
        Layout("i, j -> i + j", (2, 3)).inverse()
    with pytest.raises(TypeError, match="write // for the quotient"):
        Layout(lambda i, j: [i, j / 4], (2, 8))
    with pytest.raises(PleatError, match="no such map"):
        a.divide(Layout("i, j, k, l -> j, k", (1, 6, 3, 5)))


def test_orders_and_blocks():
    assert Layout("NHWC", (2, 6, 3, 5)).permutation() == (0, 2, 3, 1)
    assert Layout("NHWC").permutation() == (0, 2, 3, 1)
    assert BLOCKED.permutation() is None
    assert [(b.axis, b.block, b.extent) for b in Layout("NCHW4c", where="C % 4 == 0").blocking()] == [
        ("n", 1, "N"), ("c", 4, "C//4"), ("h", 1, "H"), ("w", 1, "W"), ("c", 1, 4)]
    assert SKEWED.blocking() is None
    found = Layout("i, j -> j, i", (3, 4)).loop_order()
    assert [(loop.axis, loop.extent, loop.stride) for loop in found.loops] == [("j", 4, 3), ("i", 3, 1)]
    assert found.guard is None
    factors = Layout("c, w -> c//16, w, c%16", (48, 12)).refine(
        Layout("c, w -> c//4, w, c%4", (48, 12)))
    assert [(f.axis, f.cut, f.extent, f.strides) for f in factors] == [
        ("c", 16, 3, (192, 192)), ("c", 4, 4, (4, 48)), ("c", 1, 4, (1, 1)), ("w", 1, 12, (16, 4))]
    with pytest.raises(PleatError):
        Layout("i -> i%4, i//4", (24,)).refine(Layout("i -> i%6, i//6", (24,)))


def test_padding_and_lines():
    runs = BLOCKED.padding_runs()
    held = set(offsets(BLOCKED).flat)
    places = [p for start, length in runs.runs for p in range(start, start + length)]
    assert runs.total == BLOCKED.padding_count() == 2 * 8 * 15 - 2 * 6 * 15
    assert not held & set(places) and len(runs.runs) <= runs.count
    for line in (16, 32, 64):
        touched = {4 * p // line for p in offsets(BLOCKED)[:, :, 1:3, :2].flat}
        found = BLOCKED.lines(h=(1, 3), w=(0, 2), line_bytes=line)
        assert found.total == len(touched)
    shifted = {(4 * p + 60) // 64 for p in offsets(BLOCKED).flat}
    assert BLOCKED.lines(base=60).total == len(shifted) == 16
    with pytest.raises(PleatError, match="numbers"):
        Layout("NCHW4c").lines()


def waves_of(layout, lanes, banks=32):
    words = {}
    for index in lanes:
        word = layout.offset(*index)
        words.setdefault(word % banks, set()).add(word)
    return max(map(len, words.values()))


@pytest.mark.parametrize("text", ["i, j -> i, j", "i, j -> i, (i + j) % 32", "i, j -> j, i",
                                  "i, j -> i, j ^ (i % 8)"])
def test_bank_conflicts(text):
    layout = Layout(text, (32, 32))
    columns = [(i, 3) for i in range(32)]
    assert layout.bank_conflicts({"i": (0, 32), "j": 3}).degree == waves_of(layout, columns)
    tiles = [(i, 4 * j) for i in range(8) for j in range(4)]
    found = layout.bank_conflicts("i=0:8, j=0:16:4")
    assert found.degree == waves_of(layout, tiles) and found.waves >= found.degree
    lanes = {"map": "lane -> lane, lane", "extents": [32]}
    assert layout.bank_conflicts(lanes).degree == waves_of(layout, [(i, i) for i in range(32)])


def test_symbolic_bank_conflicts():
    pitch = Layout("i, j -> i, j", (32, "W"), where="W % 32 == 0")
    assert pitch.bank_conflicts("i=0:32").degree == 32
    with pytest.raises(Undecided):
        Layout("i, j -> i, j", (32, "W")).bank_conflicts("i=0:32")


def test_best_swizzle():
    found = Layout("i, j -> i, j", (32, 32)).best_swizzle([{"i": (0, 32)}, {"j": (0, 32)}])
    assert found.optimal and found.name == "Swizzle<5,0,5>" and found.waves == found.bound == (1, 1)
    assert found.layout.bank_conflicts("i=0:32").degree == 1
    with pytest.raises(PleatError):
        Layout("i, j -> i*3 + j", (4, 3)).best_swizzle(["i=0:4"])


def test_copies():
    shards = Layout("i, j -> i//8 @device, i%8, j", (64, 48))
    everywhere = Layout("i, j; r=8 -> i, j, r @device", (64, 48))
    plan = shards.copy_plan(everywhere)
    assert (plan.copies, plan.still) == (8 * 64 * 48, 8 * 48)
    levels = {level.resource: level for level in plan.levels}
    assert (levels["device"].elements, levels["device"].bytes) == (21504, 86016)
    assert levels["memory"].elements == 64 * 48 - plan.still
    fragment = Layout("i, j -> i%8*4 + j//2%4 @lane, i//8*2 + j%2 @register", (16, 8))
    moves = fragment.copy_plan(Layout("i, j -> i*4 + j//2 @lane, j%2 @register", (16, 8))).moves
    assert any(m.source == Place("register", 2) and m.target == Place("lane", 32) for m in moves)


def test_offset_maps_and_where():
    assert Layout("i, j -> j, i", (3, 4)).offset_map() == "i, j -> j*3 + i"
    a = Layout("c -> c//16, c%16", ("C",), where="C % 16 == 0")
    both = a.direct_sum(Layout("k -> k//8, k%8", ("K",), where="K % 8 == 0"))
    assert both.is_onto() and both.shape == ("C", "K")


def test_index_maps_on_symbols():
    blocked = IndexMap.from_func(lambda c: [c // 16, c % 16])
    assert str(blocked.inverse(["C"], where="C % 16 == 0")) == "p0, p1 -> p0 * 16 + p1"
    back, padding = blocked.non_surjective_inverse(["C"])
    assert str(padding) == "C <= p0 * 16 + p1"
    assert blocked.map_shape(["C"], where="C % 16 == 0") == ["C//16", 16]


def test_comparisons_of_indices():
    from pleat import tir
    seen = []
    made = IndexMap.from_func(lambda i, j: [seen.extend([i == i, i == j, i != j]) or
                                            tir.if_then_else(i != 3, tir.floordiv(i, 4), tir.ceildiv(j, 2))])
    assert str(made) == "i, j -> select(i != 3, i // 4, (j + 2 - 1) // 2)"
    assert list(map(bool, seen)) == [True, False, True] and str(seen[1]) == "i == j"
    assert [made.map_indices([i, 5])[0] for i in (3, 9)] == [3, 2]
    assert made.final_indices[0] != 3 and made.initial_indices[0] in made.initial_indices


def test_what_it_shows():
    assert BLOCKED._repr_svg_().startswith("<svg")
    assert repr(SKEWED) == "Layout('i, j -> i, (i + j) % 8', (4, 8))"
    for kind in ("index-map", "lambda", "named", "tag"):
        assert Layout(BLOCKED.spell(kind), (2, 6, 3, 5)).equal(BLOCKED)
    assert Layout("(4,8):(1@1,1@0)").equal(Layout("i, j -> j, i", (4, 8)))
