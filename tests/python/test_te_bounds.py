# SPDX-License-Identifier: Apache-2.0
"""The ranges of loops that te.schedule.InferBound gives, by TVM's names."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402


def window(n, m):
    """B[i, j] reads A at rows i to i + 2."""
    A = te.placeholder((n + 2, m), name="A")
    twice = te.compute((n + 2, m), lambda i, j: A[i, j] * 2.0, name="twice")
    return twice, te.compute((n, m), lambda i, j: twice[i, j] + twice[i + 2, j], name="B")


@pytest.mark.parametrize("n", [13, "n"])
def test_ranges(n):
    n = te.var(n) if isinstance(n, str) else n
    twice, B = window(n, 7)
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    s[twice].compute_at(s[B], outer)
    columns, _ = s[twice].split(twice.op.axis[1], nparts=2)
    ranges = te.schedule.InferBound(s)
    assert ranges[inner].extent == 4 and ranges[columns].extent == 2 and ranges[B.op.axis[1]].extent == 7
    assert pleat.ir.structural_equal(ranges[B.op.axis[0]].extent, B.op.axis[0].dom.extent)
    assert ranges[twice.op.axis[0]].extent == 6 and ranges[twice.op.axis[1]].min == 0
    assert pleat.ir.structural_equal(ranges[twice.op.axis[0]].min, outer * 4)
    statement = te.schedule.ScheduleOps(s, ranges)
    assert isinstance(statement, pleat.tir.Stmt) and "T.block" not in str(statement)


def test_parts_that_are_longer_than_the_loop():
    """The longer part has the iterations that there are, unless the loop is one of threads."""
    A = te.placeholder((3, 5), name="A")
    B = te.compute((3, 5), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 32)
    parts, within = s[B].split(B.op.axis[1], nparts=7)
    ranges = te.schedule.InferBound(s)
    assert [int(ranges[axis].extent) for axis in (outer, inner, parts, within)] == [1, 3, 5, 1]
    assert pleat.driver.build_module.schedule_to_module(s, [A, B])["main"].script() == pleat.lower(s, [A, B]).script()
    built, b = pleat.build(s, [A, B], cache=False), np.zeros((3, 5), "float32")
    built(np.ones((3, 5), "float32"), b)
    assert (b == 2).all()
    s[B].pragma(outer, "unroll_explicit", 0)
    assert [key.value for key in s[B].iter_var_attrs[outer].pragma_keys] == ["unroll_explicit"]
    s[B].bind(inner, te.thread_axis("threadIdx.x"))
    assert te.schedule.InferBound(s)[inner].extent == 32


def test_outputs_and_refusals():
    A = te.placeholder((5,), name="A")
    pair = te.compute((5,), lambda i: (A[i] + 1.0, A[i] * A[4 - i]), name="pair")
    s = te.create_schedule([one.op for one in pair])
    copy = s.cache_read(A, "local", [pair[0].op])
    assert te.schedule.InferBound(s)[copy.op.axis[0]].extent == 5
    assert isinstance(te.schedule.InferBound(s), pleat.container.Map)
    s = te.create_schedule(pair[0].op)
    s[pair[0]].reorder(pair[0].op.axis[0])
    s[pair[0]].set_store_predicate(pair[0].op.axis[0] < 3)
    with pytest.raises(ScheduleError, match="set_store_predicate"):
        te.schedule.InferBound(s)


def test_a_result_that_nothing_uses_is_not_computed():
    n = te.var("n")
    A = te.placeholder((n, 5), name="A")
    low, high = te.compute((n, 5), lambda i, j: (A[i, j] - 1.0, A[i, j] + 1.0), name="pair")
    C = te.compute((n, 5), lambda i, j: low[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], factor=4)
    s[low].compute_at(s[C], outer)
    assert te.schedule.InferBound(s)[low.op.axis[0]].extent == 4
    assert "pair_v1" not in pleat.lower(s, [A, C]).script()
    assert "pair_v0" in te.create_prim_func([A, high]).script()
    built = pleat.build(s, [A, C], cache=False)
    for size in (0, 3, 9):
        a, c = np.arange(5 * size, dtype="float32").reshape(size, 5), np.full((size, 5), 9, "float32")
        built(a, c)
        assert np.array_equal(c, (a - 1) * 2)


@pytest.mark.parametrize("scope, extent", [("shared", 32), ("local", 1), (None, 1)])
def test_memory_that_is_named_decides_on_what_is_computed(scope, extent):
    """Shared memory has what all threads of a block read; set_scope may come before or after compute_at."""
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 2.0, name="B")
    C = te.compute((64,), lambda i: B[i] * 3.0, name="C")
    s = te.create_schedule(C.op)
    if scope:
        s[B].set_scope(scope)
    block, thread = s[C].split(C.op.axis[0], 32)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], thread)
    assert te.schedule.InferBound(s)[B.op.axis[0]].extent == extent


@pytest.mark.parametrize("inner_first", [False, True])
def test_groups_inside_of_groups(inner_first):
    """The inner group is placed by itself, whether before or after the one around it."""
    A = te.placeholder((13, 7), name="A")
    B = te.compute((13, 7), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((13, 7), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((13, 7), lambda i, j: C[i, j] - 3.0, name="D")
    s = te.create_schedule(D.op)
    assert s[B].group is None
    inner = s.create_group(outputs=B, inputs=B, include_inputs=True)
    outer = s.create_group(outputs=C, inputs=B, include_inputs=True)
    assert s.groups == [inner, outer] and inner.group is outer and outer.group is None
    assert s[B].group is inner and s[C].group is outer
    assert (inner.num_child_stages, outer.num_child_stages) == (1, 2)
    places = [lambda: outer.compute_at(s[D], D.op.axis[0]), lambda: inner.compute_at(s[C], C.op.axis[1])]
    for place in reversed(places) if inner_first else places:
        place()
    assert outer.attach_stage is s[D] and s[B].attach_stage is s[C] and s[C].attach_stage is s[D]
    ranges = te.schedule.InferBound(s)
    assert [ranges[a].extent for a in (*B.op.axis, *C.op.axis)] == [1, 1, 1, 7]


@pytest.mark.parametrize("n", [7, 8])
def test_parts_of_fused_rows_in_parallel(n):
    """Five of the fused rows are in two matrices, all of which each part computes."""
    A, B = te.placeholder((16 // n, n, 3), name="A"), te.placeholder((16 // n, 3, 8), name="B")
    k = te.reduce_axis((0, 3), name="k")
    C = te.compute((A.shape[0], n, 8), lambda q, i, j: te.sum(A[q, i, k] * B[q, k, j], axis=k), name="C")
    D = te.compute(C.shape, lambda q, i, j: C[q, i, j] + 1.0, name="D")
    s = te.create_schedule(D.op)
    q, i, j = D.op.axis
    rows, row = s[D].split(s[D].fuse(q, i), 5)
    columns, column = s[D].split(j, 4)
    s[D].reorder(rows, columns, row, column)
    s[C].compute_at(s[D], columns)
    s[D].vectorize(column)
    s[D].parallel(rows)
    a, b = (np.arange(np.prod([int(e) for e in t.shape]), dtype="float32").reshape([int(e) for e in t.shape])
            for t in (A, B))
    d = np.zeros([int(e) for e in D.shape], "float32")
    pleat.build(s, [A, B, D], cache=False, quick=True)(a, b, d)
    assert np.array_equal(d, a @ b + 1)
