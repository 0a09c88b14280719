# SPDX-License-Identifier: Apache-2.0
"""pleat.build: where the elements of arguments are in memory, where programs allocate memory, and that indices and
counts which leave their type reach no other memory."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir as T  # noqa: E402


# ---- Strides, offsets, vectors ----------------------------------------------------------------------

@T.prim_func
def spread(a: T.handle, b: T.handle):
    m, n, s, t, u, w = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "float32", strides=[s, t])
    B = T.match_buffer(b, (m, n), "float32", strides=[u, w])
    for i, j in T.grid(m, n):
        B[i, j] = A[i, j] * T.float32(2) + T.Cast("float32", s)


@T.prim_func
def rows_of_seven(a: T.handle, B: T.Buffer((3, 5), "int32")):
    A = T.match_buffer(a, (3, 5), "int32", strides=[7, 1])
    for i, j in T.grid(3, 5):
        B[i, j] = A[i, j] + 1


@T.prim_func
def shifted(a: T.handle, B: T.Buffer((4, 4), "float32")):
    A = T.match_buffer(a, (4, 4), "float32", elem_offset=6)
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func
def vectors(A: T.Buffer((6,), "float32x4"), b: T.handle):
    q = T.int32()
    B = T.match_buffer(b, (6,), "float32x4", elem_offset=q, offset_factor=2)
    for i in range(6):
        B[i] = A[i] + T.Broadcast(T.float32(1), 4)


def test_free_strides_are_those_of_the_array():
    run = pleat.build(spread, cache=False)
    x, y = np.random.default_rng(3).random((11, 13), "float32"), np.zeros((13, 29), "float32")
    for a, b in ((x[:7, :5], y[:7, :5]), (x.T[1:8:2, 2:7], y[3:7, 4:24:4]),
                 (x[::-1, ::-1][:3, :11], y[9::-4, 21:10:-1]), (x[:0], y[:0, :13]),
                 (x[:1, :1], y[5:6, 5:6]), (np.broadcast_to(x[0], (4, 13)), y[:4, :13])):
        y[...] = -1
        run(a, b)
        assert np.array_equal(b, a * np.float32(2) + np.float32(a.strides[0] // 4))
        b[...] = -1
        assert (y == -1).all()  # elements in the gaps are as they were


def test_elements_of_an_output_have_addresses_of_their_own():
    run = pleat.build(spread, cache=False)
    a, b = np.ones((4, 13), "float32"), np.zeros(99, "float32")
    with pytest.raises(pleat.PleatError, match="'B'.* two elements may have one address"):
        run(a, np.lib.stride_tricks.as_strided(b, (4, 13), (48, 4)))
    run(a, np.lib.stride_tricks.as_strided(b, (4, 13), (4, 16)))
    assert (b[:52] == 15).all() and not b[52:].any()


def test_stated_strides_are_checked():
    run = pleat.build(rows_of_seven, cache=False)
    x, b = np.arange(21, dtype="int32").reshape(3, 7), np.zeros((3, 5), "int32")
    run(x[:, 1:6], b)
    assert np.array_equal(b, x[:, 1:6] + 1)
    with pytest.raises(ValueError, match=r"'A' has stride 5 in axis 0, expected 7: .* \[5, 1\]"):
        run(np.zeros((3, 5), "int32"), b)


def test_offsets_are_those_in_the_memory_of_the_array(tmp_path):
    run = pleat.build(shifted, cache=False)
    memory, b = np.arange(30, dtype="float32"), np.zeros((4, 4), "float32")
    run.export_library(tmp_path / "m.pleat")
    for one in (run, pleat.runtime.load_module(tmp_path / "m.pleat")):
        b[...] = 0
        one(memory[6:22].reshape(4, 4), b)
        assert np.array_equal(b, 2 * memory[6:22].reshape(4, 4))
        with pytest.raises(ValueError, match="'A' begins 20 bytes .*, expected 6 elements"):
            one(memory[5:21].reshape(4, 4), b)
        with pytest.raises(ValueError, match="'A' begins 0 bytes .*, expected 6 elements"):
            one(memory[:16].reshape(4, 4).copy(), b)


def test_vectors_are_the_last_axis(tmp_path):
    run = pleat.build(vectors, cache=False)
    a, b = np.random.default_rng(3).random((6, 4), "float32"), np.zeros((9, 4), "float32")
    wide = np.zeros((6, 8), "float32")
    run(a, b[3:])
    assert np.array_equal(b[3:], a + 1) and not b[:3].any()
    run.export_library(tmp_path / "m.pleat")
    pleat.runtime.load_module(tmp_path / "m.pleat")(a + 1, b[3:])
    assert np.array_equal(b[3:], a + 1 + 1)
    run(wide[:, 4:], b[3:])
    assert (b[3:] == 1).all()
    with pytest.raises(ValueError, match=r"shape \[3, 8\] .* the 4 lanes"):
        run(a.reshape(3, 8), b[3:])
    with pytest.raises(ValueError, match="strides .* the 4 lanes"):
        run(np.zeros((6, 5), "float32")[:, :4], b[3:])


def test_alignment():
    @T.prim_func
    def copy(a: T.handle, B: T.Buffer((5,), "float32", align=64)):
        s = T.int32()
        A = T.match_buffer(a, (5,), "float32", align=64, strides=[s])
        for i in range(5):
            B[i] = A[i]
    run = pleat.build(copy, cache=False)
    memory, bytes_ = np.arange(64, dtype="float32"), np.zeros(21, "uint8")
    first = (-memory.ctypes.data // 4) % 16
    b = bytes_[1:].view("float32")  # is copied
    run(memory[first:first + 20:4], b)
    assert np.array_equal(b, memory[first:first + 20:4])
    with pytest.raises(pleat.PleatError, match="'A' .* expected a multiple of 64 bytes"):
        run(memory[first + 1:first + 21:4], b)


# ---- Allocations ------------------------------------------------------------------------------------

def test_memory_of_a_negative_extent_has_no_elements():
    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), n: T.int32):
        B = T.alloc_buffer((n,), "float32")
        for i in range(2):
            B[i] = A[i]
        for i in range(2):
            A[i + 2] = B[i]

    run = pleat.build(copy, cache=False)
    for n in (-1, -2):
        with pytest.raises(pleat.PleatError, match=r"B\[i\] is out of bounds: index 1 of axis 0 is outside of"):
            run(np.zeros(4, "float32"), n)


@pytest.mark.parametrize("sizes", [(4, 10), (1, 10), (3, 7)])
def test_memory_that_only_some_iterations_fill_stays_outside_of_their_loop(sizes):
    """The iterations after the first one read what that stored, so each must not have memory of its own."""
    steps, n = sizes

    @T.prim_func
    def filled_once(A: T.Buffer((n, 7), "float32"), L: T.Buffer((7, n), "float32")):
        S = T.alloc_buffer((7, n))
        for i, k in T.grid(7, steps):
            for j in range(n):
                with T.block("S"):
                    vi = T.axis.spatial(7, i)
                    vj = T.axis.spatial(n, k * n + j)
                    T.where(k * n + j < n)
                    S[vi, vj] = A[vj, vi]
                with T.block("L"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    L[vi, vj] = S[vi, vj]
    text = pleat.tir.transform.LowerOpaqueBlock()(pleat.IRModule({"f": filled_once})).script()
    assert steps == 1 or text.index(f"S = T.decl_buffer((7, {n})") < text.index(f" {steps}, {n})")
    a, c = np.random.default_rng(6).random((n, 7), "float32"), np.zeros((7, n), "float32")
    pleat.build(filled_once)(a, c)
    assert np.array_equal(c, a.T)


# ---- Counts and addresses ----------------------------------------------------------------------------

def test_loops_whose_extents_overflow_do_not_run():
    @T.prim_func
    def fill(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
        for i in range(T.max(n * m, 0)):
            if n * m < 8:
                A[i] = T.float32(1)

    run = pleat.build(fill, cache=False)
    memory = np.zeros(64, "float32")
    for n, m, written in ((-4, 1073741819, 0), (2, -2147483628, 0), (7, 1, 7), (-3, 5, 0)):  # the first wrap to 20
        memory[:] = 0
        run(memory[:8], n, m)
        assert memory.sum() == memory[:8].sum() == written


@pytest.mark.parametrize("program", [spread, shifted, vectors])
def test_lowered_programs_stay_as_they_are(program):
    lower = pleat.tir.transform.Lower()
    once = lower(pleat.IRModule({"f": program}))
    pleat.ir.assert_structural_equal(lower(once), once)
    again = pleat.script.from_source(once.script())
    pleat.ir.assert_structural_equal(lower(again), again)


def test_workspace_of_a_lowered_program_stays():
    @T.prim_func
    def transposed(a: T.handle, c: T.handle):
        n, m = T.int64(), T.int32()
        A = T.match_buffer(a, (n, m), "float32")
        C = T.match_buffer(c, (m, n), "float32")
        D = T.alloc_buffer((n, m), "float32")
        for i, j in T.grid(n, m):
            D[i, j] = A[i, j] + T.float32(1)
        for i, j in T.grid(m, n):
            C[i, j] = D[j, i]

    lower = pleat.tir.transform.Lower()
    once = lower(transposed)
    pleat.ir.assert_structural_equal(lower(once), once)


def test_pointers_have_the_bounds_of_their_arrays():
    @T.prim_func
    def copy(p: T.handle("float32"), q: T.handle("float32"), n: T.int32):
        A = T.decl_buffer((8,), "float32", data=p)
        B = T.decl_buffer((2, 4), "float32", data=q)
        for i in range(n):
            A[i] = B[i // 4, i % 4]

    run = pleat.build(copy, cache=False)
    memory, data = np.zeros(12, "float32"), np.arange(8, dtype="float32") + 1
    run(memory, data, 8)
    assert memory.tolist() == [*data, 0, 0, 0, 0]
    with pytest.raises(pleat.PleatError, match=r"A\[i\] is out of bounds: index 4 of its memory is outside of \[0, 4\)"):
        run(memory[:4], data, 5)
    with pytest.raises(pleat.PleatError, match=r"index 2 of axis 0 is outside of \[0, 2\)"):
        run(memory, data, 9)
    with pytest.raises(TypeError, match="argument 'p_memory' has element type int32, expected float32"):
        run(memory.astype("int32"), data, 1)
