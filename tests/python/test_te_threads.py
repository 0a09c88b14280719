# SPDX-License-Identifier: Apache-2.0
"""Threads in schedules of tensor expressions: which of them store, and scans whose steps they run."""
import pathlib
import re

import numpy as np
import pytest
from built import skip_sanitized
from test_te_schedule import check

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402


def sums_by_threads(rows, columns, factor, predicate, rfactor=False):
    """Sums of rows that threads x share: (schedule, arguments)."""
    A, k = te.placeholder((rows, columns), name="A"), te.reduce_axis((0, columns), "k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s, tx = te.create_schedule(B.op), te.thread_axis("threadIdx.x")
    _, inner = s[B].split(k, factor=factor)
    partial = s.rfactor(B, inner) if rfactor else None
    s[B].set_store_predicate(predicate(tx, s[B]))
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(s[B].op.reduce_axis[0] if rfactor else inner, tx)
    if rfactor:
        s[partial].compute_at(s[B], s[B].op.reduce_axis[0])
    return s, [A, B]


@pytest.mark.parametrize("sizes", [(13, 37), (1, 5), (7, 1), (3, 129)])
@pytest.mark.parametrize("rfactor", [False, True])
def test_one_of_the_threads_of_a_reduction_stores(sizes, rfactor):
    def sums(a):
        return a.sum(axis=1)
    plain = check(*sums_by_threads(*sizes, 8, lambda tx, _: True, rfactor), sums)
    for predicate in (lambda tx, _: tx.var.equal(0), lambda tx, _: tx == 3, lambda tx, _: 7 == tx,
                      lambda tx, _: tir.all(tx == 0, True)):
        assert check(*sums_by_threads(*sizes, 8, predicate, rfactor), sums) == plain


def test_predicates_that_leave_elements_unwritten_are_refused_at_their_line():
    line = pathlib.Path(__file__).read_text().splitlines().index(
        "    s[B].set_store_predicate(predicate(tx, s[B]))") + 1
    other = te.thread_axis("threadIdx.y")
    block = te.thread_axis("blockIdx.x")
    for predicate, message in (
            (lambda tx, _: tx == 8, "the threads threadIdx.x are 0 to 7"),
            (lambda tx, _: tx == -1, "the threads threadIdx.x are 0 to 7"),
            (lambda tx, _: other == 0, "nor is a loop of the reduction of B bound to threadIdx.y"),
            (lambda tx, _: tir.all(tx == 0, block == 0), "of B bound to blockIdx.x"),
            (lambda tx, _: tx < 1, "it is no comparison of a thread with a number"),
            (lambda tx, stage: stage.op.axis[0].equal(0), "it is no comparison of a thread"),
            (lambda tx, _: False, "no element is stored under it")):
        s, args = sums_by_threads(5, 17, 8, predicate)
        with pytest.raises(ScheduleError, match=message) as error:
            pleat.lower(s, args)
        place = error.value.messages[0]
        assert (pathlib.Path(place.file).name, place.line) == ("test_te_threads.py", line)


@pytest.mark.parametrize("chosen", [0, 7, 8])
def test_one_of_the_threads_that_repeat_a_stage_stores(chosen):
    """TVM's schedule of sums that are used: threads x share each sum, and one of them uses it."""
    A, k = te.placeholder((13, 37), name="A"), te.reduce_axis((0, 37), "k")
    B = te.compute((13,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((13,), lambda i: B[i] + 1, name="C")
    s, tx = te.create_schedule(C.op), te.thread_axis("threadIdx.x")
    outer, inner = s[C].split(s[C].op.axis[0], factor=4)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.y"))
    s[C].set_store_predicate(tx.equal(chosen))
    s[B].compute_at(s[C], inner)
    _, inner = s[B].split(k, factor=8)
    s[B].bind(inner, tx)
    if chosen < 8:
        check(s, [A, C], lambda a: a.sum(axis=1) + 1)
    else:
        with pytest.raises(ScheduleError, match="the threads threadIdx.x are 0 to 7"):
            pleat.lower(s, [A, C])


def running_sums():
    """A scan over rows whose loops over columns are bound to threads: (schedule, arguments, stages)."""
    X = te.placeholder((6, 70), name="X")
    state = te.placeholder((6, 70))
    init = te.compute((1, 70), lambda _, i: X[0, i], name="init")
    update = te.compute((6, 70), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    sums = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(sums.op)
    for stage in (s[init], s[update]):
        outer, inner = stage.split(stage.op.axis[1], factor=32)
        stage.bind(outer, te.thread_axis("blockIdx.x"))
        stage.bind(inner, te.thread_axis("threadIdx.x"))
    return s, [X, sums], s[sums], s[update]


@pytest.mark.parametrize("asked", [False, True])
def test_threads_run_all_steps_of_a_scan(asked):
    """Also where env_threads is not given, since blocks of threads cannot be started in a loop."""
    s, args, sums, update = running_sums()
    if asked:
        sums.env_threads([te.thread_axis(None, "blockIdx.x"), te.thread_axis((0, 32), "threadIdx.x")])
    text = check(s, args, lambda x: x.cumsum(axis=0))
    assert re.search(r'"threadIdx.x"\):\s*for scan_idx in range\(5\)', text)


@pytest.mark.parametrize("mirrored", [False, True])
def test_threads_run_all_steps_of_several_states(mirrored):
    X = te.placeholder((6, 70), name="X")
    sums, later = te.placeholder((6, 70)), te.placeholder((6, 70))
    first = [te.compute((1, 70), lambda _, i: X[0, i], name=f"first{k}") for k in range(2)]
    update = te.compute((6, 70), lambda t, i: sums[t - 1, i] + X[t, i], name="update")
    delay = te.compute((6, 70), lambda t, i: sums[t - 1, 69 - i if mirrored else i] + later[t - 1, i],
                       name="delay")
    both = te.scan(first, [update, delay], [sums, later], inputs=[X])
    s = te.create_schedule(both[0].op)
    for tensor in (*first, update, delay):
        outer, inner = s[tensor].split(tensor.op.axis[1], nparts=4)
        s[tensor].bind(outer, te.thread_axis("blockIdx.x" if mirrored else "threadIdx.x"))
    if mirrored:
        assert "for scan_idx in range(5):\n        for i_0 in T.thr" in pleat.lower(s, [X, *both]).script()
    s[both[0]].env_threads([te.thread_axis("blockIdx.x" if mirrored else "threadIdx.x")])
    if mirrored:  # another thread computes what delay reads
        with pytest.raises(ScheduleError, match="not proved"):
            pleat.lower(s, [X, *both])
        return
    text = pleat.lower(s, [X, *both]).script()
    assert re.search(r'"threadIdx.x"\):\s*for scan_idx in range\(5\)', text)
    x = np.arange(420, dtype="float32").reshape(6, 70) % 7
    results = [np.zeros_like(x) for _ in both]
    pleat.build(s, [X, *both], cache=False)(x, *results)
    a = x.cumsum(axis=0)
    assert np.array_equal(results[0], a)
    assert np.array_equal(results[1], x[0] + np.vstack([np.zeros((1, 70)), a[:-1].cumsum(axis=0)]))


def test_environments_of_threads_that_are_refused():
    s, args, sums, update = running_sums()
    sums.env_threads(te.thread_axis("threadIdx.y"))
    with pytest.raises(ScheduleError, match="no loop of update is bound to threadIdx.y"):
        pleat.lower(s, args)
    with pytest.raises(ScheduleError, match="takes the stage of a scan"):
        update.env_threads(te.thread_axis("threadIdx.x"))
