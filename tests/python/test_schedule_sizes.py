# SPDX-License-Identifier: Apache-2.0
"""Steps on loops whose extents are sizes of the arguments."""
import re

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402


@T.prim_func
def of_two_sizes(a: T.handle, d: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (5, n, m), "float32")
    D = T.match_buffer(d, (5, n, m), "float32")
    B = T.alloc_buffer((5, n, m), "float32")
    for i, j, k in T.grid(5, n, m):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj, vk] + T.float32(1)
    for i, j, k in T.grid(5, n, m):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            D[vi, vj, vk] = B[vi, vj, vk] * T.float32(2)


@pytest.mark.parametrize("move", ["compute_at", "reverse_compute_at"])
def test_fused_loops_of_sizes_run_over_the_whole_domain(move):
    sch = tir.Schedule(of_two_sizes)
    loops = {name: sch.fuse(*sch.get_loops(name)) for name in "BD"}
    getattr(sch, move)(*(("B", loops["D"]) if move == "compute_at" else ("D", loops["B"])))
    assert sch.mod.script().count("for ") == 1
    a = np.arange(5 * 3 * 4, dtype="float32").reshape(5, 3, 4)
    d = np.zeros_like(a)
    pleat.build(sch.mod, cache=False)(a, d)
    assert np.array_equal(d, (a + 1) * 2)


@T.prim_func
def in_part(a: T.handle, d: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (5, n, m), "float32")
    D = T.match_buffer(d, (5, n, m), "float32")
    for i, j, k in T.grid(4, n, m):
        with T.block("D"):
            vi = T.axis.spatial(5, i)
            vj, vk = T.axis.remap("SS", [j, k])
            D[vi, vj, vk] = A[vi, vj, vk] * T.float32(2)


def test_fused_loops_of_sizes_that_leave_elements_out():
    sch = tir.Schedule(in_part)
    sch.fuse(*sch.get_loops("D"))
    with pytest.raises(ScheduleError, match="not proved to run over its domain: the binding of vi"):
        sch.blockize(sch.get_loops("D")[0])


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, r in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]


@pytest.mark.parametrize("order", ["parallel first", "parallel last"])
def test_packed_copies_in_parallel_loops(order):
    """Each iteration of the parallel loop makes the copies that it reads, up to the ends of the tensors."""
    sch = tir.Schedule(product)
    i, j, r = sch.get_loops("C")
    i, i0 = sch.split(i, [None, 4])
    j, j0 = sch.split(j, [None, 8])
    sch.reorder(i, j, r, i0, j0)
    if order == "parallel first":
        sch.parallel(i)
    copy = sch.cache_read("C", 1, "global")
    sch.compute_at(copy, j)
    sch.transform_layout(copy, ("write", 0), lambda k, j: [j // 8, k, j % 8])
    if order == "parallel last":
        sch.parallel(i)
    assert "T.axis.spatial(m, j_0 * 8 + ax1)" in sch.mod.script()
    run = pleat.build(sch.mod, cache=False)
    for n, m, k in ((5, 9, 3), (13, 8, 4)):
        a, b = (np.arange(x * y, dtype="float32").reshape(x, y) % 5 for x, y in ((n, k), (k, m)))
        c = np.zeros((n, m), "float32")
        run(a, b, c)
        assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("index, is_made", [("vj", True), ("vj // 4 * 4", False), ("T.min(vj + 1, 8)", False),
                                            ("8 - vj", False)])
def test_rows_that_parallel_iterations_write_and_read(index, is_made):
    """An element may have been written in the last iteration of the outer loop when it is read."""
    sch = tir.Schedule(pleat.script.from_source(f"""
@T.prim_func
def f(A: T.Buffer((16, 9), "float32"), C: T.Buffer((16, 9), "float32")):
    B = T.alloc_buffer((9,))
    for i, j in T.grid(16, 9):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj] = A[vi, vj]
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[{index}]
""", {"T": T}))
    i, j = sch.get_loops("C")
    if is_made:
        return sch.parallel(i)
    with pytest.raises(ScheduleError, match="iterations of loop 'i' are not proved to be independent: block 'B'"):
        sch.parallel(i)


def test_the_init_of_an_empty_reduction_is_not_fused_away():
    sch = tir.Schedule(product)
    i, j, r = sch.get_loops("C")
    with pytest.raises(ScheduleError, match="the reduction of block 'C' may have no iterations"):
        sch.fuse(j, r)
    sch.decompose_reduction("C", i)
    sch.fuse(*sch.get_loops("C_update"))
    c = np.full((3, 2), 9, "float32")
    pleat.build(sch.mod, cache=False)(np.zeros((3, 0), "float32"), np.zeros((0, 2), "float32"), c)
    assert np.array_equal(c, np.zeros((3, 2)))


@T.prim_func
def of_rows(a: T.handle, B: T.Buffer((3,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "float32")
    for i, k in T.grid(3, n):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vk]


def test_a_free_size_in_a_number_of_parts():
    """The parts may have no iterations, and all but the first may be empty; the init is stored once."""
    steps = {"partial results of parts": lambda sch, i, part, k: sch.rfactor(part, 0),
             "partial results across parts": lambda sch, i, part, k: sch.rfactor(k, 1),
             "fused parts": lambda sch, i, part, k: sch.fuse(part, k),
             "parts outside": lambda sch, i, part, k: (sch.reorder(part, i), sch.rfactor(part, 1)),
             "parallel parts": lambda sch, i, part, k: sch.parallel(sch.get_loops(sch.rfactor(part, 0))[1]),
             "an init before the parts": lambda sch, i, part, k: sch.decompose_reduction("B", part)}
    for name, step in steps.items():
        sch = tir.Schedule(of_rows)
        i, k = sch.get_loops("B")
        step(sch, i, *sch.split(k, [100 if "init" in name else 4, None]))
        run = pleat.build(sch.mod, cache=False, quick=True)
        for n in (0, 1, 5, 8):
            a, b = np.arange(3 * n, dtype="float32").reshape(3, n), np.full(3, 9, "float32")
            run(a, b)
            assert np.array_equal(b, 1 + a.sum(1)), (name, n)
        assert not re.search(r"\b0 (//|%)", tir.transform.LowerInitBlock()(sch.mod).script())


PARTS = {"parallel": lambda sch, outer, inner: sch.parallel(outer),
         "vectorize": lambda sch, outer, inner: sch.vectorize(inner),
         "bind": lambda sch, outer, inner: (sch.bind(outer, "blockIdx.x"), sch.bind(inner, "threadIdx.x"))}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_fused_loops_of_sizes_are_apart(name):
    """The elements of (a * 4 + b) // m and (a * 4 + b) % m are those of one number below n * m."""
    sch = tir.Schedule(in_part)
    with pytest.raises(ScheduleError, match="not proved to be independent"):  # all parts write row 0
        again = tir.Schedule(pleat.script.from_source(
            in_part.script().replace("D[vi, vj, vk]", "D[0, vj, vk // 2]")))
        again.parallel(again.split(again.fuse(*again.get_loops("D")), [None, 4])[0])
    outer, inner = sch.split(sch.fuse(*sch.get_loops("D")), [None, 4])
    PARTS[name](sch, outer, inner)
    run = pleat.build(sch.mod, cache=False)
    for shape in [(5, 3, 7), (5, 1, 1), (5, 0, 3), (5, 4, 2)]:
        a = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        d = np.full_like(a, -1)
        run(a, d)
        assert np.array_equal(d[:4], a[:4] * 2) and (d[4] == -1).all()


def test_conditions_of_parts_of_sizes():
    """Conditions that hold in all iterations of a part are left out, so that whole tiles are blocks."""
    tiles, fused = tir.Schedule(of_two_sizes), tir.Schedule(of_two_sizes)
    outer, _ = tiles.split(tiles.get_loops("B")[1], [None, 4])
    tiles.reorder(outer, tiles.get_loops("B")[0])
    tiles.loop_partition(outer, [None, 1])
    tiles.blockize(tiles.get_loops("B_j_00")[1])
    assert "T.where(j_01 * 4 + j_1 < n and j_01 >= 0)" in tiles.mod.script()
    fused.loop_partition(fused.fuse(*fused.get_loops("D")[1:]), [1])
    text = fused.mod.script()
    assert text.count("T.where(") == 1 and "T.where(j_k_fused0 < m * n)" in text
    for sch in (tiles, fused):
        built = pleat.build(sch.mod, cache=False, quick=True)
        for n, m in [(0, 3), (1, 1), (3, 2), (4, 2), (5, 0), (9, 1)]:
            a = np.arange(5 * n * m, dtype="float32").reshape(5, n, m)
            d = np.full_like(a, 77)
            built(a, d)
            assert np.array_equal(d, (a + 1) * 2)


@pytest.mark.parametrize("rows, columns", [([2, None, 3], [None, 2]), ([2, 3], [4, None])])
def test_parts_of_loops_of_sizes(rows, columns):
    """The first parts take iterations before the last ones, of which there may be none."""
    sch = tir.Schedule(of_two_sizes)
    middle = sch.loop_partition(sch.get_loops("B")[1], rows)[1]
    sch.loop_partition(sch.get_loops("D")[2], columns)
    sch.parallel(middle)
    assert pleat.script.from_source(sch.mod.script()).script() == sch.func.script()
    built = pleat.build(sch.mod, cache=False, quick=True)
    for n, m in [(0, 3), (1, 1), (4, 2), (5, 0), (7, 5)]:
        a = np.arange(5 * n * m, dtype="float32").reshape(5, n, m)
        d = np.full_like(a, 77)
        built(a, d)
        assert np.array_equal(d, (a + 1) * 2)


@T.prim_func
def steps_of_one(S: T.Buffer((5, 1), "int64"), X: T.Buffer((5, 1), "int64")):
    for t, i in T.grid(4, 1):
        with T.block("S"):
            vt, vi = T.axis.opaque(4, t), T.axis.spatial(1, i)
            S[vt + 1, vi] = S[vt, vi] * T.int64(2) + X[vt, vi]


def test_a_loop_of_which_one_iteration_runs():
    """Iterations beyond an extent of 1 do nothing, so the loop may be parallel."""
    sch = tir.Schedule(steps_of_one)
    sch.parallel(sch.split(sch.get_loops("S")[1], [None, 4])[1])
    s, x = np.zeros((5, 1), "int64"), np.arange(5).reshape(5, 1)
    pleat.build(sch.mod, cache=False, quick=True)(s, x)
    assert s[:, 0].tolist() == [0, 0, 1, 4, 11]


@T.prim_func
def reversed_copy(A: T.Buffer((16,), "int32"), n: T.int32, C: T.Buffer((16,), "int32")):
    T.assume(n > 0)
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[15 - vi]


@pytest.mark.parametrize("padding", [{}, {"pad_value": 0}])
@pytest.mark.parametrize("index_map", [
    lambda i, n: [i // n, i % n], lambda i, n: [i % n, i // n],
    lambda i, n: [i // (n * 2), i % (n * 2) // n, i % n]])
def test_layouts_of_known_sizes_by_a_parameter(index_map, padding):
    sch = tir.Schedule(reversed_copy)
    n = reversed_copy.params[1]
    sch.transform_layout("B", "B", lambda i: index_map(i, n), **padding)
    run = pleat.build(sch.mod, cache=False)
    a = np.arange(16, dtype="int32")
    for value in (1, 3, 16, 40):
        c = np.zeros_like(a)
        run(a, value, c)
        assert np.array_equal(c, a[::-1] * 2)


def test_layouts_by_a_parameter_that_are_refused():
    sch = tir.Schedule(reversed_copy)
    n = reversed_copy.params[1]
    with pytest.raises(ScheduleError, match=r"B\[0\] and B\[4\] would both .* at \[0, 0\], where n = 5"):
        sch.transform_layout("B", "B", lambda i: [i // n, i % 4])


@pytest.mark.parametrize("element, is_made", [("vt - 1, vi", True), ("vt - 1, n - 1 - vi", False),
                                              ("vt - 1, T.max(vi - 1, 0)", False), ("vt, vi", True)])
@pytest.mark.parametrize("parts", [[16, None], [None, 16]])
def test_steps_in_a_number_of_parts(element, is_made, parts):
    """Iterations access elements of several rows, which differ in their columns."""
    sch = tir.Schedule(pleat.script.from_source(f"""
@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (7, n), "float32")
    B = T.match_buffer(b, (7, n), "float32")
    for t, i in T.grid(6, n):
        with T.block("b"):
            vt, vi = T.axis.opaque((1, 7), t + 1), T.axis.spatial(n, i)
            B[vt, vi] = B[{element}] + A[vt, vi]
"""))
    t, i = sch.get_loops("b")
    outer, _ = sch.split(i, parts)
    if not is_made:
        for step in (lambda: sch.parallel(outer), lambda: sch.reorder(outer, t)):
            with pytest.raises(ScheduleError, match="block 'b' writes 'B', and iterations may access the same"):
                step()
        return
    sch.reorder(outer, t)
    sch.parallel(outer)
    a = np.arange(7 * 37, dtype="float32").reshape(7, 37) % 5
    b = np.ones_like(a)
    pleat.build(sch.mod, cache=False)(a, b)
    assert np.array_equal(b[1:], 1 + (np.cumsum(a[1:], 0) if "- 1" in element else a[1:]))
