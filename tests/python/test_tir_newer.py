# SPDX-License-Identifier: Apache-2.0
"""The dialect of TVM since 2026 from Python: assigned names are variables, and what only GPUs have is
read and printed, and refused for running."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir  # noqa: E402
from pleat.script import tirx as T  # noqa: E402


@T.prim_func
def sums(A: T.Buffer((7,), "int32"), B: T.Buffer((3,), "int32"), last: T.Buffer((1,), "int32")):
    total: T.int32 = 0
    first = A[0]
    fixed: T.let = first
    for i in range(7):
        total = total + A[i]
        first += 2
        if A[i] > 6:
            first = first * 3
    B[0] = total
    B[1] = first
    B[2] = fixed
    last = last + 5


def expected(a, last):
    first = int(a[0])
    for value in a:
        first += 2
        if value > 6:
            first *= 3
    return [int(a.sum()), first, int(a[0])], [last + 5]


def test_assigned_names_are_variables():
    a, b, last = np.array([3, 9, -4, 1, 7, 0, 2], "int32"), np.zeros(3, "int32"), np.array([11], "int32")
    pleat.build(sums)(a, b, last)
    assert (b.tolist(), last.tolist()) == expected(a, 11)


def test_variables_are_printed_and_read_in_both_dialects():
    for newer in (False, True):
        text = sums.script(newer_names=newer)
        assert pleat.ir.structural_equal(pleat.script.from_source(text), sums)
        assert ("total = total + A[i]" in text) == newer


def test_the_classic_dialect_names_values():
    T = tir  # noqa: N806

    @T.prim_func
    def lets(A: T.Buffer((7,), "int32"), B: T.Buffer((1,), "int32")):
        total: T.int32 = 3
        for i in range(7):
            total = total + A[i]
            T.evaluate(total)
        B[0] = total
    b = np.zeros(1, "int32")
    pleat.build(lets)(np.ones(7, "int32"), b)
    assert b.tolist() == [3]


def test_a_type_once_stated_stays():
    with pytest.raises(pleat.PleatError, match="is stored in count, which holds int32"):
        @T.prim_func
        def wrong(A: T.Buffer((7,), "float32")):
            count = 0
            count = A[0]
            T.evaluate(count)


def test_programs_with_tiles_do_not_run():
    @T.prim_func
    def tiles(A: T.Buffer((8, 4), "float32")):
        B = T.alloc_shared((8, 4), "float32", layout=T.TileLayout(T.S[(8, 4):(1, 8)]))
        for i, j in T.grid(8, 4):
            B[i, j] = A[i, j]
        for i, j in T.grid(8, 4):
            A[i, j] = B[i, j]
    assert "layout=T.TileLayout(T.S[(8, 4):(1, 8)])" in tiles.script()
    with pytest.raises(pleat.PleatError, match="layout of tiles of B is read and printed"):
        pleat.build(tiles)

    @T.prim_func
    def threads(A: T.Buffer((32,), "float32")):
        tx = T.thread_id([32])
        A[tx] = T.cuda.fdividef(A[tx], T.float32(2))
    with pytest.raises(pleat.PleatError, match="T.thread_id is read and printed"):
        pleat.build(threads)


def test_other_layouts_differ():
    text = sums.script(newer_names=True)
    plain = text.replace('A: T.Buffer((7,), "int32")', 'A: T.Buffer((7,), "int32", layout=None)')
    tiled = text.replace('A: T.Buffer((7,), "int32")',
                         'A: T.Buffer((7,), "int32", layout=T.TileLayout(T.S[7:2]))')
    programs = [pleat.script.from_source(t) for t in (text, plain, tiled)]
    for i, a in enumerate(programs):
        for k, b in enumerate(programs):
            assert pleat.ir.structural_equal(a, b) == (i == k)
