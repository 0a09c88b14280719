# SPDX-License-Identifier: Apache-2.0
"""Tensor programs with T.call_packed: Python runs the statements around calls, and compiled code the rest."""
import command
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import registry, te, tir  # noqa: E402
from pleat.contrib import cblas  # noqa: E402
from pleat.script import tir as T  # noqa: E402

seen = []


@pleat.register_func("test.note")
def note(*arguments):
    seen.append(tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))


@pleat.register_func("test.add")
def add(x, y, z):
    z[...] = x + y


@pleat.register_func("test.grow")
def grow(x, by):
    x += by


@pytest.fixture(autouse=True)
def forget():
    seen.clear()


@T.prim_func
def rows(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32"), n: T.int32):
    sums = T.alloc_buffer((5, 7), "float32")
    for i in range(5):
        half: T.float32 = A[i, 0] * T.float32(0.5)
        if i % 2 == 0:
            T.evaluate(T.call_packed("test.note", i, half, i < 3, "row"))
        for j in range(7):
            B[i, j] = A[i, j] + half
    T.evaluate(T.call_packed("test.add", A, B, sums))
    for i, j in T.grid(5, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = sums[vi, vj] * T.Cast("float32", n)


def test_statements_around_calls_run_in_their_order():
    a = np.random.default_rng(1).random((5, 7), "float32")
    b = np.zeros_like(a)
    rows(a, b, 3)
    np.testing.assert_allclose(b, 3 * (2 * a + a[:, :1] / 2), 1e-6)
    assert [row[0] for row in seen] == [0, 2, 4] and [row[2] for row in seen] == [True, True, False]
    assert [type(one) for one in seen[0]] == [int, float, bool, str]
    np.testing.assert_array_equal([row[1] for row in seen], a[::2, 0] / 2)
    assert pleat.script.from_source(rows.script()).script() == rows.script()


def test_a_block_with_variables_and_an_init():
    @T.prim_func
    def reduced(A: T.Buffer((3, 11), "int32"), B: T.Buffer((3,), "int32")):
        for io, ii, k in T.grid(2, 2, 11):
            with T.block("B"):
                vi = T.axis.spatial(3, io * 2 + ii)
                vk = T.axis.reduce(11, k)
                T.where(io * 2 + ii < 3)
                with T.init():
                    B[vi] = 100
                B[vi] = B[vi] + A[vi, vk]
                T.evaluate(T.call_packed("test.note", vi, vk, B))

    a = np.arange(33, dtype="int32").reshape(3, 11)
    b = np.zeros(3, "int32")
    reduced(a, b)
    np.testing.assert_array_equal(b, 100 + a.sum(axis=1))
    assert len(seen) == 33 and [row[:2] for row in seen[:12]] == [(0, k) for k in range(11)] + [(1, 0)]
    assert seen[10][2].tolist() == [100 + a[0].sum(), 0, 0]


def test_blocks_below_loops_of_python_and_views():
    @T.prim_func
    def tiles(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
        for io in range(3):
            for i, j in T.grid(2, 8):
                with T.block("B"):
                    vi = T.axis.spatial(6, io * 2 + i)
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj]
            with T.block("tile"):
                v = T.axis.spatial(3, io)
                row = T.match_buffer(B[v * 2 + 1, 0:8], (8,), offset_factor=1)
                T.evaluate(T.call_packed("test.grow", row, v + 1))

    a = np.random.default_rng(0).random((6, 8), "float32")
    b = np.zeros_like(a)
    tiles(a, b)
    expected = a.copy()
    expected[1::2] += np.arange(1, 4, dtype="float32")[:, None]
    np.testing.assert_array_equal(b, expected)


def test_free_sizes_strides_and_offsets():
    @T.prim_func
    def strided(a: T.handle, b: T.handle):
        n, s = T.int32(), T.int32()
        A = T.match_buffer(a, (n, 3), "float32", strides=[s, 2])
        B = T.match_buffer(b, (n, 3), "float32", elem_offset=2)
        T.evaluate(T.call_packed("test.grow", A, 1))
        for i, j in T.grid(n, 3):
            B[i, j] = A[i, j] * T.float32(2)
        T.evaluate(T.call_packed("test.grow", B, n))

    run = pleat.build(strided)
    for n in (1, 5):
        memory = np.arange(n * 13, dtype="float32")
        a = np.lib.stride_tricks.as_strided(memory, (n, 3), (52, 8))
        before = a.copy()
        whole = np.zeros(2 + 3 * n, "float32")
        b = whole[2:].reshape(n, 3)
        run(a, b)
        np.testing.assert_array_equal(a, before + 1)
        np.testing.assert_array_equal(b, 2 * (before + 1) + n)
        assert memory[1] == 1


def test_a_part_of_a_buffer():
    @T.prim_func
    def part(A: T.Buffer((4, 6), "int16"), first: T.int32):
        flat = T.decl_buffer((24,), "int16", data=A.data)
        T.evaluate(T.call_packed("test.grow", flat, 1))
        T.evaluate(T.call_packed("test.grow", T.tvm_stack_make_array(
            A.data, T.tvm_stack_make_shape(2, 3), T.tvm_stack_make_shape(6, 2), 2, T.int16(0), first), 10))
        for i in range(24):
            flat[i] = flat[i] + flat[23 - i] * T.int16(0)

    a = np.zeros((4, 6), "int16")
    pleat.build(part)(a, 7)
    expected = np.ones((4, 6), "int16")
    expected[1:3, 1::2] += 10
    np.testing.assert_array_equal(a, expected)
    for first in (-1, 14):
        with pytest.raises(pleat.PleatError, match="of A, whose memory has 24"):
            pleat.build(part)(a, first)


def test_external_tensors():
    bias = te.var("bias", dtype="float32")
    A, B = te.placeholder((13, 5), name="A"), te.placeholder((7, 5), name="B")
    C = cblas.matmul(A, B, transb=True)
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias, name="D")
    run = pleat.build(te.create_schedule(D.op), [A, B, D, bias])
    generator = np.random.default_rng(2)
    a, b, d = (generator.random(shape, "float32") for shape in ((13, 5), (7, 5), (13, 7)))
    run(a, b, d, 2.5)
    np.testing.assert_allclose(d, a @ b.T + 2.5, 1e-5)
    assert run.time_evaluator(run.entry_name, number=1)(a, b, d, 1.0).mean > 0


def test_products_of_batches():
    A, B = te.placeholder((3, 5, 2), name="A"), te.placeholder((3, 5, 7), name="B")
    C = cblas.batch_matmul(A, B, transa=True)
    run = pleat.build(te.create_schedule(C.op), [A, B, C])
    a, b = (np.random.default_rng(i).random(shape, "float32") for i, shape in enumerate(((3, 5, 2), (3, 5, 7))))
    c = np.zeros((3, 2, 7), "float32")
    run(a, b, c)
    np.testing.assert_allclose(c, a.swapaxes(1, 2) @ b, 1e-5)


@T.prim_func
def fails(A: T.Buffer((3,), "float32")):
    A[0] = T.float32(1)
    T.evaluate(T.call_packed("test.fails", A))
    A[1] = T.float32(1)


def test_an_exception_ends_the_run():
    a = np.zeros(3, "float32")
    with pytest.raises(ValueError, match="no function 'test.fails' is registered"):
        fails(a)

    @pleat.register_func("test.fails")
    def _(x):
        raise KeyError("of the function")
    with pytest.raises(KeyError, match="of the function"):
        fails(a)
    assert a.tolist() == [1, 0, 0]


def test_out_of_bounds_around_a_call():
    @T.prim_func
    def outside(A: T.Buffer((3,), "int32"), n: T.int32):
        for i in range(A[n]):
            T.evaluate(T.call_packed("test.note", A[i]))

    pleat.build(outside)(np.array([3, 5, 7], "int32"), 0)
    assert [row[0] for row in seen] == [3, 5, 7]
    for n in (1, 3):
        with pytest.raises(pleat.PleatError, match="is out of bounds: index 3 of axis 0"):
            pleat.build(outside)(np.array([3, 5, 7], "int32"), n)


@pleat.register_func("test.square")
def square(x):
    seen.append(x)
    return x * x


def test_values_of_calls():
    @T.prim_func
    def values(A: T.Buffer((5,), "int32"), B: T.Buffer((5,), "float32"), n: T.int32) -> T.float32:
        for i in range(T.call_packed("test.square", n)):
            x: T.int32 = T.call_packed("test.square", i) + A[i]
            A[i] = x - 1
            if A[i] > 3 and T.call_packed("test.square", A[i], dtype="bool"):
                continue
            B[T.call_packed("test.square", 2) - i] = T.exp(T.call_packed("test.square", T.float32(0.5), dtype="float32"))
            if T.if_then_else(i == 3, T.call_packed("test.square", 1), 0) == 1:
                return T.float32(0.25)
        while T.call_packed("test.square", A[0]) < 50:
            A[0] = A[0] + 1
            if A[1] == 6:
                break
        return T.call_packed("test.square", B[1], dtype="float32")

    for target in ("llvm", "c"):
        seen.clear()
        a, b = np.array([0, 4, 0, -7, 0], "int32"), np.zeros(5, "float32")
        run = pleat.build(values, target=target)
        assert run(a, b, 2) == 0.25
        assert a.tolist() == [-1, 4, 3, 1, 0] and b.tolist() == [0, *[np.float32(np.exp(0.25))] * 2, 0, *b[4:]]
        assert seen == [2, 0, 0.5, 2, 1, 4, 2, 0.5, 2, 3, 0.5, 2, 1]
        a = np.array([5, 6, 0, 0, 0], "int32")
        assert run(a, b, 0) == b[1] ** 2 and a[0] == 6
        a = np.array([5, 5, 0, 0, 0], "int32")
        assert run(a, b, 0) == b[1] ** 2 and a[0] == 8
        with pytest.raises(pleat.PleatError, match="out of bounds"):
            run(a, b, 3)


def test_pointers_are_addresses():
    import ctypes

    @pleat.register_func("test.first")
    def first(pointer):
        return ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int16))[0]

    @T.prim_func
    def pointers(A: T.Buffer((3, 4), "int16"), B: T.Buffer((4,), "int32"), i: T.int32):
        kept = T.alloc_buffer((2,), "int16")
        kept[0] = T.int16(77)
        B[0] = T.call_packed("test.first", A.data)
        B[1] = T.call_packed("test.first", T.address_of(A[i, 2]))
        B[2] = T.call_packed("test.first", A.access_ptr("r", offset=i))
        B[3] = T.call_packed("test.first", kept.data)

    a, b = np.arange(12, dtype="int16").reshape(3, 4), np.zeros(4, "int32")
    run = pleat.build(pointers)
    run(a, b, 2)
    assert b.tolist() == [0, 10, 2, 77]
    for i, message in ((3, r"element \[3, 2\] of A"), (-1, r"element \[-1, 2\] of A")):
        with pytest.raises(pleat.PleatError, match=message):
            run(a, b, i)


def test_objects_pass_from_call_to_call():
    @pleat.register_func("test.make", override=True)
    def make(n):
        return [n, "kept"]

    @T.prim_func
    def chain(A: T.Buffer((3,), "int32")):
        made: T.handle = T.call_packed("test.make", A[1], dtype="handle")
        T.evaluate(T.call_packed("test.note", made))
    pleat.build(chain)(np.array([3, 5, 7], "int32"))
    assert seen == [([5, "kept"],)]


@pytest.mark.parametrize("value, dtype", [(None, "int32"), (1.5, "int32"), (2 ** 31, "int32"), ("x", "float32")])
def test_values_that_do_not_fit(value, dtype):
    @pleat.register_func("test.gives", override=True)
    def gives():
        return value
    text = f"@T.prim_func\ndef f(A: T.Buffer((3,), '{dtype}')):\n" \
           f"    A[0] = T.call_packed('test.gives', dtype='{dtype}')\n"
    with pytest.raises(pleat.PleatError, match="'test.gives' returned"):
        pleat.build(pleat.script.from_source(text))(np.zeros(3, dtype))


@pytest.mark.parametrize("body, message", [
    ("A[0:2] = T.Broadcast(T.call_packed('test.note', A), 2) + A[1:3]", "expression of several lanes"),
    ("for i in T.thread_binding(4, thread='threadIdx.x'):\n        T.evaluate(T.call_packed('test.note', i))",
     "over threads of a device")])
def test_what_does_not_run(body, message):
    text = f"@T.prim_func\ndef f(A: T.Buffer((3,), 'int32')):\n    {body}\n"
    with pytest.raises(pleat.PleatError, match=message):
        pleat.build(pleat.script.from_source(text))(np.zeros(3, "int32"))


def test_files_cannot_hold_python(tmp_path):
    for ending in (".o", ".so", ".c"):
        with pytest.raises(pleat.PleatError, match="only a .pleat file can name"):
            pleat.build(fails).export_library(tmp_path / f"fails{ending}")
    (tmp_path / "fails.py").write_text(fails.script())
    assert "supported" in command.pleat("check", tmp_path / "fails.py")
    errors = command.pleat("run", tmp_path / "fails.py", "--fill", "random", status=1)
    assert "which only pleat.build runs" in errors


# ---- Verifying, and files --------------------------------------------------------------------------

def test_verify_runs_calls_and_compares_the_parts_between_them():
    result = pleat.verify(rows, {"n": 3}, seed=2)
    assert result.agrees and result.kernel_count >= 6
    assert len(seen) == 3  # the calls of one run
    assert "parts around calls" in str(result)
    assert pleat.verify(pleat.IRModule({"rows": rows}))

    @T.prim_func
    def sized(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        n = T.int32()
        T.evaluate(T.call_packed("test.add", A, A, B))
        for i in range(n):
            B[i] = B[i] * A[i]
    assert pleat.verify(sized, shapes={"n": 7}) and pleat.verify(sized, {"A": np.ones(3), "B": np.ones(3)})
    with pytest.raises(pleat.PleatError, match="size 'n' is not known"):
        pleat.verify(sized)
    with pytest.raises(pleat.PleatError, match="with the interpreter alone"):
        pleat.verify(rows, definitions=True)


def test_files_name_the_functions_that_they_call(tmp_path):
    @pleat.register_func("test.later")
    def later(x):
        x += 1

    @T.prim_func
    def f(A: T.Buffer((4,), "int32")):
        n = T.int32(2)
        T.evaluate(T.call_packed("test.later", A))
        for i in range(4):
            A[i] = A[i] * n
    built = pleat.build(pleat.IRModule({"f": f, "rows": rows}))
    built.export_library(tmp_path / "f.pleat")
    with pytest.raises(pleat.PleatError, match="only a .pleat file can name"):
        built.export_library(tmp_path / "f.so")
    loaded = pleat.load_module(tmp_path / "f.pleat")
    a = np.arange(4, dtype="int32")
    loaded["f"](a)
    np.testing.assert_array_equal(a, [2, 4, 6, 8])
    again = tmp_path / "again.pleat"
    loaded.export_library(again)
    registry.remove_global_func("test.later")
    with pytest.raises(pleat.PleatError, match=r"script of f:\d+:\d+: error: no function 'test.later' is "):
        pleat.load_module(again)
    with pytest.raises(pleat.PleatError, match=r"script of f:\d+:\d+: error: no function 'test.later' is "):
        built["f"](a)
