# SPDX-License-Identifier: Apache-2.0
"""Steps on loops whose extents are sizes of the arguments."""
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
