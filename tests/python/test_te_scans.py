# SPDX-License-Identifier: Apache-2.0
"""Schedules of scans: loops over steps, below which the operations of a step are scheduled."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402
from test_te_double_buffers import doubled_text  # noqa: E402
from test_te_schedule import check, relu, relu_of_product  # noqa: E402


def two_stages(m, n):
    """(X, s1, s2, scan): each step doubles the last one, and adds a row of X."""
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    s1 = te.compute((m, n), lambda t, i: state[t - 1, i] * 2.0, name="s1")
    s2 = te.compute((m, n), lambda t, i: s1[t, i] + X[t, i], name="s2")
    return X, s1, s2, te.scan(init, s2, state, inputs=[X])


def doubled_sums(x):
    for t in range(1, len(x)):
        x[t] += 2 * x[t - 1]
    return x


@pytest.mark.parametrize("sizes", [(1, 5), (2, 1), (7, 13), (3, "n"), ("m", "n")])
@pytest.mark.parametrize("factor", [None, 1, 4])
def test_scans(sizes, factor):
    m, n = (te.var(e) if isinstance(e, str) else e for e in sizes)
    X, s1, s2, S = two_stages(m, n)
    s = te.create_schedule(S.op)
    if factor:
        outer, inner = s[s2].split(s2.op.axis[1], factor)
        s[s1].compute_at(s[s2], outer)
        s[s2].vectorize(inner)
    given = {m: 7, n: 11}
    sizes = {e: given[e] for e in (m, n) if not isinstance(e, int)}
    script = check(s, [X, S], lambda x: doubled_sums(x.copy()), sizes=sizes)
    assert 'T.block("s1")' in script and "T.axis.opaque(" in script
    run = pleat.build(te.create_prim_func([X, S]), cache=False)
    x = np.arange(13 * 13, dtype="float32").reshape(13, 13) % 5
    x = x[:sizes.get(m, m), :sizes.get(n, n)].copy()
    result = np.zeros_like(x)
    run(x, result)
    assert np.array_equal(result, doubled_sums(x.copy()))


def test_scans_of_several_states_and_with_reductions():
    """A recurrent cell: h = h @ W + x, and the sums of all h so far, which begin two steps later."""
    m, n = 7, 5
    X, W = te.placeholder((m, n), name="X"), te.placeholder((n, n), name="W")
    h, total = te.placeholder((m, n), name="h"), te.placeholder((m,), name="total")
    k, l = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "l")
    twice = te.compute((m, n), lambda t, i: X[t, i] * 2.0, name="twice")
    h0 = te.compute((2, n), lambda t, i: twice[t, i], name="h0")
    t0 = te.compute((2,), lambda t: 0.0, name="t0")
    product = te.compute((m, n), lambda t, i: te.sum(h[t - 2, k] * W[k, i], axis=k), name="product")
    h1 = te.compute((m, n), lambda t, i: product[t, i] + twice[t, i], name="h1")
    row = te.compute((m,), lambda t: te.sum(h1[t, l], axis=l), name="row")
    t1 = te.compute((m,), lambda t: total[t - 1] + row[t] + h[0, 0], name="t1")
    H, T = te.scan([h0, t0], [h1, t1], [h, total], inputs=[X, W])
    s = te.create_schedule(H.op)
    s[product].reorder(k, product.op.axis[1])
    s[product].vectorize(product.op.axis[1])
    inlined = te.create_schedule(H.op)
    inlined[h1].split(h1.op.axis[1], 3)
    factored = [te.create_schedule(H.op) for _ in range(2)]  # partial sums of each step
    for at, one in enumerate(factored):
        one.rfactor(product, one[product].split(k, 2)[1 - at], at)
    read = te.create_schedule(H.op)
    read[twice].compute_inline()  # no part of the scan: it depends on no state
    with pytest.raises(ScheduleError, match="block 'product' cannot be inlined"):
        refused = te.create_schedule(H.op)
        refused[product].compute_inline()
        pleat.lower(refused, [X, W, H, T])
    rng = np.random.default_rng(3)
    x, w = (rng.integers(-2, 3, e).astype("float32") for e in ((m, n), (n, n)))
    expected, sums = 2 * x, np.zeros(m, "float32")
    for t in range(2, m):
        expected[t] += expected[t - 2] @ w
        sums[t] = sums[t - 1] + expected[t].sum() + expected[0, 0]
    for run in (*(pleat.build(one, [X, W, H, T], cache=False) for one in (s, inlined, read, *factored)),
                pleat.build(te.create_prim_func([X, W, H, T]), cache=False)):
        found, found_sums = np.zeros_like(x), np.zeros_like(sums)
        run(x, w, found, found_sums)
        assert np.array_equal(found, expected) and np.array_equal(found_sums, sums)


@pytest.mark.parametrize("kept", [(), ("kept",), ("half", "kept"), ("half",)])
def test_parts_of_a_step_are_computed_where_they_are_read(kept):
    """A chain half -> kept -> update, of which each part may be inline, though the state changes between its blocks."""
    m, n = 7, 5
    X, state = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="state")
    first = te.compute((1, n), lambda t, i: X[t, i], name="first")
    half = te.compute((m, n), lambda t, i: state[t - 1, n - 1 - i] * 0.5, name="half")
    parts = te.compute((m, n), lambda t, i: (half[t, i] + X[t, i], half[t, i] * 4.0), name="kept")
    k = te.reduce_axis((0, n), "k")
    sums = te.compute((m,), lambda t: te.sum(parts[1][t, k], axis=k), name="sums")
    update = te.compute((m, n), lambda t, i: parts[0][t, i] + sums[t], name="update")
    S = te.scan(first, update, state, inputs=[X])
    s = te.create_schedule(S.op)
    for tensor in (half, parts[0]):
        if tensor.op.name not in kept:
            s[tensor].compute_inline()
    if "kept" in kept:
        s[parts[0]].split(parts[0].op.axis[1], 2)

    def expected(x):
        result = x.copy()
        for t in range(1, m):
            half = result[t - 1, ::-1] * np.float32(0.5)
            result[t] = half + x[t] + (half * 4).sum()
        return result
    text = check(s, [X, S], expected)
    assert [name in text for name in ("half", "kept_v0")] == [name in kept for name in ("half", "kept")]


@pytest.mark.parametrize("sizes", [(7, 5), (1, 3), (2, 1)])
def test_layouts_of_scans(sizes):
    X, s1, s2, S = two_stages(*sizes)
    s = te.create_schedule(S.op)
    s[S].transform_layout(lambda t, i: [i // 4, t, i % 4])
    s[s1].transform_layout(lambda t, i: [i, t])
    check(s, [X, S], lambda x: doubled_sums(x.copy()), {S: lambda t, i: [i // 4, t, i % 4]})


def test_scans_that_cannot_be_computed_step_by_step_are_refused():
    m, n = 7, 5
    X = te.placeholder((m, n), name="X")
    init = te.compute((2, n), lambda t, i: X[t, i], name="init")

    def refused(message, update, state=None, first=init):
        state = state or te.placeholder((m, n), name="state")
        with pytest.raises(pleat.PleatError, match=message):
            te.scan(first, update(state), state)
    refused("at t; a state is read from 1 to 2", lambda s: te.compute((m, n), lambda t, i: s[t, i]))
    refused("a state is read from 1 to 2", lambda s: te.compute((m, n), lambda t, i: s[t - 3, i]))
    refused("a state is read from 1 to 2", lambda s: te.compute((m, n), lambda t, i: s[t + 1, i]))
    refused("or at a step of init", lambda s: te.compute((m, n), lambda t, i: s[2, i]))
    refused("its update differ", lambda s: te.compute((m, n + 1), lambda t, i: s[t - 1, 0]))
    refused("its init differ", lambda s: te.compute((m, n), lambda t, i: s[t - 1, i]),
            first=te.compute((2, n + 1), lambda t, i: 0.0))
    refused("is not a te.placeholder", lambda s: te.compute((m, n), lambda t, i: s[t - 1, i]), init)

    def at_another_step(s):
        half = te.compute((m, n), lambda t, i: s[t - 1, i] * 0.5, name="half")
        return te.compute((m, n), lambda t, i: half[t - 1, i], name="next")
    refused("next reads half at another step", at_another_step)
    X, s1, s2, S = two_stages(m, n)
    s = te.create_schedule(S.op)
    for step in (lambda: s[s2].transform_layout(lambda t, i: [i, t]), s[s2].compute_inline,
                 lambda: s.cache_write(s2, "local")):
        with pytest.raises(ScheduleError, match="its elements are those of scan"):
            step()
    with pytest.raises(ScheduleError, match="the loop over the steps"):
        s[S].unroll(S.op.scan_axis)
    with pytest.raises(ScheduleError, match="computed before all that reads"):
        s[S].compute_inline()
    with pytest.raises(pleat.PleatError, match="is an argument"):
        te.create_prim_func([X, s2, S])


def test_steps_of_a_scan_and_arguments_are_filled_in_their_iteration():
    X, s1, _, S = two_stages(7, 11)
    s = te.create_schedule(S.op)
    s[s1].double_buffer()
    check(s, [X, S], lambda x: doubled_sums(x.copy()))
    A, B, C, D = relu_of_product()
    s = te.create_schedule(D.op)
    outer, _ = s[D].split(D.op.axis[0], 2)
    s[C].compute_at(s[D], outer)
    s[C].double_buffer()
    check(s, [A, B, C, D], lambda a, b, _: relu(a, b))
    assert "double_buffer_write" not in doubled_text(s, [A, B, C, D])


@pytest.mark.parametrize("sizes", [(7, 10), (2, 1), ("m", "n")])
def test_a_copy_is_made_below_the_loop_over_the_steps(sizes):
    """The copy has the rows that steps read, from the second one on."""
    m, n = (te.var(e) if isinstance(e, str) else e for e in sizes)
    X, s1, s2, S = two_stages(m, n)
    s = te.create_schedule(S.op)
    copy = s.cache_read(X, "local", s2)
    outer, _ = s[s2].split(s2.op.axis[1], 4)
    s[copy].compute_at(s[s2], outer)
    check(s, [X, S], lambda x: doubled_sums(x.copy()),
          sizes={e: size for e, size in ((m, 7), (n, 10)) if not isinstance(e, int)})
    assert te.schedule.InferBound(s)[copy.op.axis[1]].extent == (1 if sizes[1] == 1 else 4)
