# SPDX-License-Identifier: Apache-2.0
"""Vectors whose number of lanes is not a power of two, which C does not have: the emitted C is
compiled, run, and compared with the native code, which `verify` compares with the interpreter."""
import ctypes
import os
import pathlib
import shutil
import subprocess

import pytest

np = pytest.importorskip("numpy")
ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
COMPILERS = [name for name in ("gcc", "clang", "clang-19") if shutil.which(name)][:2]

KERNEL = '''from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 7), "float32"), I: T.Buffer((5, 7), "int32"), B: T.Buffer((5, 7), "float32"),
      J: T.Buffer((5, 7), "int32"), S: T.Buffer((5,), "float32"), H: T.Buffer((5, 7), "float16")):
    for i in range(5):
        %s
'''
# The statement of each kernel; the statements differ in their numbers of lanes.
STORES = {
    "slices": "B[i, 0:3] = A[i, 4:7] * T.Broadcast(T.float32(2), 3)",
    "functions": "B[i, 0:5] = T.sqrt(T.abs(A[i, 1:6])) + T.floor(A[i, 2:7])",
    "extremes": "B[i, 0:6] = T.max(A[i, 0:6], T.min(A[i, 1:7], T.Broadcast(T.float32(0.5), 6)))",
    "division": "J[i, 0:5] = T.truncdiv(I[i, 2:7], I[i, 0:5])",
    "remainder of steps": "J[i, 0:7] = T.truncmod(I[i, 0:7], T.Ramp(-6, 2, 7) * 2 + 1)",
    "one divisor": "J[i, 0:3] = T.truncdiv(T.Ramp(i, 3, 3), T.Ramp(-3, 1, 3))",
    "selection": "J[i, 1:6] = T.Select(A[i, 0:5] < A[i, 2:7], I[i, 0:5], I[i, 1:6])",
    "casts": 'H[i, 0:7] = T.Cast("float16x7", A[i, 0:7])',
    "integers": 'J[i, 0:6] = T.Cast("int32x6", A[i, 1:7] * T.float32(9))',
    "steps": "B[i, 0:7:3] = A[i, 0:6:2]",
    "sum": "S[i] = T.vector_sum(A[i, 0:7])",
    "least": "S[i] = T.vector_min(A[i, 1:6])",
    "greatest": "S[i] = T.vector_max(A[i, 0:3])",
}


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))


def run_c(folder, compiler, inputs, outputs):
    subprocess.run([compiler, "-std=gnu11", "-O2", "-march=native", "-Wall", "-Werror", "-shared",
                    "-fPIC", "f.c", "-lm", "-o", "f.so"], cwd=folder, check=True)
    arena = np.zeros(1 << 16, np.uint8)
    assert ctypes.CDLL(str(folder / "f.so")).f_run(pointers(inputs), pointers(outputs),
                                                   ctypes.c_void_p(-(-arena.ctypes.data // 64) * 64)) == 0


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_emitted_c_agrees(tmp_path, store, compiler):
    (tmp_path / "f.py").write_text(KERNEL % store)
    random = np.random.default_rng(len(store))
    given = {"A": random.standard_normal((5, 7)).astype("float32"),
             "I": random.integers(1, 50, (5, 7)).astype("int32")}
    kinds = {"B": ((5, 7), "float32"), "J": ((5, 7), "int32"), "S": ((5,), "float32"),
             "H": ((5, 7), "float16")}
    written = store[0]
    words = []
    for name, (shape, kind) in kinds.items():  # the rest of the output keeps its contents
        given[name] = np.zeros(shape, kind)
    for name, array in given.items():
        np.save(tmp_path / f"{name}.npy", array)
        words.append(f"--input={name}={name}.npy")
    for call in (["verify", "f.py"], ["compile", "f.py", "-o", "f.c"],
                 ["run", "f.py", *words, "-o", "out.npz"]):
        done = subprocess.run([PLEAT, *call], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    output = np.zeros_like(given[written])
    inputs = [given[name] for name in ("A", "I", *kinds) if name != written]
    run_c(tmp_path, compiler, inputs, [output])
    np.testing.assert_allclose(output, np.load(tmp_path / "out.npz")[written], rtol=1e-6)
    assert output.any()
