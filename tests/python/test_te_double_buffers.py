# SPDX-License-Identifier: Apache-2.0
"""double_buffer on tensor expressions: copies are filled one iteration ahead, and results stay NumPy's."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402
from test_te_schedule import SIZES, check, product, relu, relu_of_product  # noqa: E402


def doubled_text(s, args):
    """The program that `build` compiles."""
    from pleat.te.double_buffers import filled_ahead
    return filled_ahead(pleat.lower(s, args)).script()


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("factor", [1, 3, 4])
def test_copies_are_filled_one_iteration_ahead(sizes, factor):
    A, B, C = product(*sizes)
    s = te.create_schedule(C.op)
    copies = [s.cache_read(T, "local", [C]) for T in (A, B)]
    ko, ki = s[C].split(C.op.reduce_axis[0], factor)
    s[C].reorder(ko, *C.op.axis, ki)
    for copy in copies:
        s[copy].compute_at(s[C], ko)
        s[copy].double_buffer()
    script = check(s, [A, B, C], np.matmul)
    assert script.count('_local.data, "double_buffer_scope", 1)') == 2
    text = doubled_text(s, [A, B, C])
    if sizes[2] > factor:
        assert "double_buffer_scope" not in text and text.count('"double_buffer_write"') == 2
        assert text.count("T.decl_buffer((2, ") == 2


@pytest.mark.parametrize("sizes", SIZES)
def test_a_reduction_is_computed_one_iteration_ahead(sizes):
    """The first values and the sums are two blocks, and one attribute is around both."""
    A, B, C, D = relu_of_product(*sizes)
    s = te.create_schedule(D.op)
    outer, _ = s[D].split(D.op.axis[0], 2)
    s[C].compute_at(s[D], outer)
    s[C].reorder(C.op.reduce_axis[0], *C.op.axis)
    s[C].double_buffer()
    script = check(s, [A, B, D], relu)
    assert script.count('"double_buffer_scope", 1)') == 1
    assert script.index("double_buffer_scope") < script.index('T.block("C_init")')
    assert sizes[0] < 3 or "double_buffer_write" in doubled_text(s, [A, B, D])


@pytest.mark.parametrize("sizes", SIZES)
def test_threads_fill_shared_memory_one_iteration_ahead(sizes):
    A, B, C = product(*sizes)
    s = te.create_schedule(C.op)
    copies = [s.cache_read(T, "shared", [C]) for T in (A, B)]
    bx, by, tx, ty = s[C].tile(*s[C].op.axis, 4, 4)
    ko, ki = s[C].split(s[C].op.reduce_axis[0], 2)
    s[C].reorder(bx, by, ko, tx, ty, ki)
    names = ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y")
    for axis, name in zip((bx, by, tx, ty), names):
        s[C].bind(axis, te.thread_axis(name))
    for copy in copies:
        s[copy].compute_at(s[C], ko)
        s[copy].double_buffer()
        for axis, name in zip(copy.op.axis, ("threadIdx.x", "threadIdx.y")):
            s[copy].bind(s[copy].split(axis, nparts=4)[0], te.thread_axis((0, 4), name))
    check(s, [A, B, C], np.matmul)
    text = doubled_text(s, [A, B, C])
    assert text.count('"double_buffer_write"') == (2 if sizes[2] > 2 else 0)


@pytest.mark.parametrize("sizes", [*SIZES, (17, 19, 23)])
def test_copies_of_copies_are_filled_one_iteration_ahead(sizes):
    A, B, C = product(*sizes)
    s = te.create_schedule(C.op)
    shared = [s.cache_read(T, "shared", [C]) for T in (A, B)]
    local = [s.cache_read(T, "local", [C]) for T in shared]
    ko, ki = s[C].split(C.op.reduce_axis[0], 4)
    kio, kii = s[C].split(ki, 2)
    s[C].reorder(ko, kio, *C.op.axis, kii)
    for copy, loop in zip(shared + local, (ko, ko, kio, kio)):
        s[copy].compute_at(s[C], loop)
        s[copy].double_buffer()
    check(s, [A, B, C], np.matmul)
    assert sizes[2] < 5 or doubled_text(s, [A, B, C]).count('"double_buffer_write"') == 4


def test_tensors_that_are_not_filled_ahead():
    A, B, C, D = relu_of_product(6, 8, 9)
    s = te.create_schedule(D.op)
    with pytest.raises(ScheduleError, match="an output is not filled ahead"):
        s[D].double_buffer()
    s[C].double_buffer()  # in no loop of a reader
    check(s, [A, B, D], relu)
    assert "double_buffer_scope" in doubled_text(s, [A, B, D])
    assert 'annotate(' in str(te.schedule_of(s, [A, B, D]).trace)
