# SPDX-License-Identifier: Apache-2.0
"""Programs that call other programs of their module run natively: by pleat.build, as C and as saved
modules, and give what Python computes."""
import ctypes
import os
import pathlib
import subprocess
import sys

import command
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import ir as I, tir as T  # noqa: E402


@I.ir_module
class Calls:
    @T.prim_func(private=True)
    def scale(a: T.handle, b: T.handle, f: T.float32):
        n = T.int32()
        A = T.match_buffer(a, (n, 7))
        B = T.match_buffer(b, (n, 7))
        for i, j in T.grid(n, 7):
            with T.block("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * f

    @T.prim_func
    def first(A: T.Buffer((5, 7)), k: T.int32) -> T.int32:
        for j in range(7):
            if A[k, j] > T.float32(0):
                return j
        return 7

    @T.prim_func
    def add(A: T.Buffer((7,)), x: T.float32):
        for i in range(7):
            A[i] = A[i] + x

    @T.prim_func
    def main(A: T.Buffer((5, 7)), B: T.Buffer((5, 7)), C: T.Buffer((5,), "int32")):
        tmp = T.alloc_buffer((5, 7))
        Calls.scale(A.data, tmp.data, T.float32(2))
        Calls.scale(tmp.data, B.data, T.float32(3))
        for k in T.parallel(5):
            Calls.add(T.address_of(B[k, 0]), T.Cast("float32", k))
            C[k] = Calls.first(A.data, k) * 10 + Calls.first(A.data, 4 - k)

    @T.prim_func
    def sizes(A: T.Buffer(("m", 7)), B: T.Buffer(("m", 7))):
        Calls.scale(A.data, B.data, T.float32(2))


def first_positive(row):
    return next((j for j, x in enumerate(row) if x > 0), 7)


def arguments(seed):
    a = np.random.default_rng(seed).standard_normal((5, 7)).astype("float32") - 1
    return a, np.zeros_like(a), np.zeros(5, "int32")


def check(a, b, c):
    assert np.allclose(b, a * 6 + np.arange(5)[:, None])
    found = [first_positive(row) for row in a]
    assert c.tolist() == [10 * found[k] + found[4 - k] for k in range(5)]


def test_helpers_are_left_out():
    assert list(pleat.build(Calls, cache=False)) == ["add", "main", "sizes"]
    first = pleat.build(Calls["first"], cache=False)
    a = arguments(1)[0]
    assert [first(a, k) for k in range(5)] == [first_positive(row) for row in a]
    with pytest.raises(pleat.PleatError, match=r"A\[k, j\]|index 5"):
        first(a, 5)


@pytest.mark.parametrize("seed", range(3))
def test_results(seed):
    given = arguments(seed)
    pleat.build(Calls, cache=False)["main"](*given)
    check(*given)


def test_sizes_of_callees_follow_from_arguments(tmp_path):
    run = pleat.build(Calls, cache=False)
    for m in (11, 1, 0):
        a = np.arange(m * 7, dtype="float32").reshape(m, 7)
        b = np.full_like(a, 9)
        run["sizes"](a, b)
        assert np.array_equal(b, 2 * a)
    run.export_library(tmp_path / "calls.pleat")
    given = arguments(5)
    pleat.load_module(tmp_path / "calls.pleat")["main"](*given)
    check(*given)


def test_emitted_c(tmp_path):
    source = tmp_path / "calls.py"
    source.write_text(Calls.script())
    code = tmp_path / "calls.c"
    command.pleat("compile", source, "--func", "main", "-o", code)
    library = tmp_path / "calls.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, code, "-lm"], check=True)
    a, b, c = arguments(7)
    memory = np.zeros(1 << 16, "uint8")
    arena = ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)

    def pointers(*arrays):
        return (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    assert ctypes.CDLL(str(library)).calls_run(pointers(a), pointers(b, c), arena) == 0
    check(a, b, c)


def test_accesses_of_callees_are_checked():
    @I.ir_module
    class Bad:
        @T.prim_func(private=True)
        def add(A: T.Buffer((7,)), x: T.float32):
            for i in range(7):
                A[i] = A[i] + x

        @T.prim_func
        def beyond(A: T.Buffer((5, 6))):
            for k in range(5):
                Bad.add(T.address_of(A[k, 0]), T.float32(1))

        @T.prim_func
        def at(A: T.Buffer((30,)), at: T.Buffer((1,), "int32")):
            Bad.add(T.address_of(A[at[0]]), T.float32(1))
    with pytest.raises(pleat.PleatError, match="index 30 of its memory is outside of"):
        pleat.compile(Bad, func="beyond", cache=False)
    del Bad["beyond"]
    run = pleat.build(Bad, cache=False)["at"]
    a = np.zeros(30, "float32")
    run(a, np.array([23], "int32"))
    assert a.tolist() == [0] * 23 + [1] * 7
    for at in (24, -1):
        with pytest.raises(pleat.PleatError, match="is out of bounds"):
            run(a, np.array([at], "int32"))


def test_files_of_programs_that_call_a_library(tmp_path):
    """The library must be in the process that loads them."""
    (tmp_path / "user.c").write_text("float user_add(float a, float b) { return a + b; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "user.c", "-o", tmp_path / "user.so"], check=True)
    ctypes.CDLL(tmp_path / "user.so", mode=ctypes.RTLD_GLOBAL)

    @T.prim_func
    def main(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
        for i in range(3):
            B[i] = T.call_extern("float32", "user_add", A[i], T.float32(2))
    run = pleat.build(main, cache=False)
    for ending in (".pleat", ".so"):
        path = tmp_path / f"calls{ending}"
        run.export_library(path)
        b = np.zeros(3, "float32")
        pleat.load_module(path)(np.ones(3, "float32"), b)
        assert b.tolist() == [3, 3, 3]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(pleat.__file__).parents[1])}
    other = subprocess.run([sys.executable, "-c", f"import pleat; pleat.load_module({str(path)!r})"],
                           capture_output=True, text=True, env=environment)
    assert "calls 'user_add', which is not a function of this process" in other.stderr
