# SPDX-License-Identifier: Apache-2.0
"""Random schedules of tensor expressions: each is refused, or computes what the definition does.

python tests/python/test_te_random.py FIRST LAST runs the schedules of these seeds, and counts them."""
import random
import sys

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402

EXTENTS = (1, 2, 3, 5, 7, 8, 13)


def matmul_relu(rng):
    m, n, k = (rng.choice(EXTENTS) for _ in range(3))
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), "r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((m, n), lambda i, j: te.max(C[i, j], 0.0), name="D")
    return [A, B, D], lambda a, b: np.maximum(a @ b, 0)


def normalized_rows(rng):
    m, n = (rng.choice(EXTENTS) for _ in range(2))
    A = te.placeholder((m, n), name="A")
    k, l = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "l")
    most = te.compute((m,), lambda i: te.max(A[i, k], axis=k), name="most")
    less = te.compute((m, n), lambda i, j: A[i, j] - most[i], name="less")
    total = te.compute((m,), lambda i: te.sum(less[i, l], axis=l), name="total")
    return [A, te.compute((m, n), lambda i, j: less[i, j] * 2.0 + total[i], name="out")], lambda a: (
        2 * (a - a.max(1, keepdims=True)) + (a - a.max(1, keepdims=True)).sum(1, keepdims=True))


def convolution(rng):
    n, h, w, c, o = rng.choice((1, 2)), rng.choice((3, 5)), rng.choice((4, 7)), rng.choice(
        (1, 3, 4)), rng.choice((1, 4, 5))
    X, W = te.placeholder((n, h, w, c), name="X"), te.placeholder((3, 2, c, o), name="W")
    P = te.compute((n, h + 2, w + 1, c), lambda b, y, x, i: te.if_then_else(
        te.all(y >= 1, y < h + 1, x < w), X[b, y - 1, x, i], 0.0), name="P")
    ry, rx, rc = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 2), "rx"), te.reduce_axis((0, c), "rc")
    Y = te.compute((n, h, w, o), lambda b, y, x, f: te.sum(
        P[b, y + ry, x + rx, rc] * W[ry, rx, rc, f], axis=[ry, rx, rc]), name="Y")

    def expected(x, w):
        x = np.pad(x, ((0, 0), (1, 1), (0, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))
        return np.einsum("nyxcij,ijco->nyxo", windows, w)
    return [X, W, Y], expected


def transposed_twice(rng):
    m, n = (rng.choice(EXTENTS) for _ in range(2))
    A = te.placeholder((m, n), name="A")
    B = te.compute((n, m), lambda i, j: A[j, i] + 1.0, name="B")
    C = te.compute((m, n), lambda i, j: B[j, i] * B[n - 1 - j, i], name="C")
    return [A, te.compute((m,), lambda i: C[i, 0] - C[i, n - 1], name="D"), C], lambda a, _: (
        (a + 1) * (a + 1)[:, ::-1])


def recurrence(rng):
    m, n = rng.choice((2, 3, 7)), rng.choice(EXTENTS)
    first = rng.choice((1, 2))
    X, W = te.placeholder((m, n), name="X"), te.placeholder((n, n), name="W")
    state, k = te.placeholder((m, n), name="state"), te.reduce_axis((0, n), "k")
    twice = te.compute((m, n), lambda t, i: X[t, i] * 2.0, name="twice")
    init = te.compute((first, n), lambda t, i: X[t, i], name="init")
    product = te.compute((m, n), lambda t, i: te.sum(state[t - first, k] * W[k, i], axis=k),
                         name="product")
    less = te.compute((m, n), lambda t, i: product[t, i] * 0.25, name="less")
    update = te.compute((m, n), lambda t, i: less[t, i] + twice[t, i], name="update")
    H = te.scan(init, update, state, name="H")

    def expected(x, w):
        h = x.copy()
        for t in range(first, m):
            h[t] = h[t - first] @ w / 4 + 2 * x[t]
        return h - 1
    return [X, W, te.compute((m, n), lambda t, i: H[t, i] - 1.0, name="out")], expected


def sums_and_greatest(rng):
    """A reduction to two tensors, of which the readers read other elements."""
    m, n = rng.choice((2, 5, 8, 13)), rng.choice(EXTENTS)
    A, k = te.placeholder((m, n), name="A"), te.reduce_axis((0, n), "k")
    both = te.comm_reducer(lambda a, b: (a[0] + b[0], te.max(a[1], b[1])), lambda s, t: (te.const(0, s), te.min_value(t)))
    total, most = te.compute((m,), lambda i: both((A[i, k], A[i, k]), axis=k), name="both")
    below = te.compute((m - 1,), lambda i: total[i] - most[i + 1], name="below")
    return [A, te.compute((m - 1, n), lambda i, j: below[i] * A[i, j] + most[m - 1], name="out")], lambda a: (
        (a.sum(1)[:-1] - a.max(1)[1:])[:, None] * a[:-1] + a[-1].max())


def doubled_and_negated(rng):
    """An operation of two elementwise tensors, whose readers read other elements."""
    m, n = rng.choice((2, 5, 8, 13)), rng.choice(EXTENTS)
    A = te.placeholder((m, n), name="A")
    twice, less = te.compute((m, n), lambda i, j: (A[i, j] * 2.0, 1.0 - A[i, j]), name="pair")
    return [A, te.compute((m - 1, n), lambda i, j: twice[i + 1, j] + less[i, n - 1 - j], name="out")], lambda a: (
        a[1:] * 2 + (1 - a[:-1, ::-1]))


GRAPHS = (matmul_relu, normalized_rows, convolution, transposed_twice, recurrence, sums_and_greatest,
          doubled_and_negated)


# ---- Steps ----------------------------------------------------------------------------------------

def split(rng, s, stage):
    axis = rng.choice(stage.leaf_iter_vars)
    stage.split(axis, **{rng.choice(("factor", "nparts")): rng.choice((1, 2, 3, 4, 8))})


def fuse(rng, s, stage):
    at = rng.randrange(len(stage.leaf_iter_vars))
    axes = stage.leaf_iter_vars[at:at + 2]
    if len({a.iter_type for a in axes}) == 1:
        stage.fuse(*axes)


def reorder(rng, s, stage):
    axes = list(stage.leaf_iter_vars)
    rng.shuffle(axes)
    stage.reorder(*axes[:rng.randrange(1, len(axes) + 1)])


def kind(rng, s, stage):
    name = rng.choice(("vectorize", "unroll", "parallel"))
    getattr(stage, name)(rng.choice(stage.leaf_iter_vars))


def inline(rng, s, stage):
    if stage.op not in s.outputs:
        stage.compute_inline()


def at_a_loop(rng, s, stage):
    later = [other for other in s.stages[s.stages.index(stage) + 1:] if other.leaf_iter_vars]
    if later:
        parent = rng.choice(later)
        stage.compute_at(parent, rng.choice(parent.leaf_iter_vars))


def layout(rng, s, stage):
    if stage.origin_op in s.outputs:
        return
    rank = stage._rank()
    order = rng.sample(range(rank), rank)
    at, size = rng.randrange(rank), rng.choice((2, 3, 4))
    with_split = rng.random() < 0.5
    separator = [te.AXIS_SEPARATOR] if rank > 1 and rng.random() < 0.3 else []

    def function(*i):
        axes = [i[k] // size if with_split and k == at else i[k] for k in order]
        return axes[:1] + separator + axes[1:] + ([i[at] % size] if with_split else [])
    stage.transform_layout(function)


def read_copy(rng, s, stage):
    readers = [one for one in s.stages if any(t.op in (stage.op, stage.origin_op)
                                              for t in one.op.input_tensors)]
    if readers:
        readers = rng.sample(readers, rng.randint(1, len(readers)))
        s.cache_read(stage.origin_op.output(0), rng.choice(("local", "shared")),
                     [one.op for one in readers])


def write_copy(rng, s, stage):
    s.cache_write(stage.origin_op.output(0), "local")


def factor(rng, s, stage):
    axes = [a for a in stage.leaf_iter_vars if a.iter_type == 2]
    if axes and stage._walks_data() and not stage.layouts:
        s.rfactor(stage.origin_op.output(0), rng.choice(axes), rng.choice((0, -1)))


def rolling(rng, s, stage):
    if stage.placement == "at":
        stage.rolling_buffer()


STEPS = [split] * 6 + [fuse] * 2 + [reorder] * 4 + [kind] * 3 + [inline] + [at_a_loop] * 4 + [
    layout] * 4 + [read_copy, write_copy, factor, rolling]
LOOPS = {split, fuse, reorder, kind, at_a_loop}


def random_schedule(seed):
    """(schedule, arguments, function of NumPy, names of the steps) of a seed."""
    rng = random.Random(seed)
    args, expected = rng.choice(GRAPHS)(rng)
    s = te.create_schedule(args[-1].op)
    names = []
    for _ in range(rng.randrange(1, 9)):
        step = rng.choice(STEPS)
        has_loops = [one for one in s.stages if one.leaf_iter_vars]
        is_input = step in (layout, read_copy)
        stage = rng.choice(s.stages if is_input else has_loops)
        try:
            step(rng, s, stage)
        except ScheduleError as error:
            assert any(reason in str(error) for reason in (
                "its elements are those of", "the steps of a scan", "with an operation of its own", "cache_write comes",
                "before cache_write"))
            continue
        names.append(f"{step.__name__} {stage.op.name}")
    return s, args, expected, names


def packed(s, arg, array):
    """The array of an input in its layout; the layouts of inputs are kept in their stages."""
    stage = s[arg]
    for step in stage.layouts:
        array = step.arguments[0].map_ndarray(array)
    return array


def outcome(seed):
    """Gives "right" or "refused"; AssertionError for a wrong result."""
    s, args, expected, names = random_schedule(seed)
    rng = np.random.default_rng(seed)
    logical = [rng.integers(-4, 5, a.shape).astype("float32") for a in args]
    try:
        run = pleat.build(s, args, cache=False)
    except ScheduleError:
        return "refused"
    except pleat.PleatError as error:
        if "loop share" in str(error):  # a copy inside of the iterations of a parallel loop
            return "refused"
        raise
    arrays = [packed(s, a, x) if a.op in s.stage_map and not a.op.input_tensors else x
              for a, x in zip(args, logical)]
    run(*arrays)
    assert np.array_equal(arrays[-1], expected(*logical[:-1])), (seed, names)
    return "right"


@pytest.mark.parametrize("seed", [*range(120), 880472])
def test_random_schedules(seed):
    outcome(seed)


def main(first, last):
    counts = {}
    for seed in range(first, last):
        try:
            found = outcome(seed)
        except Exception as error:
            found = f"{type(error).__name__}"
            print(seed, type(error).__name__, str(error).splitlines()[0][:160], random_schedule(seed)[3],
                  flush=True)
        counts[found] = counts.get(found, 0) + 1
    print(counts)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
