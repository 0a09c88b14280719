# SPDX-License-Identifier: Apache-2.0
"""pleat.build: programs run on arrays in place and without copies, arguments are checked, and code is
measured, shown, exported and loaded."""
import ctypes
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.contrib import cc, utils  # noqa: E402
from pleat.script import ir as I, tir as T  # noqa: E402


def product(m, n, k, dtype="float32"):
    @T.prim_func
    def matmul(A: T.Buffer((m, k), dtype), B: T.Buffer((k, n), dtype), C: T.Buffer((m, n), dtype)):
        for i, j, r in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    C[vi, vj] = T.Cast(dtype, 0)
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    return matmul


@T.prim_func
def add(A: T.Buffer(("n",), "int32"), B: T.Buffer(("n",), "int32"), k: T.int32):
    for i in range(A.shape[0]):
        B[i] = A[i] + k


@pytest.fixture(scope="module")
def adding():
    return pleat.build(add, cache=False)


@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 1), (13, 1, 11), (0, 3, 2), (3, 4, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_results_are_written_in_place(shape, dtype):
    m, n, k = shape
    run = pleat.build(product(m, n, k, dtype), cache=False)
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-9, 9, s).astype(dtype) for s in ((m, k), (k, n)))
    c = np.full((m, n), 77, dtype)
    assert run(a, b, c) is None
    assert np.array_equal(c, a @ b)


@T.prim_func
def reductions_of_nothing(A: T.Buffer((3, 0), "float32"), C: T.Buffer((3,), "float32")):
    S = T.alloc_buffer((3,), "float32")
    M = T.alloc_buffer((3,), "float32")
    for i, k in T.grid(3, 0):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(2)
            S[vi] = S[vi] + A[vi, vk]
    for i, k in T.grid(3, 0):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(5)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i in range(3):
        with T.block("C"):
            vi = T.axis.S(3, i)
            C[vi] = S[vi] * T.float32(10) + M[vi]


def test_reductions_of_nothing_are_their_init():
    c = np.full(3, 77, "float32")
    pleat.build(reductions_of_nothing, cache=False)(np.zeros((3, 0), "float32"), c)
    assert np.array_equal(c, [25, 25, 25])


@T.prim_func
def some_sums(a: T.handle, L: T.Buffer((2,), "int32"), C: T.Buffer((3,), "float32"), D: T.Buffer((1,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (3, n), "float32")
    for i, k in T.grid(3, n):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(2)
            C[vi] = C[vi] + A[vi, vk]
    for k in range(2):
        for j in range(T.min(L[k], 3)):
            with T.block("D"):
                vk, vj = T.axis.reduce(2, k), T.axis.reduce(3, j)
                with T.init():
                    D[0] = T.float32(3)
                D[0] = D[0] + C[vj]


def test_schedules_and_the_interpreter_give_reductions_of_nothing_their_init():
    sch = pleat.tir.Schedule(some_sums)
    i, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, 4])
    sch.reorder(outer, i, inner)
    built = pleat.build(sch.mod, cache=False)
    for n, lengths in [(0, [0, 0]), (5, [0, 2]), (9, [1, 0]), (0, [2, 1])]:
        c, d = np.full(3, 77, "float32"), np.full(1, 77, "float32")
        built(np.ones((3, n), "float32"), np.array(lengths, "int32"), c, d)
        assert np.array_equal(c, np.full(3, 2 + n)) and d[0] == 3 + sum(lengths) * (2 + n)
    for lengths in [0, 0], [0, 1]:
        given = {"A": np.ones((3, 0), "float32"), "L": np.array(lengths, "int32")}
        assert pleat.verify(sch.mod, given) and pleat.verify(some_sums, given)


@pytest.mark.parametrize("step", ["decompose_reduction", "rfactor", "three parts"])
def test_conditions_that_leave_out_a_whole_reduction(step):
    sch = pleat.tir.Schedule(some_sums)
    i, k = sch.get_loops("C")
    outer, inner = sch.split(k, [3, None] if step == "three parts" else [None, 4])
    if step == "decompose_reduction":
        sch.decompose_reduction("C", outer)
        assert "T.where(0 <" not in sch.mod["main"].script()
    elif step == "rfactor":
        sch.rfactor(inner, 0)
    built = pleat.build(sch.mod, cache=False)
    for n in 0, 2, 5, 9:
        c, d = np.full(3, 77, "float32"), np.full(1, 77, "float32")
        given = np.ones((3, n), "float32"), np.array([1, 2], "int32")
        built(*given, c, d)
        assert np.array_equal(c, np.full(3, 2 + n)) and d[0] == 3 + 3 * (2 + n)
        assert pleat.verify(sch.mod, dict(zip("AL", given)))


def test_arrays_with_strides():
    run = pleat.build(product(5, 7, 3), cache=False)
    a, b = np.arange(15, dtype="float32").reshape(3, 5).T, np.ones((6, 14), "float32")[::2, ::2]
    c = np.zeros((7, 5), "float32").T
    run(a, b, c)
    assert np.array_equal(c, a @ b)


def test_free_sizes_follow_from_the_arguments(adding):
    for n in (7, 1, 0, 1000, 7):
        a, b = np.arange(n, dtype="int32"), np.zeros(n, "int32")
        adding(a, b, 3)
        assert np.array_equal(b, a + 3)
    adding(a, b, np.int32(-1))
    adding(a, b, np.array(-1, "int32"))
    assert np.array_equal(b, a - 1)


class OnlyDLPack:
    """An array that has nothing but DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


@T.prim_func
def twice(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


@pytest.mark.parametrize("shape", [(3, 5), (0, 5), (5, 0), (0, 0), (1, 1)])
def test_fused_loops_of_free_sizes_take_empty_tensors(shape):
    schedule = pleat.tir.Schedule(twice)
    schedule.fuse(*schedule.get_loops(schedule.get_block("B")))
    x, y = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    pleat.build(schedule.mod, cache=False)(x, y)
    assert (y == 2).all()


def test_dlpack(adding):
    a, b = np.arange(9, dtype="int32"), np.zeros(9, "int32")
    adding(OnlyDLPack(a), OnlyDLPack(b), 3)
    assert np.array_equal(b, a + 3)
    with pytest.raises(ValueError, match="argument 'B' has extent 9 in axis 0, expected 4"):
        adding(OnlyDLPack(a[:4]), OnlyDLPack(b), 3)


def test_torch(adding):
    torch = pytest.importorskip("torch")
    a, b = torch.arange(9, dtype=torch.int32), torch.zeros(9, dtype=torch.int32)
    adding(a, b, 3)
    assert torch.equal(b, a + 3)


WRONG = [
    ((1, 2), TypeError, r"add takes 3 arguments \(A \[n\] int32, B \[n\] int32, k int32\), got 2"),
    (("A", "B", 1), TypeError, "argument 'A' is a str, expected an array"),
    ((np.zeros(3, "float32"), np.zeros(3, "int32"), 1), TypeError,
     "argument 'A' has element type float32, expected int32"),
    ((np.zeros((3, 1), "int32"), np.zeros(3, "int32"), 1), ValueError,
     r"argument 'A' has 2 axes, \[3, 1\], expected 1, \[n\]"),
    ((np.zeros(3, "int32"), np.zeros(4, "int32"), 1), ValueError,
     r"argument 'B' has extent 4 in axis 0, expected 3: its shape is \[4\], expected \[n\]"),
    ((np.zeros(3, "int32"), np.zeros(3, "int32"), np.zeros(1, "int32")), ValueError,
     r"argument 'k' has 1 axes, \[1\], expected 0"),
    ((np.zeros(3, "int32"), np.zeros(3, "int32"), 1.5), TypeError,
     "argument 'k' is the float 1.5, expected int32"),
    ((np.zeros(3, "int32"), np.zeros(3, "int32"), 2**40), OverflowError, "argument 'k' "),
    ((np.zeros(3, ">i4"), np.zeros(3, "int32"), 1), TypeError, "argument 'A' has element type >i4"),
    ((np.zeros(3, "datetime64[s]"), np.zeros(3, "int32"), 1), TypeError, "argument 'A' has element"),
]


@pytest.mark.parametrize("given, kind, why", WRONG, ids=range(len(WRONG)))
def test_arguments_are_checked(adding, given, kind, why):
    with pytest.raises(kind, match=why):
        adding(*given)


def test_small_floats():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    @T.prim_func
    def f(A: T.Buffer((8,), "bfloat16"), B: T.Buffer((8,), "float16"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            C[i] = T.Cast("float32", A[i]) + T.Cast("float32", B[i])
    a, b, c = np.arange(8).astype(ml_dtypes.bfloat16), np.ones(8, "float16"), np.zeros(8, "float32")
    pleat.build(f, cache=False)(a, b, c)
    assert c.tolist() == list(range(1, 9))


def test_calls_from_several_threads(adding):
    from concurrent.futures import ThreadPoolExecutor

    def call(k):
        a, b = np.arange(1000, dtype="int32"), np.zeros(1000, "int32")
        for _ in range(20):
            adding(a, b, k)
        return (b == a + k).all()
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(8)))


def test_outputs_must_be_writable(adding):
    a, b = np.arange(3, dtype="int32"), np.zeros(3, "int32")
    b.flags.writeable = False
    with pytest.raises(ValueError, match="argument 'B' is read-only"):
        adding(a, b, 1)
    a.flags.writeable = False
    adding(a, np.zeros(3, "int32"), 1)
    odd = np.zeros(20, "uint8")[1:13].view("int32")  # not aligned to its elements
    adding(odd, np.zeros(3, "int32"), 1)


def test_memory_that_overlaps_is_refused(adding):
    a = np.arange(5, dtype="int32")
    for b in (a, a[:], a[::-1]):
        with pytest.raises(ValueError, match="of argument 'B', .* overlaps that of 'A'"):
            adding(a, b, 1)
    both = np.arange(10, dtype="int32")
    adding(both[:5], both[5:], 1)
    assert both.tolist() == [0, 1, 2, 3, 4, 1, 2, 3, 4, 5]
    adding(both[:0], both[:0], 1)


@pytest.mark.parametrize("most", [2, 64])
def test_arguments_of_kinds_that_were_checked(most, monkeypatch):
    """Calls with arrays of the same types, shapes and strides are bound to their own memory, and what
    depends on it is checked each time; other kinds are checked whole."""
    monkeypatch.setattr(pleat.runtime, "MOST_CHECKED", most)
    run = pleat.build(product("m", 3, 2), cache=False)
    for seed in range(3):
        for m in (4, 5, 4):
            random = np.random.default_rng(seed)
            a, b = random.random((m, 2), "float32"), random.random((2, 3), "float32")
            c, turned = np.zeros((m, 3), "float32"), np.zeros((3, m), "float32").T
            run(a, b, c)
            run(pleat.nd.array(a), b, turned)
            assert np.allclose(c, a @ b) and np.array_equal(c, turned)
    memory = np.zeros(8 + 12, "float32")
    run(memory[:8].reshape(4, 2), np.ones((2, 3), "float32"), memory[8:].reshape(4, 3))
    a, b, c = np.ones((4, 2), "float32"), np.ones((2, 3), "float32"), np.zeros((4, 3), "float32")
    with pytest.raises(ValueError, match="of argument 'C', .* overlaps that of 'A'"):
        run(memory[2:10].reshape(4, 2), b, memory[8:].reshape(4, 3))
    c.flags.writeable = False
    with pytest.raises(ValueError, match="argument 'C' is read-only"):
        run(a, b, c)
    for kind, given in ((TypeError, (a, b.astype("float64"), c)), (ValueError, (a, b, c[:, :2])),
                        (ValueError, (a[:3], b, c)), (TypeError, (a, b))):
        with pytest.raises(kind):
            run(*given)


@I.ir_module
class Two:
    @T.prim_func
    def first(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = A[i] * 2.0

    @T.prim_func
    def second(A: T.Buffer((3,), "float32")):
        for i in range(3):
            A[i] = T.float32(9)


def test_modules_of_several_programs():
    module = pleat.build(Two, cache=False)
    assert list(module) == ["first", "second"] and len(module) == 2
    a = np.arange(4, dtype="float32")
    module["first"](a)
    module.get_function("second")(a[:3])
    assert a.tolist() == [9, 9, 9, 6]
    with pytest.raises(KeyError, match="no program 'main'; it has first, second"):
        module(a)


def test_times():
    run = pleat.build(product(5, 7, 3), cache=False)
    arrays = [np.zeros(s, "float32") for s in ((5, 3), (3, 7), (5, 7))]
    times = run.time_evaluator(number=3, repeat=4)(*arrays)
    assert len(times.results) == 4 and 0 < times.min <= times.median <= times.max < 10
    assert run.time_evaluator("matmul", number=1, min_repeat_ms=2)(*arrays).mean > 0
    cooled = run.time_evaluator(func_name="matmul", dev=pleat.cpu(), number=1, repeat=3, cooldown_interval_ms=1,
                                repeats_to_cooldown=2, cache_flush_bytes=4096, limit_zero_time_iterations=10)
    assert len(cooled(*arrays).results) == 3
    for wrong in ({"number": 0}, {"repeat": 0}, {"f_preproc": "cache_flush_cpu_non_first_arg"}):
        with pytest.raises(ValueError, match="must be at least 1|there are no functions that prepare"):
            run.time_evaluator(**wrong)


def test_sources():
    run = pleat.build(product(5, 7, 3), cache=False)
    assert "define" in run.get_source() and "int m_run" not in run.get_source()
    assert "#include" in pleat.build(product(5, 7, 3), target="c", cache=False).get_source()
    assert "def matmul(" in run.get_source("py")
    assert ".text" in run.get_source("asm") and run.get_source("asm") == run.get_source("s")


def test_export_and_load(tmp_path, adding):
    path = tmp_path / "two.pleat"
    pleat.build(Two, cache=False).export_library(path)
    loaded = pleat.load_module(path)
    a = np.arange(4, dtype="float32")
    loaded["first"](a)
    assert a.tolist() == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="argument 'A' has extent 3 in axis 0, expected 4"):
        loaded["first"](a[:3])
    assert loaded.get_source() == pleat.build(Two, cache=False).get_source()
    adding(np.zeros(7, "int32"), np.zeros(7, "int32"), 1)
    adding.export_library(tmp_path / "add.pleat")
    adding.write_to_file(tmp_path / "add.data", "pleat")
    assert pleat.load_module(tmp_path / "add.data").entry_name == "add"
    out = np.zeros(7, "int32")
    again = pleat.load_module(tmp_path / "add.pleat")
    again(np.arange(7, dtype="int32"), out, 2)
    assert out.tolist() == list(range(2, 9))
    again(np.arange(5, dtype="int32"), out[:5], 3)  # compiled for this size when it is loaded
    assert out.tolist() == [3, 4, 5, 6, 7, 7, 8]
    (tmp_path / "bad.pleat").write_bytes(path.read_bytes()[:100])
    with pytest.raises(pleat.PleatError, match="is not a module"):
        pleat.load_module(tmp_path / "bad.pleat")


@pytest.mark.skipif(cc.get_cc() is None, reason="there is no C compiler")
def test_shared_libraries_are_loaded(tmp_path, adding):
    folder = utils.tempdir()
    adding.export_library(folder.relpath("add.so"))
    adding.export_library(folder.relpath("add.o"))
    cc.create_shared(folder.relpath("linked.so"), [folder.relpath("add.o")])
    assert "add.so" in folder.listdir() and not any(".part" in n for n in folder.listdir())
    for name in ("add.so", "linked.so"):
        assert ctypes.CDLL(folder.relpath(name)).add_run
        loaded = pleat.runtime.load_module(folder.relpath(name))
        out = np.zeros(5, "int32")
        loaded[loaded.entry_name](np.arange(5, dtype="int32"), out, 7)
        assert out.tolist() == [7, 8, 9, 10, 11]
    (tmp_path / "plain.c").write_text("int one(void) { return 1; }")
    cc.create_shared(tmp_path / "plain.so", tmp_path / "plain.c")
    with pytest.raises(pleat.PleatError, match="plain.so is not a module that export_library wrote"):
        pleat.load_module(tmp_path / "plain.so")
    (tmp_path / "wrong.c").write_text("int one(void) { return")
    with pytest.raises(pleat.PleatError, match=r"cannot link .*wrong.so:[\s\S]*error"):
        cc.create_shared(tmp_path / "wrong.so", [tmp_path / "wrong.c"])
    folder.remove()
    assert not os.path.exists(folder.path)


def test_export_for_other_programs(tmp_path):
    run = pleat.build(product(2, 3, 4), cache=False)
    run.export_library(tmp_path / "matmul.so")
    code = ctypes.CDLL(str(tmp_path / "matmul.so"))
    a, b = np.ones((2, 4), "float32"), np.ones((4, 3), "float32")
    c, memory = np.zeros((2, 3), "float32"), np.zeros(4096, "uint8")
    arena = ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)

    def pointers(*arrays):
        return (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    assert code.matmul_run(pointers(a, b), pointers(c), arena) == 0
    assert (c == 4).all()


def test_functions_are_callable_and_compile_takes_them():
    function = product(2, 3, 4)
    a, b, c = np.ones((2, 4), "float32"), np.ones((4, 3), "float32"), np.zeros((2, 3), "float32")
    function(a, b, c)
    assert (c == 4).all()
    for compiled in (pleat.compile(function, cache=False), pleat.compile(function, "llvm", cache=False)):
        c[:] = 0
        compiled(a, b, c)
        assert (c == 4).all() and compiled.mod["matmul"] is compiled.jit()["matmul"]
    assert (pleat.Model(function, cache=False)(a, b) == 4).all()
    assert pleat.compile(Two, func="second", cache=False)().tolist() == [9] * 3


def test_lowering_as_tvm_lowers():
    a, b, c = np.ones((2, 4), "float32"), np.ones((4, 3), "float32"), np.zeros((2, 3), "float32")
    simple = pleat.lower(product(2, 3, 4), name="other", simple_mode=True)
    assert list(simple) == ["other"] and "T.block" not in simple.script()
    lowered = pleat.lower(pleat.IRModule({"matmul": product(2, 3, 4)}))
    assert "T.block" not in lowered.script() and "C_1[i * 3 + j]" in lowered.script()
    pleat.build(lowered, cache=False)(a, b, c)
    assert (c == 4).all()
    with pytest.raises(TypeError, match="needs the list of its arguments"):
        pleat.lower(object())


@pytest.mark.parametrize("phase", [0, 1, 3])
def test_passes_that_a_context_adds_run(phase):
    @pleat.tir.transform.prim_func_pass(opt_level=0)
    def twice_as_much(function, module, context):
        def doubled(node):
            return pleat.tir.BufferStore(node.buffer, node.value * 2, node.indices)
        body = pleat.tir.stmt_functor.ir_transform(function.body, None, doubled, ["tir.BufferStore"])
        return function.with_body(body)

    @T.prim_func
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi]
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    with pleat.transform.PassContext(config={"tir.add_lower_pass": [(phase, twice_as_much)]}):
        pleat.build(copy, cache=False)(a, b)
        A = pleat.te.placeholder((4,), name="A")
        B = pleat.te.compute((4,), lambda i: A[i] + 1, name="B")
        s, c = pleat.te.create_schedule(B.op), np.zeros(4, "float32")
        pleat.build(s, [A, B], cache=False)(a, c)
        assert ("T.block" in pleat.lower(s, [A, B]).script()) == (phase == 0)
        assert "* T.float32(2.0)" in pleat.lower(s, [A, B]).script()
    assert b.tolist() == [0, 2, 4, 6] and c.tolist() == [2, 4, 6, 8]


@I.ir_module
class Calling:
    @T.prim_func
    def sched(A: T.Buffer((1,), "int32")):
        A[0] = T.call_extern("int32", "sched_yield")

    @T.prim_func
    def __open(A: T.Buffer((1,), "int32")):
        A[0] = T.call_extern("int32", "__open_2", A.data, 0)

    @T.prim_func
    def abs(ffs: T.Buffer((1,), "int32")):
        ffs[0] = T.call_extern("int32", "abs", ffs[0] - 9) + T.call_extern("int32", "ffs", ffs[0] + 1)

    @T.prim_func
    def number(A: T.Buffer((1,), "int32")):
        A[0] = T.call_extern("int32", "strcmp", "a\\\"?\n%", "a\\\"?\n%") + T.call_extern("int32", "atoi", "42")

    @T.prim_func
    def sinf(A: T.Buffer((1,), "int32")):
        A[0] = T.Cast("int32", T.sin(T.Cast("float32", A[0])) * T.float32(1000))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_programs_with_names_of_the_functions_that_they_call(target, tmp_path):
    """A function outside may have the name of a program or of an argument, or one that begins so; it can take
    a string."""
    run = pleat.build(Calling, target=target, cache=False)
    expected = {"sched": 0, "__open": -1, "abs": 2 + 4, "number": 42, "sinf": 656}
    for name, value in expected.items():
        a = np.full(1, 7, "int32")
        run[name](a)
        assert (name, a[0]) == (name, value)
    code = tmp_path / ("code.c" if target == "c" else "code.s")
    run.export_library(code)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", code, "-o", tmp_path / "code.so", "-lm"], check=True)
    linked = ctypes.CDLL(tmp_path / "code.so")
    for name, value in expected.items():
        a = np.full(1, 7, "int32")
        memory = (ctypes.c_void_p * 1)(a.ctypes.data)
        linked[f"code_{name}_run"](memory, memory, None)
        assert (name, a[0]) == (name, value)


def test_passes_of_lowering_are_disabled():
    @T.prim_func
    def double(A: T.Buffer((8,), "float32")):
        for i in T.vectorized(8):
            A[i] = A[i] * T.float32(2)
    assert "for i" not in pleat.lower(double)["main"].script()
    with pleat.transform.PassContext(config={"tir.disable_vectorize": True}):
        assert "for i in range(8):" in pleat.lower(double)["main"].script()


def test_pipelines_run_first():
    run = pleat.build(add, pipeline="default", tir_pipeline=pleat.tir.transform.Simplify(), cache=False)
    a, b = np.arange(3, dtype="int32"), np.zeros(3, "int32")
    run(a, b, 5)
    assert b.tolist() == [5, 6, 7]
    with pytest.raises(pleat.PleatError, match="the pipeline is 'other', expected 'default' or a pass"):
        pleat.build(add, pipeline="other", cache=False)


def test_scalars_of_numpy_have_any_width(adding):
    a, b = np.arange(3, dtype="int32"), np.zeros(3, "int32")
    for number in (np.int64(4), np.uint8(4), np.int32(4)):
        b[:] = 0
        adding(a, b, number)
        assert b.tolist() == [4, 5, 6]
    for number, message in ((np.float32(4), "is the float 4.0, expected int32"), ("4", "a number of type int32"),
                            (np.int64(1 << 40), "which int32 does not hold")):
        with pytest.raises((TypeError, OverflowError), match=message):
            adding(a, b, number)


def test_numbers_after_others_of_their_type():
    """A number is new in each call, also where what else was checked is known from an earlier call."""
    @T.prim_func
    def filled(A: T.Buffer((2,), "float32"), x: T.float32, i: T.int8, yes: T.bool):
        A[0] = x
        A[1] = T.Select(yes, T.Cast("float32", i), T.float32(0))

    run, a = pleat.build(filled, cache=False), np.zeros(2, "float32")
    for x, i, yes in ((0.1, 3, True), (1e300, -128, np.True_), (7, 127, False), (2**60 + 1, True, 5), (0.3, 4, 0)) * 2:
        run(a, x, i, yes)
        with np.errstate(over="ignore"):
            assert a.tolist() == [np.float32(x), i if yes else 0]
    for numbers, message in (((0.5, 128, True), "'i' is 128, which int8 does not hold"),
                             ((0.5, 1.0, True), "'i' is the float 1.0, expected int8"),
                             ((10**400, 1, True), "'x' is 1000*, which float32 does not hold"),
                             ((0.5, 1), "takes 4 arguments")):
        with pytest.raises((TypeError, OverflowError), match=message):
            run(a, *numbers)


def test_elements_of_outputs_have_addresses_of_their_own(adding):
    a, one = np.arange(3, dtype="int32"), np.zeros(1, "int32")
    with pytest.raises(pleat.PleatError, match="'B' of 'add': it is written, and by its strides two elements"):
        adding(a, np.lib.stride_tricks.as_strided(one, (3,), (0,)), 1)
    b = np.zeros(3, "int32")
    adding(np.lib.stride_tricks.as_strided(one, (3,), (0,)), b, 2)  # what is read may repeat
    assert b.tolist() == [2, 2, 2]


def test_other_arrays_are_refused_with_what_to_do(adding):
    a, b = np.arange(3, dtype=">i4"), np.zeros(3, "int32")
    with pytest.raises(TypeError, match="order of other processors: convert it with .astype.'int32'"):
        adding(a, b, 1)

    @T.prim_func
    def pointers(A: T.Buffer((4,), "handle"), B: T.Buffer((4,), "handle")):
        B[0] = A[0]
    with pytest.raises(pleat.PleatError, match="parameter 'A' of 'pointers' has a type that arrays cannot"):
        pleat.build(pointers, cache=False)


@T.prim_func
def beyond(A: T.Buffer((4,), "float32")):
    for i in range(5):
        A[i] = T.float32(1)


@T.prim_func
def beyond_free(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    A[n] = T.float32(1)


def place_of(text):
    """How messages begin that are about the line of this file with this text."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    number, line = next((i, line) for i, line in enumerate(lines, 1) if line.strip() == text)
    return re.escape(f"{__file__}:{number}:{line.index(text) + 1}: error: ")


@pytest.mark.parametrize("made", [
    lambda: pleat.build(beyond, cache=False), lambda: pleat.compile(beyond, cache=False),
    lambda: pleat.Model(beyond, cache=False), lambda: pleat.verify(beyond),
    lambda: pleat.build(pleat.IRModule({"main": beyond}), cache=False)])
def test_what_cannot_be_compiled_is_refused_at_its_line(made):
    text = "A[i] = T.float32(1)"
    with pytest.raises(pleat.PleatError, match=place_of(text) + ".*out(side)? of") as caught:
        made()
    assert f"| {'        '}{text}\n" in str(caught.value) and caught.value.messages[0].file == __file__


@T.prim_func
def textured(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    X = T.alloc_buffer((8, 4), "float32", scope="global.texture", axis_separators=[1])
    for i, j in T.grid(8, 4):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = A[vi, vj]
    for i, j in T.grid(8, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = X[vi, vj]


@pytest.mark.parametrize("target", ["llvm", "c", "cuda"])
def test_memory_that_a_target_does_not_have_is_refused_by_the_names_of_both(target):
    what = "X needs memory of rank 2 and scope 'global.texture', which target {} does not have"
    place = place_of("X = T.alloc_buffer((8, 4), \"float32\", scope=\"global.texture\", axis_separators=[1])")
    place = place.replace(":5:", ":9:")  # of the declaration, without the name
    with pytest.raises(pleat.PleatError, match=place + what.format(target)):
        pleat.build(textured, target=target, cache=False)


def test_errors_of_runs_are_at_their_lines():
    run = pleat.build(gather, cache=False)
    table, index = np.zeros(5, "float32"), np.full(3, 7, "int32")
    with pytest.raises(pleat.PleatError, match=place_of("result[i] = table[index[i]]")):
        run(table, index, np.zeros(3, "float32"))
    with pytest.raises(pleat.PleatError, match=place_of("A[n] = T.float32(1)")):
        pleat.build(beyond_free, cache=False)(np.zeros(4, "float32"), 4)


def test_errors_of_programs_without_a_file_show_their_script():
    both = pleat.IRModule({"beyond": pleat.script.from_source(beyond.script()), "add": add})
    assert "script:6:9" in str(pytest.raises(pleat.PleatError, pleat.build, both["beyond"]).value)
    made = pleat.IRModule({"add": add, "beyond": beyond})  # beyond is printed and read again
    with pytest.raises(pleat.PleatError, match="script of beyond:6:9: error: .*out of bounds"):
        pleat.build(made, cache=False)


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeError, match="expected an IRModule or a PrimFunc, not str"):
        pleat.build("kernel.py")
    with pytest.raises(pleat.PleatError, match="expected one of llvm, c, opencl, cuda"):
        pleat.build(add, target="metal")
    with pytest.raises(pleat.PleatError, match="no tensor program"):
        pleat.build(pleat.IRModule())


@T.prim_func
def gather(table: T.Buffer((5,), "float32"), index: T.Buffer((3,), "int32"),
           result: T.Buffer((3,), "float32")):
    for i in range(3):
        result[i] = table[index[i]]


def test_accesses_out_of_bounds_raise():
    table, result = np.arange(5, dtype=np.float32), np.zeros(3, np.float32)
    run = pleat.build(gather, cache=False)
    run(table, np.array([4, 0, 2], np.int32), result)
    assert result.tolist() == [4, 0, 2]
    for bad in 5, -1:
        with pytest.raises(pleat.PleatError, match=rf"table\[index\[i\]\] .* index {bad} of axis 0"):
            run(table, np.array([1, bad, 2], np.int32), result)
    run(table, np.array([3, 3, 1], np.int32), result)
    assert result.tolist() == [3, 3, 1]
    unchecked = pleat.build(gather, cache=False, unchecked=True)
    unchecked(table, np.array([4, 0, 2], np.int32), result)
    assert result.tolist() == [4, 0, 2]


# ---- Narrow floats ----------------------------------------------------------------------------------

NARROW = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
          "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]


@pytest.mark.parametrize("name", NARROW)
def test_all_codes_of_narrow_floats(name):
    """Each code becomes the number that ml_dtypes gives it, and numbers become the nearest codes."""
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    values = np.linspace(-40, 40, 4001).astype("float32") * np.float32(0.37)
    values[:762] = np.outer(np.exp2(np.arange(-126.0, 128)), [1, 1.4999, 1.5]).ravel()
    values[762:770] = np.exp2(np.arange(-134.0, -126))

    @T.prim_func
    def convert(A: T.Buffer((256,), name), B: T.Buffer((256,), "float32"),
                C: T.Buffer((4001,), "float32"), D: T.Buffer((4001,), name)):
        for i in range(256):
            B[i] = T.Cast("float32", A[i])
        for i in range(4001):
            D[i] = T.Cast(name, C[i])
    bits = {"float4": 4, "float6": 6}.get(name.split("_")[0], 8)
    codes = (np.arange(256) % 2**bits).astype("uint8").view(dtype)
    b, d = np.zeros(256, "float32"), np.zeros(4001, dtype)
    pleat.build(convert, cache=False)(codes, b, values, d)
    np.testing.assert_array_equal(b, codes.astype("float32"))
    np.testing.assert_array_equal(d.astype("float32"), values.astype(dtype).astype("float32"))


@T.prim_func
def divide(A: T.Buffer(("n",), "int32"), D: T.Buffer(("n",), "int32"),
           B: T.Buffer(("n",), "int32")):
    for i in range(A.shape[0]):
        B[i] = T.floormod(A[i], D[i]) - A[i] // D[i]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_divisions_by_zero_are_exceptions(target):
    built = pleat.build(divide, target=target, cache=False)
    a = np.arange(-20, 15, dtype=np.int32)
    d = np.where(np.arange(35) % 3 == 0, -3, 7).astype(np.int32)
    b = np.zeros(35, np.int32)
    built(a, d, b)
    np.testing.assert_array_equal(b, a % d - a // d)
    d[11] = 0
    with pytest.raises(pleat.PleatError, match=r"A\[.*\] (%|//) D\[.*\] is a division by 0"):
        built(a, d, b)
    d[11] = 1
    built(a, d, b)
    np.testing.assert_array_equal(b, a % d - a // d)
    lowest, one = np.array([-2**31, -2**31], np.int32), np.array([-1, 1], np.int32)
    b = np.zeros(2, np.int32)
    built(lowest, one, b)
    np.testing.assert_array_equal(b, [-2**31, -2**31])  # quotients wrap around


def clipped(m, n, k):
    @T.prim_func
    def clip(C: T.Buffer((m, n), "float32"), A: T.Buffer((m, k), "float32"), B: T.Buffer((n, k), "float32"),
             low: T.float32, high: T.float32):
        sums, most = T.alloc_buffer((m, n)), T.alloc_buffer((m,))
        for i, j, r in T.grid(m, n, k):
            with T.block("sums"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    sums[vi, vj] = T.float32(0)
                sums[vi, vj] = sums[vi, vj] + A[vi, vr] * B[vj, vr]
        for i, j in T.grid(m, n):
            with T.block("most"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    most[vi] = low
                most[vi] = T.max(most[vi], sums[vi, vj])
        for i, j in T.grid(m, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.min(sums[vi, vj] - most[vi], high)
    return clip


@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 1), (13, 33, 20)])
def test_the_output_of_reductions_may_be_any_parameter(shape):
    m, n, k = shape
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype("float32") for s in ((m, k), (n, k)))
    c = np.full((m, n), 77, "float32")
    pleat.build(clipped(m, n, k), cache=False)(c, a, b, -2.0, -0.5)
    sums = a @ b.T
    most = np.maximum(sums.max(1, keepdims=True), -2)
    np.testing.assert_allclose(c, np.minimum(sums - most, -0.5), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_scalars_decide_how_much_work_there_is(target, tmp_path):
    @I.ir_module
    class Work:
        @T.prim_func
        def rows(A: T.Buffer((16,), "int32"), n: T.int32):
            for i in T.parallel(n):
                A[i] = i + 1

        @T.prim_func
        def reversed(A: T.Buffer((16,), "int32"), n: T.int32, x: T.float32):
            B = T.alloc_buffer((n,), "int32")
            for i in T.parallel(n):
                B[i] = i
            for i in T.parallel(n):
                A[i] = B[n - 1 - i] + T.Cast("int32", x)

        @T.prim_func
        def stored(A: T.Buffer((2,), "int32"), B: T.Buffer((16,), "int32")):
            for i in T.parallel(A[0], A[1]):
                B[i] = i

    run = pleat.build(Work, target=target, cache=False)
    a = np.zeros(16, "int32")
    for n in (9, 1, 16, 0):
        a[:] = -1
        run["rows"](a, n)
        assert a.tolist() == [*range(1, n + 1)] + [-1] * (16 - n)
        run["reversed"](a, n, 2.0)
        assert a[:n].tolist() == [n + 1 - i for i in range(n)]
    for n in (17, 1000):
        with pytest.raises(pleat.PleatError, match=r"A\[i\] is out of bounds.*index (16|999) of axis 0"):
            run["rows"](a, n)
    a[:] = -1
    run["rows"](a, -3)
    assert (a == -1).all()
    run["stored"](np.array([3, 5], "int32"), a)
    assert a[2:7].tolist() == [-1, 3, 4, -1, -1]
    run.export_library(tmp_path / "work.pleat")
    loaded = pleat.load_module(tmp_path / "work.pleat")
    for n in (9, 2):
        a[:] = 0
        loaded["reversed"](a, n, 0.0)
        assert a[:n].tolist() == list(range(n))[::-1]


def test_scalars_decide_whether_iterations_share_elements():
    @T.prim_func
    def rows(A: T.Buffer((32,), "int32"), step: T.int32):
        for i in T.parallel(4):
            for j in range(3):
                A[i * step + j] = A[i * step + j] + 1

    run = pleat.build(rows, cache=False)
    for step in (3, 8):
        a = np.zeros(32, "int32")
        run(a, step)
        assert a.sum() == 12 and a.max() == 1
    with pytest.raises(pleat.PleatError, match=r"iterations i = 0 and i = 1 of a parallel loop share A\[2\]"):
        run(a, 2)

    @T.prim_func
    def scatter(A: T.Buffer((8,), "int32"), at: T.Buffer((8,), "int32"), by: T.int32):
        for i in T.parallel(8):
            A[at[i]] = i * by

    with pytest.warns(UserWarning, match="it is not decided whether iterations of the parallel loop 'i' share"):
        run = pleat.build(scatter, cache=False)
        run(a[:8], np.arange(8, dtype="int32"), 7)
    assert a[:8].tolist() == [7 * i for i in range(8)] and len(run.entry._models) == 2
    run(a[:8], np.arange(8, dtype="int32"), 5)
    assert a[:8].tolist() == [5 * i for i in range(8)] and len(run.entry._models) == 2


def test_data_types():
    vector = pleat.DataType("float32x4")
    assert (vector, vector.bits, vector.lanes, vector.itemsize) == ("float32x4", 32, 4, 16)
    assert vector.with_lanes(1) == "float32" and pleat.DataType("bool").type_code == pleat.DataTypeCode.BOOL
    assert pleat.runtime.DataType("float8_e4m3fn").bits == 8 and pleat.DataType("uint16").itemsize == 2
    for name in ("flot32", "int32y4", "integer"):
        with pytest.raises(ValueError, match=f"expected the name of a type .* saw '{name}'"):
            pleat.DataType(name)


def test_enabled_targets():
    assert pleat.runtime.enabled("llvm") and pleat.runtime.enabled("c") and not pleat.runtime.enabled("rocm")


def test_dictionaries_of_arrays(tmp_path):
    arrays = {"w": np.arange(6, dtype="float32").reshape(3, 2).T, "b": pleat.nd.array(np.array([1, 2], "int8")),
              "s": np.float64(3), "e": np.zeros((0, 7), "bool")}
    data = pleat.runtime.save_param_dict(arrays)
    assert data[:8] == bytes.fromhex("b79c04054f8de5f7")
    found = pleat.runtime.load_param_dict(data)
    assert list(found) == list(arrays)
    for name, array in found.items():
        expected = np.asarray(arrays[name])
        assert (array.shape, array.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(array, expected)
    pleat.runtime.save_param_dict_to_file(arrays, tmp_path / "x")
    assert list(pleat.runtime.load_param_dict_from_file(tmp_path / "x")) == list(arrays)
    with pytest.raises(TypeError, match="the array 'x' has element type <U1"):
        pleat.runtime.save_param_dict({"x": np.array("a")})


@pytest.mark.parametrize("cut,message", [(-1, "end after"), (30, "end after"), (0, "end after 0 bytes")])
def test_a_dictionary_of_arrays_that_is_cut(cut, message):
    data = pleat.runtime.save_param_dict({"weight": np.zeros((2, 3), "float32")})
    with pytest.raises(ValueError, match=message):
        pleat.runtime.load_param_dict(data[:cut])
    with pytest.raises(ValueError, match="expected a dictionary of arrays .* saw 0x7878787878787878"):
        pleat.runtime.load_param_dict(b"x" * 99)
