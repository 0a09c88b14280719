# SPDX-License-Identifier: Apache-2.0
"""Intrinsics that tensor expressions declare (te.decl_tensor_intrin), in schedules of tensor expressions."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402


def product(m, n, k):
    """Rows of A times rows of B, which may be run by row_intrinsic."""
    A, B = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B")
    r = te.reduce_axis((0, k), "r")
    return A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")


def check(s, args, expected):
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, a.shape).astype("float32") for a in args]
    pleat.build(s, args)(*arrays)
    np.testing.assert_array_equal(arrays[-1], expected(*arrays[:-1]))


def row_intrinsic(m, l, has_update=True):
    """An intrinsic of Python that adds the products of the rows of b and a vector."""
    a, b = te.placeholder((l,), name="a"), te.placeholder((m, l), name="b")
    k = te.reduce_axis((0, l), "k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    rows = tir.decl_buffer(b.shape, b.dtype, "b", offset_factor=1, strides=[te.var("stride"), 1])
    flat = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name, offset_factor=1) for t in (a, c)}

    @pleat.register_func("te_test.rows", override=True)
    def add_rows(a, b, c):
        np.asarray(c)[:] += np.asarray(b) @ np.asarray(a)

    def statements(ins, outs):
        call = tir.call_packed("te_test.rows", *ins, *outs)
        return (call, None, call) if has_update else call
    return te.decl_tensor_intrin(c.op, statements, name="te_rows", binds={**flat, b: rows})


@pytest.mark.parametrize("k, inner, rows", [(1, None, 4), (7, None, 1), (7, None, 4), (15, 5, 4), (4, 1, 1)])
def test_intrinsics_of_tensor_expressions(k, inner, rows):
    A, B, C = product(5, 8, k)
    s = te.create_schedule(C.op)
    r, = C.op.reduce_axis
    jo, ji = s[C].split(C.op.axis[1], rows)
    if inner:  # below a loop of the reduction, and with loops in another order than the intrinsic's
        ro, ri = s[C].split(r, inner)
        s[C].reorder(C.op.axis[0], jo, ro, ri, ji)
    s[C].tensorize(ri if inner else ji, row_intrinsic(rows, inner or k))
    check(s, [A, B, C], lambda a, b: a @ b.T)


def test_intrinsics_that_do_not_fit():
    A, B, C = product(4, 8, 9)
    s = te.create_schedule(C.op)
    ro, ri = s[C].split(C.op.reduce_axis[0], 3)
    s[C].reorder(ro, *C.op.axis, ri)
    s[C].tensorize(C.op.axis[1], row_intrinsic(8, 3, has_update=False))
    with pytest.raises(ScheduleError, match="test_te_intrinsics.py:.*which has no statements that add"):
        pleat.lower(s, [A, B, C])
    s[C].steps.pop()
    s[C].tensorize(C.op.axis[1], row_intrinsic(8, 4))
    with pytest.raises(ScheduleError, match="test_te_intrinsics.py:.*is not what intrinsic 'te_rows"):
        pleat.lower(s, [A, B, C])
    with pytest.raises(pleat.PleatError, match="no value of te.compute"):
        te.compute((4,), lambda i: row_intrinsic(8, 3)(A[i, 0]))
    with pytest.raises(ValueError, match="input C is not a te.placeholder"):
        te.decl_tensor_intrin(te.compute((4, 8), lambda i, j: C[i, j], name="D").op, None)
