# SPDX-License-Identifier: Apache-2.0
"""The ways to write the padding of a layout, by name."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir.schedule import ScheduleError, Trace  # noqa: E402
from test_tir_schedule import check, matmul  # noqa: E402

WAYS = ["select", "branch", "after", "before"]


@T.prim_func
def product(A: T.Buffer((6, 5), "float32"), B: T.Buffer((5, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    for i, j, k in T.grid(6, 7, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def padded(fill, value=0.5):
    sch = tir.Schedule(product)
    sch.transform_layout("C", "C", lambda i, j: [i, j // 4, j % 4], pad_value=value, fill=fill)
    return sch


def halves(*indices):
    return T.Cast("float32", indices[0]) * 0.5


@pytest.mark.parametrize("fill", WAYS)
@pytest.mark.parametrize("value, expected", [(0.5, np.full(6, 0.5)), (halves, np.arange(6) * 0.5)])
def test_padding_has_its_value(fill, value, expected):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 4, s).astype("float32") for s in ((6, 5), (5, 7)))
    c = np.full((6, 2, 4), 99, "float32")
    pleat.build(padded(fill, value).mod, cache=False)(a, b, c)
    c = c.reshape(6, 8)
    assert np.array_equal(c[:, :7], a @ b) and np.array_equal(c[:, 7], expected)


@pytest.mark.parametrize("value, message", [
    (lambda i, j: T.Cast("float32", i), "the 3 physical indices of 'C'"),
    (lambda i, j, k: T.Cast("float32", i // 0), "division by zero"),
    (lambda i, j, k: T.call_packed("f", i), "no effects"),
    ("lambda *i: T.exp(0.5)", "a number, a map, a function or None"),
    (lambda i, j, k: tir.decl_buffer((1,), "float32", "other")[0], "indices, numbers and operators alone"),
])
def test_functions_that_are_no_padding(value, message):
    with pytest.raises(ScheduleError, match=message):
        padded(None, value)


def test_each_way_is_another_program():
    texts = {fill: padded(fill).mod.script() for fill in WAYS}
    assert len(set(texts.values())) == 4
    assert texts["select"] == padded(None).mod.script() and "T.if_then_else" in texts["select"]
    assert "if vj_0 * 4 + vj_1 < 7:" in texts["branch"] and "else:" in texts["branch"]
    nests = {way: texts[way].index('T.block("buffer_C_padding")') for way in ("after", "before")}
    assert nests["before"] < texts["before"].index('T.block("C")')
    assert nests["after"] > texts["after"].index('T.block("C")')


@pytest.mark.parametrize("fill", WAYS)
def test_traces_have_the_way(fill):
    values = padded(fill, halves)
    again = tir.Schedule(product)
    Trace.apply_json_to_schedule(values.trace.as_json(), again)
    assert "pad_value=lambda i0, i1, i2: (T.Cast('float32', i0) * 0.5)" in str(again.trace)
    pleat.ir.assert_structural_equal(again.func, values.copy().func)
    sch = padded(fill)
    texts = [sch.trace.by_axes(), sch.trace.by_maps()]
    assert f'fill="{fill}"' in texts[0] and f'fill="{fill}"' in texts[1]
    for text in texts:
        again = tir.Schedule(product)
        exec(text, {"sch": again})
        pleat.ir.assert_structural_equal(again.func, sch.func)
    again = tir.Schedule(product)
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    pleat.ir.assert_structural_equal(again.func, sch.func)


@T.prim_func
def in_two_parts(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    B = T.alloc_buffer((5,))
    for i in range(2):
        with T.block("low"):
            vi = T.axis.spatial(2, i)
            B[vi] = A[vi]
    for i in range(3):
        with T.block("high"):
            vi = T.axis.spatial(3, i)
            B[vi + 2] = A[vi + 2] * T.float32(2)
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = B[vi]


@pytest.mark.parametrize("fill, message", [
    ("select", "fill='select': the padding of 'B' is not proved to be written by one block"),
    ("branch", "fill='branch': the padding of 'B' is not proved to be written by one block"),
    ("after", "fill='after': 'B' is written by several blocks"),
    ("behind", "expected 'select', 'branch', 'after', 'before' or 'assume'"),
    ("assume", "fill='assume': block 'low' writes 'B', and its padding"),
])
def test_ways_that_do_not_fit_are_refused(fill, message):
    sch = tir.Schedule(in_two_parts)
    with pytest.raises(ScheduleError, match=message):
        sch.transform_layout("low", "B", lambda i: [i // 4, i % 4], pad_value=0, fill=fill)
    with pytest.raises(ScheduleError, match="but there is no pad_value"):
        sch.transform_layout("low", "B", lambda i: [i // 4, i % 4], fill="before")
    sch.transform_layout("low", "B", lambda i: [i // 4, i % 4], pad_value=0, fill="before")


@pytest.mark.parametrize("value, content", [(0.5, "T.float32(0.5)"), (halves, "T.Cast(\"float32\", v_axis0) * ")])
def test_the_padding_of_inputs_is_assumed(value, content):
    sch = tir.Schedule(product)
    sch.transform_layout("C", "A", lambda i, k: [k // 4, i, k % 4], pad_value=value)
    stated = "v_axis1, v_axis2] == " + content
    assert 'T.block("buffer_A_assumption")' in sch.mod.script() and stated in sch.mod.script()
    for text in (sch.trace.by_axes(), sch.trace.by_maps()):
        again = tir.Schedule(product)
        exec(text, {"sch": again, "T": T})
        pleat.ir.assert_structural_equal(again.func, sch.func)
    removed = tir.transform.RemoveAssume()(sch.mod).script()
    assert "assum" not in removed and "T.grid(6, 7, 5)" in removed
    sch.cache_read("C", "A", "local")
    assert stated in sch.mod.script()  # of A itself
    sch.transform_layout("A_local", "A", lambda o, i, k: [i, o, k], pad_value=1.5)  # only the last one holds
    assert sch.mod.script().count("T.assume(") == 1 and "== T.float32(1.5)" in sch.mod.script()
    a = np.pad(np.arange(30, dtype="float32").reshape(6, 5), ((0, 0), (0, 3)), constant_values=1.5)
    b, c = np.arange(35, dtype="float32").reshape(5, 7), np.zeros((6, 7), "float32")
    pleat.build(sch.mod, cache=False)(a.reshape(6, 2, 4), b, c)
    assert np.array_equal(c, a[:, :5] @ b)


def test_ways_to_state_the_padding_of_inputs():
    sch = tir.Schedule(product)
    sch.transform_layout("C", "A", lambda i, k: [k // 4, i, k % 4], pad_value=1, rewrite_loops=True)
    assert "assume" not in sch.mod.script()
    sch.pad_value("C", "A", 2, fill="assume")
    assert "== T.float32(2.0)" in sch.mod.script()
    with pytest.raises(ScheduleError, match="fill='branch': no block writes 'B', whose padding the caller fills"):
        sch.transform_layout("C", "B", lambda k, j: [k // 4, j, k % 4], pad_value=0, fill="branch")


def test_a_layout_without_padding_keeps_the_loops():
    sch = tir.Schedule(product)
    sch.transform_layout("C", "A", lambda i, j: [i // 3, j, i % 3], pad_value=0.5)
    sch.transform_layout("C", "C", lambda i, j: [j, i // 3, i % 3], pad_value=0.5)
    assert "T.grid(6, 7, 5)" in sch.func.script()


@pytest.mark.parametrize("choose", [tir.Select, tir.if_then_else])
def test_padding_that_is_chosen_by_indices(choose):
    """A comparison of indices is a condition, not whether both are the same expression."""
    sch = tir.Schedule(matmul)
    sch.transform_layout("product", ("write", 0), lambda i, j: [i, j // 8, j % 8],
                         pad_value=lambda i, j, k: choose(tir.all(i == 3, k != 7), 1, 2))
    assert "select(i == 3 and k != 7, 1, 2)" in str(sch.trace)
    check(sch)


def test_padding_that_differs():
    sch = tir.Schedule(matmul)
    sch.transform_layout("product", ("write", 0), lambda i, j: [i, j // 8, j % 8], pad_value=lambda i, j, k: i + j)
    assert "pad_value=lambda i, j, k: [i + j]" in str(sch.trace)
    check(sch)
    with pytest.raises(ScheduleError, match="the 3 physical indices of 'product' to one number"):
        tir.Schedule(matmul).transform_layout("product", ("write", 0), lambda i, j: [i, j // 8, j % 8],
                                              pad_value=lambda i, j: i + j)


@pytest.mark.parametrize("value", [lambda i, j: i + j, lambda *i: i[1], lambda i, j: T.if_then_else(i > 3, j, 1)])
def test_padding_of_single_axes_that_differs(value):
    """The text of the trace names the modules that it needs."""
    sch = tir.Schedule(matmul)
    sch.pad_axis("product", ("write", 0), 1, 16, pad_value=value)
    sch.split_axis("product", ("write", 0), 0, [None, 8], pad_value=lambda *i: i[2])
    check(sch)
    texts = [sch.trace.by_axes(), sch.trace.by_maps(), f"{sch.trace}\napply_trace(sch)"]
    assert texts[2].startswith("# from tvm.script import tir as T\n") == ("T.if_then_else" in texts[2])
    for text in texts:
        again = tir.Schedule(matmul)
        exec(text, {"sch": again, "T": T, "s_tir": tir})
        pleat.ir.assert_structural_equal(again.func, sch.func)


@T.prim_func
def of_free_size(a: T.handle, b: T.handle, c: T.handle, k: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    for i, j, r in T.grid(n, 3, k):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]


def test_neutral_padding_up_to_a_free_size():
    """The physical shapes follow from a scalar argument alone."""
    sch = tir.Schedule(of_free_size)
    sch.transform_layout("C", "A", lambda i, r: [i, r // 4, r % 4], pad_value=0)
    sch.transform_layout("C", "B", lambda r, j: [j, r // 4, r % 4], pad_value=0)
    sch.transform_block_layout("C", lambda i, j, r: [i, j, r // 4, r % 4])
    sch.drop_padding_predicate("C")
    assert "T.where" not in sch.mod.script()
    run = pleat.build(sch.mod, cache=False)
    for n, k in ((5, 10), (2, 4)):
        a, b = (np.arange(x * y, dtype="float32").reshape(x, y) % 7 for x, y in ((n, k), (k, 3)))
        padded = [np.pad(x, ((0, 0), (0, -k % 4))).reshape(len(x), -1, 4) for x in (a, b.T)]
        c = np.full((n, 3), 9, "float32")
        run(*padded, c, k)
        assert np.array_equal(c, a @ b)
    with pytest.raises(pleat.PleatError, match="axis 1 has extent 1, expected 2"):
        run(*padded, c, 5)


def test_assumptions_are_used_when_a_program_is_read_again():
    def split(sch):
        sch.transform_block_layout("C", lambda i, j, k: [i, j, k // 4, k % 4])
        sch.drop_padding_predicate("C")
        return sch.mod

    sch = tir.Schedule(product)
    sch.transform_layout("C", "A", lambda i, k: [k // 4, i, k % 4], pad_value=0)
    sch.transform_layout("C", "B", lambda k, j: [k // 4, j, k % 4], pad_value=1)
    text = sch.mod.script()
    again = split(tir.Schedule(pleat.script.from_source(text)))
    pleat.ir.assert_structural_equal(again, split(sch))
    assert "T.where" not in again.script()
    a, b = np.zeros((2, 6, 4), "float32"), np.ones((2, 7, 4), "float32")
    a[0], a[1, :, 0] = np.arange(24).reshape(6, 4), 3
    b[0], b[1, :, 0] = np.arange(28).reshape(7, 4), 2
    c = np.zeros((6, 7), "float32")
    pleat.build(again, cache=False)(a, b, c)
    assert np.array_equal(c, np.einsum("xik,xjk->ij", a, b))
    loops, stated = "for axis0, axis1, axis2 in T.grid(2, 6, 4)", "T.assume(5 > v_axis0 * 4 + v_axis2 or A"
    for old, new in (
            ("A[v_axis0, v_axis1, v_axis2] == T.float32(0.0)", "A[v_axis0, v_axis1, v_axis2] == T.float32(1.0)"),
            (loops, "for axis0, axis1, axis2 in T.grid(2, 6, 3)"), (loops, "for axis0, axis1, axis2 in T.grid(1, 6, 4)"),
            (stated, stated.replace("5", "6")), (f"T.writes()\n            {stated}",
                                                f"T.writes()\n            T.where(axis1 > 2)\n            {stated}"),
            ("== T.float32(0.0)", "== A[0, v_axis1, 0] * T.float32(0.0)"),
            (loops, f"A[1, 0, 3] = T.float32(7)\n    {loops}")):
        other = text.replace(old, new)
        assert other != text
        with pytest.raises(ScheduleError):
            split(tir.Schedule(pleat.script.from_source(other)))
