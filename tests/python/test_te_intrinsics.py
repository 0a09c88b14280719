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


def test_intrinsics_that_call_functions_of_c():
    A, B = te.placeholder((4, 6), name="A"), te.placeholder((4, 6), name="B")
    C = te.compute(A.shape, lambda i, j: A[i, j] + B[i, j], name="C")
    a, b = (te.placeholder((3,), name=name) for name in "ab")
    c = te.compute((3,), lambda i: a[i] + b[i], name="c")
    flat = {t: tir.decl_buffer(t.shape, t.dtype, t.op.name, offset_factor=1) for t in (a, b, c)}

    def schedule(offset):  # memcpy takes the place of a sum, as the compiler cannot know
        def statements(ins, outs):
            return tir.call_extern("handle", "memcpy", outs[0].access_ptr("w", offset=offset),
                                   ins[1].access_ptr("r"), tir.const(8, "int64"))
        s = te.create_schedule(C.op)
        copy = te.decl_tensor_intrin(c.op, statements, name="te_copy", binds=flat)
        s[C].tensorize(s[C].split(C.op.axis[1], 3)[1], copy)
        return s
    s = schedule(1)
    x, y, z = np.zeros((4, 6), "float32"), np.arange(24, dtype="float32").reshape(4, 6), np.zeros((4, 6), "float32")
    pleat.build(s, [A, B, C], cache=False)(x, y, z)
    assert np.array_equal(z.reshape(8, 3)[:, 1:], y.reshape(8, 3)[:, :2]) and not z[:, ::3].any()
    with pytest.raises(pleat.PleatError, match=r"error: C\[.*\] is out of bounds"):
        pleat.build(schedule(4), [A, B, C], cache=False)
    with pytest.raises(ScheduleError, match="import_llvm asks; compile that to a shared library, load it by ctypes"):
        s[C].pragma(C.op.axis[0], "import_llvm", "define …")


def test_intrinsics_that_do_not_fit():
    A, B, C = product(4, 8, 9)
    s = te.create_schedule(C.op)
    ro, ri = s[C].split(C.op.reduce_axis[0], 3)
    s[C].reorder(ro, *C.op.axis, ri)
    s[C].tensorize(C.op.axis[1], row_intrinsic(8, 3, has_update=False))
    with pytest.raises(ScheduleError, match="test_te_intrinsics.py:.*which has no statements that add"):
        pleat.lower(s, [A, B, C])
    s[C].tensorize(C.op.axis[1], row_intrinsic(8, 4))
    with pytest.raises(ScheduleError, match="test_te_intrinsics.py:.*is not what intrinsic 'te_rows"):
        pleat.lower(s, [A, B, C])
    with pytest.raises(ValueError, match="input C is not a te.placeholder"):
        te.decl_tensor_intrin(te.compute((4, 8), lambda i, j: C[i, j], name="D").op, None)


@pytest.mark.parametrize("k, steps", [(1, None), (3, None), (3, "tile"), (3, "cache"), (1, "at")])
def test_intrinsics_as_values(k, steps):
    A, B = te.placeholder((5, k, 7), name="A"), te.placeholder((4, k, 3, 7), name="B")
    D = te.compute(A.shape, lambda *i: A(*i) + 1.0, name="D")
    ko = te.reduce_axis((0, k), "ko")
    rows = row_intrinsic(3, 7)
    over = {"reduce_axis": ko} if k > 1 else {}
    at = ko if k > 1 else 0
    C = te.compute((5, 4, 3), lambda i, j: rows(D[i, at, 0:7], B[j, at, 0:3], **over), name="C")
    s = te.create_schedule(C.op)
    assert [a.name for a in s[C].leaf_iter_vars] == ["i", "j"] + ["ko"] * (k > 1) + ["i", "k"]
    if steps == "tile":
        s[C].tile(*s[C].op.axis[:2], 2, 2)
    if steps == "cache":
        inside = s.cache_write(C, "global")
        s[inside].compute_at(s[C], s[C].op.axis[0])
    if steps == "at":
        s[D].compute_at(s[C], s[C].op.axis[0])
    assert pleat.lower(s, [A, B, C])["main"].script().count("te_test.rows") == 1
    check(s, [A, B, C], lambda a, b: np.einsum("ikr,jkmr->ijm", a + 1, b))


def test_values_of_intrinsics_that_do_not_fit():
    A, B = te.placeholder((5, 7), name="A"), te.placeholder((5, 3, 7), name="B")
    rows, n = row_intrinsic(3, 7), te.reduce_axis((0, 5), "n")

    def value(function, shape=(5, 3)):
        return te.compute(shape, function, name="C")
    with pytest.raises(ValueError, match=r"takes 1 indices, the shape has 2 axes"):
        value(lambda i: A[i] + 1.0)
    with pytest.raises(ValueError, match=r"the last axes have the extents \[4\], and the intrinsic te_rows gives \[3\]"):
        value(lambda i: rows(A[i], B[i]), (5, 4))
    with pytest.raises(pleat.PleatError, match=r"te_rows: it takes 2 regions, 1 were given"):
        value(lambda i: rows(A[i]))
    with pytest.raises(pleat.PleatError, match=r"a region of A has the extents \[1, 6\], but the input a has \[7\]"):
        value(lambda i: rows(A[i, 0:6], B[i]))
    with pytest.raises(pleat.PleatError, match="has a step"):
        value(lambda i: rows(A[i, ::2], B[i]))
    with pytest.raises(pleat.PleatError, match="such as A.i, 0:16.; not"):
        value(lambda i: rows(A[i, 0], B[i]))
    C = te.compute((5, 3), lambda i: rows(A[n], B[n], reduce_axis=n), name="C")
    with pytest.raises(ScheduleError, match="C: its value is an intrinsic's"):
        te.create_schedule(C.op).rfactor(C, C.op.reduce_axis[0])
