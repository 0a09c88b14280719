# SPDX-License-Identifier: Apache-2.0
"""Accesses and divisions of tensor programs that graph functions call are proved or checked while
the graph runs, in every form in which it runs."""
import ctypes
import re
import subprocess

import numpy as np
import pytest
from built import BUILD, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

SCRIPT = """
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def div(A: T.Buffer((7,), "int32"), D: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[vi] // D[vi]

    @T.prim_func
    def gather(A: T.Buffer((5,), "int32"), D: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[D[vi]]

    @R.function
    def main(x: R.Tensor((5,), "int32"), d: R.Tensor((7,), "int32"), e: R.Tensor((7,), "int32")):
        cls = Module
        y = R.call_tir(cls.gather, (R.negative(x), d), out_sinfo=R.Tensor((7,), "int32"))
        s = R.cumsum(y, axis=0)
        z = R.call_tir(cls.div, (s, e), out_sinfo=R.Tensor((7,), "int32"))
        return R.add(z, y)
"""
X = np.array([3, -1, 4, 15, 9], np.int32)
D, E = np.array([0, 4, 2, 2, 1, 3, 0], np.int32), np.array([1, 2, -3, 4, 5, 6, 7], np.int32)
FAR, ZERO = D.copy(), E.copy()
FAR[3], ZERO[5] = 10**9, 0


def expected(x, d, e):
    y = -x[d]
    return np.cumsum(y, dtype=np.int32) // e + y


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("graph") / "graph.py"
    file.write_text(SCRIPT)
    return file


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_runs(path, target, tmp_path):
    models = [pleat.compile(path, func="main", target=target, cache=False)]
    if target == "llvm":
        models[0].save(tmp_path / "m.pleat")
        models.append(pleat.load(tmp_path / "m.pleat"))
    for model in models:
        np.testing.assert_array_equal(model(X, D, E), expected(X, D, E))
        with pytest.raises(pleat.PleatError, match=r"is out of bounds: index 1000000000 of axis 0"):
            model(X, FAR, E)
        with pytest.raises(pleat.PleatError, match="is a division by 0"):
            model(X, D, ZERO)
        np.testing.assert_array_equal(model(X, D, E), expected(X, D, E))


def test_messages_have_the_line_of_the_call(path):
    model = pleat.compile(path, func="main", cache=False)
    with pytest.raises(pleat.PleatError, match=r"graph.py:24:\d+: .* is out of bounds"):
        model(X, FAR, E)
    with pytest.raises(pleat.PleatError, match=r"graph.py:26:\d+: .* is a division by 0"):
        model(X, D, ZERO)


@pytest.mark.parametrize("ending", ["so", "c"])
def test_files_return_two(path, ending, tmp_path):
    file = tmp_path / f"graph.{ending}"
    subprocess.run([BUILD / "pleat", "compile", path, "--func", "main", "-o", file], check=True)
    header = (tmp_path / "graph.h").read_text()
    assert "a division" in header and "axis 0" in header
    if ending == "c":
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", tmp_path / "graph.so", file, "-lm"],
                       check=True)
    library = ctypes.CDLL(str(tmp_path / "graph.so"))
    size = int(re.search(r"ARENA_BYTES (\d+)", header)[1])
    arena = np.zeros(size + 64, np.uint8)
    start = arena.ctypes.data + -arena.ctypes.data % 64
    y = np.zeros(7, np.int32)

    def run(*inputs):
        pointers = (ctypes.c_void_p * 3)(*(a.ctypes.data for a in inputs))
        results = (ctypes.c_void_p * 1)(y.ctypes.data)
        return library.graph_run(pointers, results, ctypes.c_void_p(start))
    assert run(X, D, E) == 0
    np.testing.assert_array_equal(y, expected(X, D, E))
    assert run(X, FAR, E) == 2 and run(X, D, ZERO) == 2 and run(X, D, E) == 0
