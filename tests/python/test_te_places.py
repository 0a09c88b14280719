# SPDX-License-Identifier: Apache-2.0
"""Where the stages of tensor expressions are computed, and the loops that are to be read."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402
from test_te_schedule import SIZES, check, relu, relu_of_product  # noqa: E402


@pytest.mark.parametrize("sizes", SIZES)
def test_loops_that_later_steps_replace(sizes):
    """A stage is computed at the inner loop of a split one, and at the fused one."""
    for step in ("split", "fuse"):
        A, B, C, D = relu_of_product(*sizes)
        s = te.create_schedule(D.op)
        s[C].compute_at(s[D], D.op.axis[0])
        if step == "split":
            s[D].split(D.op.axis[0], 4)
        else:
            s[D].fuse(*D.op.axis)
        check(s, [A, B, D], relu)


def test_fused_reductions():
    for shape in ((), (10,)):
        A = te.placeholder((10,), name="A")
        k = te.reduce_axis((0, 10), "k")
        B = te.compute(shape, lambda *i: te.sum(A[k], axis=k), name="B")
        s = te.create_schedule(B.op)
        fused = s[B].fuse(*B.op.axis, *([k] if shape else []))
        s[B].split(fused, nparts=20)
        check(s, [A, B], lambda a: np.full(shape, a.sum()))


@pytest.mark.parametrize("inline, count", [("Injective", 1), ("Broadcast", 2), ("ElemWise", 3)])
def test_inlining_by_kind(inline, count):
    A, b = te.placeholder((5, 7), name="A"), te.placeholder((7,), name="b")
    B = te.compute((5, 7), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((5, 7), lambda i, j: B[i, j] + b[j], name="C")
    D = te.compute((7, 5), lambda i, j: C[j, i] - 1.0, name="D")
    E = te.compute((7, 5), lambda i, j: te.max(D[i, j], 0.0), name="E")
    s = te.create_schedule(E.op)
    getattr(te.schedule, "AutoInline" + inline)(s)
    script = check(s, [A, b, E], lambda a, b: np.maximum((a * 2 + b).T - 1, 0))
    assert script.count("with T.block") == count


def test_stages_in_their_own_loops():
    A, B, C, D = relu_of_product(4, 5, 6)
    s = te.create_schedule(D.op)
    s[C].compute_at(s[D], D.op.axis[0])
    s[D].compute_at(s[C], C.op.axis[0])
    with pytest.raises(ScheduleError, match="compute_at: C cannot be computed in a loop of D, which is"):
        pleat.lower(s, [A, B, D])
    s[D].compute_at(s[D], D.op.axis[1])
    with pytest.raises(ScheduleError, match="compute_at: D cannot be computed in a loop of its own"):
        pleat.lower(s, [A, B, D])


def test_loops_to_be_read_are_simplified():
    A = te.placeholder((13, 24), name="A")
    P = te.compute((3, 13, 8), lambda b, i, j: A[i, b * 8 + j], name="P")
    C = te.compute((13, 24), lambda i, j: P[j // 8, i, j % 8] + 1.0, name="C")
    s = te.create_schedule(C.op)
    s[C].split(C.op.axis[1], 8)
    assert "P[j_0, i, j_1]" in pleat.lower(s, [A, C], simple_mode=True).script()
