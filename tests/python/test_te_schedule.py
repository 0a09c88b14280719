# SPDX-License-Identifier: Apache-2.0
"""Schedules of tensor expressions: each result is compared with NumPy's, for extents that are distinct,
prime and 1; refusals are at the Python line of the step."""
import pathlib
import re

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402


def check(schedule, args, expected, layouts=None, sizes=None):
    """Runs the schedule on whole numbers, and compares its last argument with expected(*inputs). The
    arrays of tensors in `layouts` are packed by their maps. Returns the program."""
    rng = np.random.default_rng(11)
    run = pleat.build(schedule, args, cache=False)
    logical = [rng.integers(-4, 5, [(sizes or {}).get(e, e) for e in a.shape]).astype(a.dtype)
               for a in args]
    maps = [tir.IndexMap.from_func((layouts or {}).get(a, lambda *i: list(i)), ndim=a.ndim)
            if a.ndim else None for a in args]
    arrays = [x if m is None else m.map_ndarray(x) for x, m in zip(logical, maps)]
    run(*arrays)
    result = expected(*logical[:-1]).astype(args[-1].dtype)
    if maps[-1] is not None:
        result = maps[-1].map_ndarray(result)
        inside = maps[-1].map_ndarray(np.ones(logical[-1].shape, bool))
        result, arrays[-1] = result * inside, arrays[-1] * inside
    assert np.array_equal(arrays[-1], result)
    return pleat.lower(schedule, args).script()


def product(m=13, n=30, k=7):
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "r")
    return A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")


def relu_of_product(*sizes):
    A, B, C = product(*sizes)
    return A, B, C, te.compute(C.shape, lambda i, j: te.max(C[i, j], 0.0), name="D")


def relu(a, b):
    return np.maximum(a @ b, 0)


SIZES = [(13, 30, 7), (1, 17, 5), (5, 1, 1), (11, 3, 13)]


def sum_and_difference(m=13, n=7):
    A, B = te.placeholder((m, n), name="A"), te.placeholder((m, n), name="B")
    return A, B, *te.compute((m, n), lambda i, j: (A[i, j] + B[i, j], A[i, j] - B[i, j]), name="C")


def run_both(s, args):
    a, b, c, d = (np.random.default_rng(4).integers(-4, 5, t.shape).astype("float32") for t in args)
    pleat.build(s, args, cache=False)(a, b, c, d)
    assert np.array_equal(c, a + b) and np.array_equal(d, a - b)
    return pleat.lower(s, args, simple_mode=True).script()


def test_all_tensors_of_an_operation_are_computed_in_other_memory():
    A, B, C, D = sum_and_difference()
    s = te.create_schedule(C.op)
    c, d = s.cache_write([C, D], "local")
    outer, _ = s[D].split(C.op.axis[0], 4)
    s[c].compute_at(s[C], outer)
    s[d].vectorize(d.op.axis[1])
    text = run_both(s, [A, B, C, D])
    assert text.count("T.grid(4, 7)") == 1 and text.count("T.vectorized(7)") == 1
    with pytest.raises(ScheduleError, match="or all tensors of one"):
        te.create_schedule(C.op).cache_write([C], "local")


def test_the_scope_of_a_result_may_be_stated():
    A, B, C, _ = relu_of_product()
    s = te.create_schedule(C.op)
    s[C].set_scope("global")
    check(s, [A, B, C], lambda a, b: a @ b)


def test_a_copy_is_that_of_the_tensor_of_an_operation_with_several():
    A, B, C, D = sum_and_difference()
    E = te.compute(C.shape, lambda i, j: C[i, j] * 2.0 - D[i, j], name="E")
    s = te.create_schedule(E.op)
    s.cache_read(C, "local", [E])
    text = check(s, [A, B, E], lambda a, b: 2 * (a + b) - (a - b))
    assert "C_v0_local[" in text and "C_v1_local" not in text


@pytest.mark.parametrize("sizes", SIZES)
def test_tiles_with_a_producer_inside(sizes):
    A, B, C, D = relu_of_product(*sizes)
    s = te.create_schedule(D.op)
    io, jo, ii, ji = s[D].tile(*D.op.axis, 4, 8)
    s[C].compute_at(s[D], jo)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], factor=3)
    ci, cj = s[C].op.axis
    s[C].reorder(ko, ci, ki, cj)
    s[C].vectorize(cj)
    s[D].vectorize(ji)
    s[D].parallel(io)
    script = check(s, [A, B, D], relu)
    assert sizes[0] < 4 or "T.parallel" in script


def test_the_order_of_steps_on_several_stages_does_not_matter():
    scripts = []
    for early in (False, True):
        A, B, C, D = relu_of_product()
        s = te.create_schedule([D.op])
        if early:
            s[C].unroll(C.op.reduce_axis[0])
            s[C].split(C.op.axis[1], 2)
        jo, ji = s[D].split(D.op.axis[1], nparts=4)
        s[C].compute_at(s[D], jo)
        if not early:
            s[C].split(C.op.axis[1], factor=2)
            s[C].unroll(C.op.reduce_axis[0])
        scripts.append(check(s, [A, B, D], relu))
    assert scripts[0] == scripts[1]


@pytest.mark.parametrize("sizes", SIZES)
def test_fuse_split_and_reorder(sizes):
    A, B, C = product(*sizes)
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    fused = s[C].fuse(i, j)
    outer, inner = s[C].split(fused, factor=6)
    s[C].reorder(C.op.reduce_axis[0], inner)
    once = s[C].fuse()
    assert [a.name for a in s[C].leaf_iter_vars] == [
        "singleton", "i.j.fused.outer", "r", "i.j.fused.inner"] and once.name == "singleton"
    check(s, [A, B, C], np.matmul)


def test_inlined_chains():
    A = te.placeholder((5, 7), name="A")
    B = te.compute((5, 7), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((7, 5), lambda i, j: B[j, i] + 1.0, name="C")
    D = te.compute((7, 5), lambda i, j: C[i, j] * C[i, 4 - j], name="D")
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    s[C].compute_inline()
    script = check(s, [A, D], lambda a: (a.T * 2 + 1) * (a.T * 2 + 1)[:, ::-1])
    assert "alloc_buffer" not in script
    s[C].compute_root()
    assert check(s, [A, D], lambda a: (a.T * 2 + 1) * (a.T * 2 + 1)[:, ::-1]).count("alloc") == 1


@pytest.mark.parametrize("sizes", SIZES)
def test_copies_in_other_memories(sizes):
    A, B, C = product(*sizes)
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    AL = s.cache_read(A, "local", [CL])
    io, ii = s[C].split(s[C].op.axis[0], nparts=3)
    s[CL].compute_at(s[C], io)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], 2)
    s[CL].reorder(ko, *s[CL].op.axis, ki)
    s[AL].compute_at(s[CL], ko)
    s[AL].vectorize(s[AL].op.axis[1])
    script = check(s, [A, B, C], np.matmul)
    assert script.count('scope="local"') == 2


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("factor_axis", [0, 1, -1])
def test_partial_results(sizes, factor_axis):
    A, B, C = product(*sizes)
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=sizes[2])
    CF = s.rfactor(C, ki, factor_axis)
    assert s[CF].op.axis[factor_axis].name == "r.inner"
    s[CF].compute_at(s[C], s[C].op.axis[0])
    s[CF].reorder(*reversed(s[CF].op.axis))
    check(s, [A, B, C], np.matmul)
    s = te.create_schedule(C.op)  # the loops over the data are new ones afterwards, as in TVM
    fused = s[C].fuse(*C.op.axis)
    outer, inner = s[C].split(fused, 4)
    ko, ki = s[C].split(C.op.reduce_axis[0], factor=sizes[2])
    s[C].reorder(outer, ko, inner, ki)
    CF = s.rfactor(C, ko, factor_axis)
    assert list(s[C].leaf_iter_vars) == [*s[C].op.axis, *s[C].op.reduce_axis]
    s[C].parallel(s[C].split(s[C].op.axis[0], 3)[0])
    check(s, [A, B, C], np.matmul)


def test_threads_and_shared_memory():
    A, B, C = product()
    s = te.create_schedule(C.op)
    AS = s.cache_read(A, "shared", [C])
    (bx, by, tx, ty) = s[C].tile(*s[C].op.axis, 4, 8)
    for axis, name in ((bx, "blockIdx.x"), (by, "blockIdx.y"), (tx, "threadIdx.x"), (ty, "threadIdx.y")):
        s[C].bind(axis, te.thread_axis(name))
    s[AS].compute_at(s[C], by)
    outer, inner = s[AS].split(s[AS].fuse(*s[AS].op.axis), factor=4)
    s[AS].bind(inner, te.thread_axis((0, 4), "threadIdx.x"))
    s[AS].storage_align(AS.op.axis[0], 8, 1)
    script = check(s, [A, B, C], np.matmul)
    assert script.count("T.thread_binding(") == 5 and "buffer_dim_align" in script
    assert script.index("threadIdx.x") < script.index('T.block("A_shared")')


def test_copies_of_copies_and_of_partial_results():
    A, B, C = product()
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    CG = s.cache_write(CL, "global")
    s[CL].compute_at(s[C], s[C].op.axis[0])
    s[CG].compute_at(s[CL], s[CL].op.axis[0])
    check(s, [A, B, C], np.matmul)
    s = te.create_schedule(C.op)
    CF = s.rfactor(C, C.op.reduce_axis[0])
    CFL = s.cache_write(CF, "local")
    r, i, j = s[CF].op.axis
    s[CFL].compute_at(s[CF], r)
    s[CFL].reorder(s[CFL].op.axis[2], s[CFL].op.axis[0])
    s[s[C].op].parallel(s[C].op.axis[0])
    check(s, [A, B, C], np.matmul)


def test_a_reduction_to_a_number():
    A, k = te.placeholder((35,), name="A"), te.reduce_axis((0, 35), "k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    s = te.create_schedule(B.op)
    ko, ki = s[B].split(s[B].op.reduce_axis[0], factor=7)
    BF = s.rfactor(B, ki)
    s[BF].vectorize(s[BF].op.axis[0])
    check(s, [A, B], np.sum)


def test_free_sizes():
    n, m = te.var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((n, m), lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], factor=4)
    s[B].compute_at(s[C], io)
    s[C].parallel(io)
    for sizes in ((5, 7), (1, 1), (8, 13), (0, 3)):
        check(s, [A, C], lambda a: (a + 1) * 2, sizes=dict(zip((n, m), sizes)))


def test_several_outputs_share_their_loops():
    A = te.placeholder((11, 5), name="A")
    X, Y = te.compute((11, 5), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="XY")
    s = te.create_schedule(X.op)
    s[X].parallel(s[Y].op.axis[0])
    outer, inner = s[X].split(s[X].op.axis[1], 2)
    check(s, [A, X, Y], lambda a, _: a * 2)
    check(s, [A, Y, X], lambda a, _: a + 1)


# ---- Layouts --------------------------------------------------------------------------------------

def to_panels(i, j):
    return [j // 4, i, j % 4]


@pytest.mark.parametrize("sizes", SIZES)
def test_layouts_of_arguments_and_intermediates(sizes):
    A, B, C, D = relu_of_product(*sizes)
    s = te.create_schedule(D.op)
    k, i = s[A].transform_layout(lambda i, k: [k, i])
    assert (k.dom.extent, i.dom.extent) == (sizes[2], sizes[0])
    jo, i, ji = s[C].transform_layout(to_panels)
    s[C].vectorize(ji)
    s[C].parallel(jo)
    j, i = s[D].transform_layout(lambda i, j: [j, te.AXIS_SEPARATOR, i])
    s[D].split(j, 4)
    script = check(s, [A, B, D], relu, {A: lambda i, k: [k, i], D: lambda i, j: [j, i]})
    assert f"({-(-sizes[1] // 4)}, {sizes[0]}, 4)" in script and "axis_separators=[1]" in script


def test_layouts_are_composed():
    A, B, C, D = relu_of_product(13, 30, 7)
    s = te.create_schedule(D.op)
    first = s[C].transform_layout(to_panels)
    second = s[C].transform_layout(lambda jo, i, ji: [i // 2, jo, te.AXIS_SEPARATOR, i % 2, ji])
    assert [a.dom.extent for a in first] == [8, 13, 4]
    assert [a.dom.extent for a in second] == [7, 8, 2, 4]
    third = s[C].transform_layout(lambda *i: [i[1], i[0], *i[2:]])
    s[C].unroll(third[2])
    script = check(s, [A, B, D], relu)
    assert "C = T.alloc_buffer((8, 7, 2, 4)" in script
    with pytest.raises(ScheduleError, match="jo is no loop|axis0 is no loop"):
        s[C].unroll(first[0])


def test_layouts_behind_steps_on_the_reduction():
    A, B, C = product()
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    s[C].reorder(ko, *C.op.axis, ki)
    axes = s[C].transform_layout(to_panels)
    assert [a.name for a in s[C].leaf_iter_vars] == ["r.outer", "axis0", "i", "axis2", "r.inner"]
    s[C].vectorize(axes[2])
    script = check(s, [A, B, C], np.matmul, {C: to_panels})
    assert "for r_0, j_0, i, j_1" in script or "for r_0, j_0, i in" in script


def test_loops_that_have_steps_stay():
    A, B, C = product()
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], 8)
    s[C].vectorize(inner)
    j, i = s[C].transform_layout(lambda i, j: [j, i])
    with pytest.raises(ScheduleError, match="is no loop of this stage"):
        s[C].unroll(j)
    assert [a.name for a in s[C].leaf_iter_vars] == ["i", "j.outer", "j.inner", "r"]
    check(s, [A, B, C], np.matmul, {C: lambda i, j: [j, i]})


def test_layouts_of_copies():
    A, B, C = product()
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    BL = s.cache_read(B, "local", CL)
    s[BL].transform_layout(lambda k, j: [j // 8, k, j % 8])
    jo, i, ji = s[CL].transform_layout(lambda i, j: [j // 8, i, j % 8])
    s[CL].reorder(jo, i, CL.op.reduce_axis[0], ji)
    s[CL].vectorize(ji)
    i, j = s[C].transform_layout(lambda i, j: [j, i])
    s[C].parallel(i)
    script = check(s, [A, B, C], np.matmul, {C: lambda i, j: [j, i]})
    assert "B_local = T.alloc_buffer((4, 7, 8)" in script


def test_copies_of_what_is_read():
    """A copy is made of the elements in the tensor that are read, whatever the padding around it."""
    X, W, P, Y = convolution(2, 5, 7, 8, 12, 3, 1)
    s = te.create_schedule(Y.op)
    s[P].compute_inline()
    XG = s.cache_read(X, "global", [P])
    n, co, h, w, ci = s[XG].transform_layout(
        lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
    s[XG].vectorize(ci)
    script = check(s, [X, W, Y], convolved(1))
    assert "for ax0, ax3_0, ax1, ax2 in T.grid(2, 2, 5, 7)" in script

    A = te.placeholder((8, 12), name="A")
    B = te.compute((3, 12), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    AL = s.cache_read(A, "local", B)
    check(s, [A, B], lambda a: a[:3] + 1)
    s[AL].transform_layout(lambda i, j: [j, i])
    assert "A_local = T.alloc_buffer((12, 3)" in check(s, [A, B], lambda a: a[:3] + 1)


def test_a_copy_for_several_readers():
    A = te.placeholder((13, 7), name="A")
    B = te.compute((13, 6), lambda i, j: A[i, j + 1] * 2.0, name="B")
    C = te.compute((13, 6), lambda i, j: B[12 - i, j] - A[i, 5 - j], name="C")
    s = te.create_schedule(C.op)
    AL = s.cache_read(A, "local", [B, C])
    s[AL].vectorize(AL.op.axis[1])
    script = check(s, [A, C], lambda a: 2 * a[::-1, 1:] - a[:, 5::-1])
    assert script.count("A_local[v0, v1] = A[v0, v1]") == 1
    assert "- A_local[" in script and "A_local[v_i, v_j + 1] *" in script


def test_a_stage_in_a_layout_is_computed_at_a_loop():
    A, B, C, D = relu_of_product(13, 32, 7)
    s = te.create_schedule(D.op)
    s[C].transform_layout(to_panels)
    jo, i, ji = s[D].transform_layout(to_panels)
    s[C].compute_at(s[D], jo)
    s[C].vectorize(s[C].data_axes[2])
    check(s, [A, B, D], relu, {D: to_panels})


def test_padding():
    A = te.placeholder((5, 7), name="A")
    B = te.compute((5, 7), lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda i, j: [i, j // 4, j % 4], pad_value=0)
    a, b = np.ones((5, 7), "float32"), np.full((5, 2, 4), 9, "float32")
    pleat.build(s, [A, B], cache=False)(a, b)
    assert np.array_equal(b.reshape(5, 8), np.pad(a + 1, ((0, 0), (0, 1))))


def test_wrong_layouts_are_refused_at_once():
    A, B, C = product()
    s = te.create_schedule(C.op)
    with pytest.raises(pleat.PleatError, match="injective|both"):
        s[C].transform_layout(lambda i, j: [i // 2, j])
    with pytest.raises(TypeError, match="takes 3 indices"):
        s[C].transform_layout(lambda i, j, k: [i, j, k])
    D = te.compute(C.shape, lambda i, j: C[i, j], name="D")
    s = te.create_schedule(D.op)
    s[C].compute_inline()
    s[C].transform_layout(lambda i, j: [j, i])
    with pytest.raises(ScheduleError, match="has no memory"):
        pleat.lower(s, [A, B, D])


# ---- N-d tensors through schedules of two axes ----------------------------------------------------

def schedule_of_rows(s, C, y, x):
    """A schedule written for a product of matrices."""
    k, = s[C].op.reduce_axis
    yo, yi = s[C].split(y, 4)
    xo, xi = s[C].split(x, 8)
    ko, ki = s[C].split(k, 2)
    s[C].reorder(yo, xo, ko, yi, ki, xi)
    s[C].vectorize(xi)
    s[C].parallel(yo)
    return xo


@pytest.mark.parametrize("shape", [(13, 7), (2, 5, 7), (3, 1, 2, 7), (1, 1, 1, 5)])
def test_dense_of_any_number_of_axes(shape):
    """A schedule for two axes, on a tensor of more: asked for in the review of RFC 39."""
    A, W = te.placeholder(shape, name="A"), te.placeholder((shape[-1], 11), name="W")
    k = te.reduce_axis((0, shape[-1]), "k")
    C = te.compute((*shape[:-1], 11), lambda *rows, j: te.sum(
        A[(*rows, k)] * W[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    y, x = s[C].fuse(*s[C].op.axis[:-1]), s[C].op.axis[-1]
    yo, yi = s[C].split(y, 4)
    s[CL].compute_at(s[C], yo)
    s[CL].vectorize(s[CL].op.axis[-1])
    check(s, [A, W, C], np.matmul)
    s = te.create_schedule(C.op)
    schedule_of_rows(s, C, s[C].fuse(*C.op.axis[:-1]), C.op.axis[-1])
    check(s, [A, W, C], np.matmul)


def flatten_all_but_last(*other_indices, j, shape):
    row = 0
    for extent, index in zip(shape, other_indices):
        row = extent * row + index
    return [row, j]


@pytest.mark.parametrize("sizes", [(2, 5, 7, 3), (1, 3, 1, 5), (3, 1, 5, 11)])
def test_products_of_batches_flattened_by_a_layout(sizes):
    b, m, k, n = sizes
    A, B = te.placeholder((b, m, k), name="A"), te.placeholder((b, k, n), name="B")
    r = te.reduce_axis((0, k), "r")
    C = te.compute((b, m, n), lambda b, i, j: te.sum(A[b, i, r] * B[b, r, j], axis=r), name="C")
    D = te.compute((b, m, n), lambda b, i, j: C[b, i, j] + 1.0, name="D")
    s = te.create_schedule(D.op)
    y, x = s[C].transform_layout(lambda b, i, j: flatten_all_but_last(b, i, j=j, shape=C.shape))
    schedule_of_rows(s, C, y, x)
    check(s, [A, B, D], lambda a, b: a @ b + 1)


def convolution(n, h, w, c, o, size, pad):
    X, W = te.placeholder((n, h, w, c), name="X"), te.placeholder((size, size, c, o), name="W")
    P = te.compute((n, h + 2 * pad, w + 2 * pad, c), lambda n, y, x, c: te.if_then_else(
        te.all(y >= pad, y < h + pad, x >= pad, x < w + pad), X[n, y - pad, x - pad, c], 0.0), name="P")
    ry, rx, rc = (te.reduce_axis((0, e), name) for e, name in ((size, "ry"), (size, "rx"), (c, "rc")))
    shape = (n, h + 2 * pad - size + 1, w + 2 * pad - size + 1, o)
    Y = te.compute(shape, lambda n, y, x, o: te.sum(
        P[n, y + ry, x + rx, rc] * W[ry, rx, rc, o], axis=[ry, rx, rc]), name="Y")
    return X, W, P, Y


def convolved(pad):
    def apply(x, w):
        x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], (1, 2))
        return np.einsum("nyxcij,ijco->nyxo", windows, w)
    return apply


@pytest.mark.parametrize("sizes", [(2, 5, 7, 3, 11, 3, 1), (1, 4, 3, 1, 5, 1, 0), (1, 5, 5, 2, 3, 2, 2)])
def test_convolutions_as_products(sizes):
    """The schedule of a product on (n*y*x, o) and (ry*rx*c): the bounds of what it reads are exact."""
    X, W, P, Y = convolution(*sizes)
    s = te.create_schedule(Y.op)
    s[P].compute_inline()
    YL = s.cache_write(Y, "local")
    row = s[Y].fuse(*s[Y].op.axis[:3])
    ro, ri = s[Y].split(row, 4)
    s[YL].compute_at(s[Y], ro)
    k = s[YL].fuse(*s[YL].op.reduce_axis)
    ko, ki = s[YL].split(k, 2)
    s[YL].reorder(ko, *s[YL].op.axis, ki)
    check(s, [X, W, Y], convolved(sizes[-1]))


@pytest.mark.parametrize("sizes", [(2, 5, 7, 8, 12, 3, 1), (1, 4, 3, 5, 7, 3, 1)])
def test_a_convolution_in_blocks_of_channels(sizes):
    """RFC 39's story: the definition is NHWC, the memory NCHW4c."""
    X, W, P, Y = convolution(*sizes)
    s = te.create_schedule(Y.op)

    def packed(n, h, w, c):
        return [n, c // 4, h, w, c % 4]
    s[X].transform_layout(packed)
    s[P].transform_layout(packed)
    s[W].transform_layout(lambda y, x, c, o: [o // 4, c // 4, y, x, c % 4, o % 4])
    n, co, y, x, ci = s[Y].transform_layout(packed)
    s[Y].reorder(n, co, y, x, *Y.op.reduce_axis, ci)
    s[Y].vectorize(ci)
    s[Y].parallel(co)
    s[P].parallel(s[P].data_axes[1])
    check(s, [X, W, Y], convolved(sizes[-1]),
          {X: packed, Y: packed, W: lambda y, x, c, o: [o // 4, c // 4, y, x, c % 4, o % 4]})


# ---- Arguments that other stages read ----------------------------------------------------------------

@pytest.mark.parametrize("factor", [None, 1, 4, 7])
@pytest.mark.parametrize("extent", [1, 7, 13, "n"])
def test_an_argument_computed_at_a_loop_of_its_reader(extent, factor):
    n = te.var("n") if extent == "n" else extent
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((n,), lambda i: B[i] * B[i], name="C")
    s = te.create_schedule(C.op)
    axis = C.op.axis[0] if factor is None else s[C].split(C.op.axis[0], factor)[0]
    s[B].compute_at(s[C], axis)
    script = check(s, [A, B, C], lambda a, _: (a + 1) ** 2,
                   sizes={n: 11} if extent == "n" else None)
    assert script.index("in range(") < script.index("T.block(\"B\")") < script.index("T.block(\"C\")")
    run, size = pleat.build(s, [A, B, C], cache=False), 11 if extent == "n" else extent
    a = np.arange(size, dtype="float32")
    b, c = np.full_like(a, 99), np.zeros_like(a)
    run(a, b, c)
    assert np.array_equal(b, a + 1)


def test_an_argument_of_which_a_loop_reads_a_part_is_not_computed_there():
    A = te.placeholder((13,), name="A")
    B = te.compute((13,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((12,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_at(s[C], C.op.axis[0])
    line = pathlib.Path(__file__).read_text().splitlines().index(
        "    C = te.compute((12,), lambda i: B[i] * 2.0, name=\"C\")") + 3
    with pytest.raises(ScheduleError, match="parameter of the function, and there its loops") as error:
        pleat.lower(s, [A, B, C])
    assert error.value.messages[0].line == line
    check(s, [A, C], lambda a: 2 * (a[:12] + 1))


@pytest.mark.parametrize("extent", [1, 13])
def test_an_argument_computed_where_it_is_read_is_stored_too(extent):
    A = te.placeholder((extent,), name="A")
    B = te.compute((extent,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((extent,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    a = np.arange(extent, dtype="float32")
    b, c = np.zeros_like(a), np.zeros_like(a)
    pleat.build(s, [A, B, C], cache=False)(a, b, c)
    assert np.array_equal(b, a + 1) and np.array_equal(c, 2 * a + 2)
    assert "B[i] * " not in pleat.lower(s, [A, B, C], simple_mode=True).script()


def test_stages_have_bodies_over_their_axes():
    A, B, C = product()
    s = te.create_schedule(C.op)
    CL = s.cache_write(C, "local")
    assert repr(s[C].op.body) == repr([CL(*C.op.axis)]) and s[C].op.input_tensors == [CL]
    source = s[CL].op.body[0].source[0]
    assert repr(source) == repr(A[s[CL].op.axis[0], C.op.reduce_axis[0]] * B[
        C.op.reduce_axis[0], s[CL].op.axis[1]])
    AL = s.cache_read(A, "local", [CL])
    assert repr(s[AL].op.body) == repr([A(*s[AL].op.axis)])


@pytest.mark.parametrize("factor_axis", [0, 1, -1])
def test_bodies_of_partial_results(factor_axis):
    A, B, C = product(3, 5, 7)
    s = te.create_schedule(C.op)
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    CF = s.rfactor(C, ki, factor_axis)
    i, j = (a for a in s[CF].op.axis if a.name != ki.name)
    k, = (a for a in s[CF].op.axis if a.name == ki.name)
    outer, = s[CF].op.reduce_axis
    body, = s[CF].op.body
    assert repr(body.source) == repr([A[i, outer * 4 + k] * B[outer * 4 + k, j]])
    assert repr(body.condition) == repr(outer * 4 + k < 7)
    order = [*C.op.axis]
    order.insert(factor_axis % 3, s[C].op.reduce_axis[0])
    assert repr(s[C].op.body[0].source) == repr([CF(*order)])
    check(s, [A, B, C], np.matmul)


# ---- Copies of scheduled stages ---------------------------------------------------------------------

@pytest.mark.parametrize("sizes", [*SIZES, (8, 12, 4)])
def test_a_copy_has_the_loops_that_steps_made_before(sizes):
    """cache_write after steps gives a tensor in tiles, whose axes are the loops of the stage."""
    A, B, C = product(*sizes)
    k = C.op.reduce_axis[0]
    s = te.create_schedule(C.op)
    i, j = C.op.axis
    outer, _, inner, lanes = s[C].tile(i, j, 4, 3)
    tiles = s.cache_write(C, "local")
    assert tiles.shape == (-(-sizes[0] // 4), -(-sizes[1] // 3), 4, 3)
    assert [a.name for a in s[tiles].op.axis] == [f"{a}.c" for a in ("i.outer", "j.outer", "i.inner", "j.inner")]
    assert list(s[C].leaf_iter_vars) == [i, j] and s[tiles].op.reduce_axis == [k]
    rows, _ = s[C].split(i, 4)
    s[tiles].compute_at(s[C], rows)
    s[tiles].reorder(k, *s[tiles].op.axis[2:])
    s[tiles].vectorize(s[tiles].op.axis[3])
    text = check(s, [A, B, C], lambda a, b: a @ b)
    assert f"C_local = T.alloc_buffer({tiles.shape}" in text
    s = te.create_schedule(C.op)
    fused = s[C].fuse(*C.op.axis)
    s[C].split(fused, nparts=5)
    lines = s.cache_write(C, "local")
    s[lines].split(k, 2)
    check(s, [A, B, C], lambda a, b: a @ b)


def test_copies_of_laid_out_tensors_and_what_comes_too_early():
    A, B, C = product()
    s = te.create_schedule(C.op)
    axes = s[C].transform_layout(lambda i, j: [j // 8, i, j % 8])
    copy = s.cache_write(C, "local")
    s[copy].reorder(*copy.op.reduce_axis, copy.op.axis[1])
    s[C].vectorize(axes[2])
    check(s, [A, B, C], lambda a, b: a @ b, {C: lambda i, j: [j // 8, i, j % 8]})
    for step in (lambda s: s[C].vectorize(C.op.axis[1]), lambda s: s[C].split(C.op.reduce_axis[0], 2),
                 lambda s: (s[C].split(C.op.axis[0], 2), s[C].transform_layout(lambda i, j: [j, i]))):
        s = te.create_schedule(C.op)
        step(s)
        with pytest.raises(ScheduleError, match="cache_write"):
            s.cache_write(C, "local")


@pytest.mark.parametrize("m", [2, 7, 13])
def test_all_results_of_a_stage_are_computed_at_a_loop(m):
    """A reduction to two tensors is one block, two elementwise tensors are two; readers read other rows of each."""
    A, k = te.placeholder((m, 5), name="A"), te.reduce_axis((0, 5), "k")
    both = te.comm_reducer(lambda a, b: (a[0] + b[0], te.max(a[1], b[1])), lambda s, t: (te.const(0, s), te.min_value(t)))
    total, most = te.compute((m,), lambda i: both((A[i, k], A[i, k]), axis=k), name="both")
    twice, less = te.compute((m,), lambda i: (total[i] * 2.0, total[i] - most[i]), name="pair")
    B = te.compute((m - 1,), lambda i: twice[i + 1] * less[i] + most[i], name="B")
    for thread in (None, "blockIdx.x", "threadIdx.x"):
        s = te.create_schedule(B.op)
        outer, inner = s[B].split(B.op.axis[0], 4)
        if thread:
            s[B].bind(outer, te.thread_axis(thread))
        s[twice].compute_at(s[B], outer)
        s[total].compute_at(s[B], outer)
        s[total].reorder(k, total.op.axis[0])
        text = check(s, [A, B], lambda a: 2 * a.sum(1)[1:] * (a.sum(1) - a.max(1))[:-1] + a.max(1)[:-1])
        scope = {None: None, "blockIdx.x": "shared", "threadIdx.x": "local"}[thread]
        assert all((f'scope="{scope}"' if scope else "alloc_buffer") in line
                   for line in text.splitlines() if "alloc_buffer" in line)
    s = te.create_schedule(B.op)
    s[total].set_scope("shared")
    assert pleat.lower(s, [A, B]).script().count('scope="shared"') == 2


@pytest.mark.parametrize("copy", ["before", "behind", None])
@pytest.mark.parametrize("sizes", [(13, 5, 70), (3, 1, 7)])
def test_loops_of_partial_results_at_a_loop(sizes, copy):
    """After rfactor the loops have other places, in which compute_at makes them; steps find each by its axis."""
    A, k = te.placeholder(sizes, name="A"), te.reduce_axis((0, sizes[2]), "k")
    B = te.compute(sizes[:2], lambda i, j: te.sum(A[i, j, k], axis=k), name="B")
    C = te.compute(sizes[:2], lambda i, j: B[i, j] * 2.0, name="C")
    s = te.create_schedule(C.op)
    reduced = s.cache_write(B, "local") if copy == "before" else B
    _, inner = s[reduced].split(k, 4)
    partial = s.rfactor(reduced, inner)
    reduced = s.cache_write(B, "local") if copy == "behind" else reduced
    row = C.op.axis[0]
    s[B].compute_at(s[C], row)
    s[reduced].compute_at(s[C], row)
    lane = s[reduced].op.reduce_axis[0]
    s[reduced].bind(lane, te.thread_axis("threadIdx.x"))
    s[reduced].unroll(s[reduced].op.axis[1])
    s[partial].compute_at(s[reduced], lane)
    text = check(s, [A, C], lambda a: 2 * a.sum(2))
    assert re.search(r'T.thread_binding\(4, thread="threadIdx.x"\)', text)
    assert sizes[1] == 1 or f"T.unroll({sizes[1]})" in text


# ---- Rolling buffers --------------------------------------------------------------------------------

def pooled(rows, columns, window, stride=1):
    """Sums of windows of doubled elements."""
    h, w = (rows - window) // stride + 1, columns - window + 1
    X = te.placeholder((rows, columns), name="X")
    P = te.compute((rows, columns), lambda i, j: X[i, j] * 2.0, name="P")
    y, x = te.reduce_axis((0, window), "y"), te.reduce_axis((0, window), "x")
    Y = te.compute((h, w), lambda i, j: te.sum(P[i * stride + y, j + x], axis=[y, x]), name="Y")

    def expected(a):
        views = np.lib.stride_tricks.sliding_window_view(2 * a, (window, window))
        return views[::stride].sum((2, 3))
    return X, P, Y, expected


@pytest.mark.parametrize("sizes", [(13, 7, 3), (5, 5, 2), (11, 3, 2), (13, 4, 3, 2)])
def test_rolling_buffers(sizes):
    X, P, Y, expected = pooled(*sizes)
    s = te.create_schedule(Y.op)
    s[P].compute_at(s[Y], Y.op.axis[0])
    s[P].rolling_buffer()
    script = check(s, [X, Y], expected)
    rows, columns, window = sizes[:3]
    assert f"P = T.alloc_buffer(({window}, {columns})" in script


@pytest.mark.parametrize("sizes", [(3, 3, 3), (7, 5, 1), (13, 7, 2, 2)])
def test_buffers_without_shared_elements_do_not_roll(sizes):
    X, P, Y, _ = pooled(*sizes)
    s = te.create_schedule(Y.op)
    s[P].compute_at(s[Y], Y.op.axis[0])
    s[P].rolling_buffer()
    with pytest.raises(ScheduleError, match="'P' cannot be rolled"):
        pleat.lower(s, [X, Y])


def test_a_rolling_buffer_that_is_not_proved_is_refused_at_its_line():
    X, P, Y, _ = pooled(13, 7, 3)
    s = te.create_schedule(Y.op)
    s[P].rolling_buffer()
    line = pathlib.Path(__file__).read_text().splitlines().index(
        "    X, P, Y, _ = pooled(13, 7, 3)") + 3
    with pytest.raises(ScheduleError, match="rolling_buffer") as error:
        pleat.lower(s, [X, Y])
    assert error.value.messages[0].line == line


# ---- Refusals -------------------------------------------------------------------------------------

INTRINSIC = """
@T.prim_func
def {kind}(a: T.handle, b: T.handle, c: T.handle):
    x, y, z = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (2, 3), "float32", offset_factor=1{x})
    B = T.match_buffer(b, (3, 4), "float32", offset_factor=1{y})
    C = T.match_buffer(c, (2, 4), "float32", offset_factor=1{z})
    with T.block("root"):
        T.reads(C[0:2, 0:4], A[0:2, 0:3], B[0:3, 0:4])
        T.writes(C[0:2, 0:4]){body}
"""


def register_tile():
    """An intrinsic that adds a product of tiles."""
    desc = """
        for i, j, k in T.grid(2, 4, 3):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"""
    impl = """
        for k, i, j in T.grid(3, 2, 4):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]"""
    strides = {one: f", strides=[{one}, 1]" for one in "xyz"}
    desc = INTRINSIC.format(kind="desc", x="", y="", z="", body=desc)
    impl = INTRINSIC.format(kind="impl", **strides, body=impl)
    read = pleat.script.from_source
    tir.TensorIntrin.register("te_tile", read(desc), read(impl), override=True)


@pytest.mark.parametrize("k", [3, 9])
def test_intrinsics(k):
    register_tile()
    A, B, C = product(6, 8, k)
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 2, 4)
    if k > 3:  # the loop of the reduction outside stores first values before it
        ro, ri = s[C].split(s[C].op.reduce_axis[0], factor=3)
        s[C].reorder(io, jo, ro, ii, ji, ri)
    s[C].tensorize(ii, "te_tile" if k > 3 else tir.TensorIntrin.get("te_tile"))
    script = check(s, [A, B, C], np.matmul)
    assert "T.match_buffer(" in script and "tensorize(" in str(te.schedule_of(s, [A, B, C]).trace)


def test_intrinsics_that_do_not_fit():
    A, B, C = product(6, 8, 9)
    s = te.create_schedule(C.op)
    register_tile()
    with pytest.raises(ScheduleError, match="no tensor intrinsic 'none' is registered"):
        s[C].tensorize(C.op.axis[1], "none")
    with pytest.raises(ValueError, match="not registered"):
        s[C].tensorize(C.op.axis[1], tir.TensorIntrin(None, None))
    s[C].tensorize(C.op.axis[1], "te_tile")
    with pytest.raises(ScheduleError, match="test_te_schedule.py:.*is not what intrinsic"):
        pleat.lower(s, [A, B, C])


# ---- Store predicates -----------------------------------------------------------------------------

def test_refusals_are_at_the_line_of_the_step():
    A, B, C = product()
    s = te.create_schedule(C.op)
    s[C].vectorize(C.op.reduce_axis[0])
    line = pathlib.Path(__file__).read_text().splitlines().index(
        "    s[C].vectorize(C.op.reduce_axis[0])") + 1
    with pytest.raises(ScheduleError, match="vectorize") as error:
        pleat.lower(s, [A, B, C])
    message = error.value.messages[0]
    assert (pathlib.Path(message.file).name, message.line) == ("test_te_schedule.py", line)


@pytest.mark.parametrize("inputs, names", [("A", ["B", "C"]), ("B", ["C"]), ("BB", ["B", "C"])])
def test_groups_are_computed_together(inputs, names):
    A = te.placeholder((6, 10), name="A")
    E = te.placeholder((6, 10), name="E")
    B = te.compute((6, 10), lambda i, j: A[i, j] + 1.0, name="B")
    F = te.compute((6, 10), lambda i, j: E[i, j] * 3.0, name="F")
    C = te.compute((6, 10), lambda i, j: B[i, j] * F[i, 9 - j], name="C")
    D = te.compute((6, 10), lambda i, j: C[i, 9 - j] + A[i, j], name="D")
    s = te.create_schedule(D.op)
    group = s.create_group(outputs=C, inputs={"A": A, "B": B, "BB": [B]}[inputs], include_inputs=inputs == "BB")
    assert [stage.op.name for stage in group.stages] == names
    group.compute_at(s[D], D.op.axis[0])
    sch = te.schedule_of(s, [A, E, D])
    assert all(sch.get(sch.get_loops(name)[0]) is sch.get(sch.get_loops("D")[0]) for name in names)
    a, e = (np.random.default_rng(k).integers(-5, 5, (6, 10)).astype("float32") for k in range(2))
    d = np.zeros((6, 10), "float32")
    pleat.build(s, [A, E, D])(a, e, d)
    assert np.array_equal(d, ((a + 1) * (e * 3)[:, ::-1])[:, ::-1] + a)
    with pytest.raises(ScheduleError, match="C: it is computed from none of the group's inputs"):
        s.create_group(outputs=C, inputs=D)


def test_steps_that_cannot_be_meant_are_refused_at_once():
    A, B, C, D = relu_of_product()
    s = te.create_schedule(D.op)
    i, j = D.op.axis
    with pytest.raises(ScheduleError, match="i is a loop of D, not of this stage now; its loops are i, j, r"):
        s[C].split(i, 4)
    with pytest.raises(ScheduleError, match=r'memory of an input is the caller\'s.*s\.cache_read\(A, "local", readers\)'):
        s[A].set_scope("local")
    with pytest.raises(ScheduleError, match="an input has no loops"):
        s[A].double_buffer()
    with pytest.raises(ScheduleError, match="either factor or nparts"):
        s[D].split(i)
    with pytest.raises(ScheduleError, match="follow each other"):
        s[D].fuse(j, i)
    with pytest.raises(ScheduleError, match="each loop once"):
        s[D].reorder(i, i)
    s[D].split(i, 4)
    with pytest.raises(ScheduleError, match="i is no loop of this stage now; its loops are i.outer"):
        s[D].reorder(j, i)
    s[D].unroll(j)
    with pytest.raises(ScheduleError, match="before cache_write, its loops over the data may be split"):
        s.cache_write(D, "local")
    with pytest.raises(ScheduleError, match="is no tensor of this schedule"):
        s[te.placeholder((3,))]
    with pytest.raises(TypeError, match="expected a te.Schedule"):
        pleat.lower(D, [A, B, D])
    with pytest.raises(pleat.PleatError, match="the placeholder A is not among"):
        pleat.lower(s, [B, D])


def test_loops_that_are_gone_in_the_end_are_refused():
    A, B, C, D = relu_of_product()
    E = te.compute(D.shape, lambda i, j: D[i, j] + 1.0, name="E")
    s = te.create_schedule(E.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[D].compute_inline()
    with pytest.raises(ScheduleError, match="C is computed at i, which is no loop of D in the end"):
        pleat.lower(s, [A, B, E])


def test_traces_and_loops_to_be_read():
    A, B, C = product()
    s = te.create_schedule(C.op)
    s[C].pragma(C.op.axis[0], "unroll_explicit", True)
    s[C].split(C.op.axis[1], 8)
    schedule = te.schedule_of(s, [A, B, C])
    assert "sch.split(" in str(schedule.trace) and "pragma_unroll_explicit" in schedule.mod.script()
    assert "T.block" not in pleat.lower(s, [A, B, C], simple_mode=True).script()
    assert list(pleat.lower(s, [A, B, C], name="f")) == ["f"]


def test_loops_to_be_read_have_first_values_apart_and_small_copies():
    A, B, C = product()
    loops = pleat.lower(te.create_schedule(C.op), [A, B, C], simple_mode=True).script()
    assert "if " not in loops and "C[i, j] = T.float32(0.0)\n        for r in" in loops
    s = te.create_schedule(C.op)
    copy = s.cache_write(C, "global")
    s[copy].compute_at(s[C], C.op.axis[0])
    columns = int(C.shape[1])
    assert f"C_global = T.decl_buffer((1, {columns}), " in pleat.lower(s, [A, B, C], simple_mode=True).script()


def test_threads_reduce_together_in_the_loops_of_a_device():
    A = te.placeholder((6, 64), name="A")
    k = te.reduce_axis((0, 64), "k")
    B = te.compute((6,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(s[B].split(k, factor=16)[1], te.thread_axis("threadIdx.x"))
    with pleat.target.Target("cuda"):
        assert "T.tvm_thread_allreduce(" in pleat.lower(s, [A, B], simple_mode=True).script()
    loops = pleat.lower(s, [A, B], simple_mode=True)
    assert "tvm_thread_allreduce" not in loops.script()
    a, b = np.arange(6 * 64, dtype="float32").reshape(6, 64), np.zeros(6, "float32")
    pleat.build(loops, cache=False)(a, b)
    assert np.array_equal(b, a.sum(1))


def test_relations_and_attributes_of_loops():
    A = te.placeholder((6, 10, 4), name="A")
    B = te.compute(A.shape, lambda i, j, k: A[i, j, k] + 1.0, name="B")
    C = te.compute(A.shape, lambda i, j, k: B[i, j, k] * 2.0, name="C")
    s = te.create_schedule(C.op)
    i, j, k = C.op.axis
    outer, inner = s[C].split(j, nparts=5)
    fused = s[C].fuse(i, outer, inner)
    s[C].pragma(k, "vectorize")
    s[C].pragma(fused, "unroll_explicit", 1)
    s[C].bind(fused, te.thread_axis("blockIdx.x"))
    split, first, second = s[C].relations
    assert split == (j, outer, inner, None, 5) and isinstance(first, te.schedule.Fuse)
    assert first[:2] == (i, outer) and second == (first.fused, inner, fused)
    assert s[C].all_iter_vars == [i, j, k, outer, inner, fused]
    attributes = s[C].iter_var_attrs
    assert attributes[k].iter_type == te.IterVar.Vectorized and j not in attributes
    assert attributes[fused] == (te.IterVar.ThreadIndex, "blockIdx.x", ["unroll_explicit"], [1])
    places = [s[B].attach_type]
    s[B].compute_at(s[C], fused)
    places.append(s[B].attach_type)
    s[B].compute_inline()
    assert [*places, s[B].attach_type] == [1, 4, 2]
    empty = te.compute((), lambda: te.const(1.0))
    t = te.create_schedule(empty.op)
    loop = t[empty].fuse()
    assert t[empty].relations == [te.schedule.Singleton(loop)]
