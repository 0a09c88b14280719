# SPDX-License-Identifier: Apache-2.0
"""Calls of the library from Python besides running a model: plans, files, kernels of TVMScript,
call-backs; and how long the import takes."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from built import BUILD, ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

DIGITS = str(ROOT / "examples" / "digits" / "digits.onnx")
MATMUL = str(ROOT / "examples" / "kernels" / "matmul.py")
KERNELS = b"""
from tvm.script import tir as T

@T.prim_func
def add(a: T.handle, k: T.float32, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 3), "float32")
    C = T.match_buffer(c, (n, 3), "float32")
    for i, j in T.grid(n, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * k

@T.prim_func
def double(A: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] * 2
"""


def test_plans_are_those_of_the_command():
    said = subprocess.run([str(BUILD / "pleat"), "plan", "--json", DIGITS],
                          capture_output=True, check=True, text=True).stdout
    plan = pleat.plan(DIGITS, threads=1)
    assert plan == json.loads(said)
    assert {"rewrites", "cost", "joins"} <= plan.keys()
    tensor = pleat.plan_tensor(DIGITS, "image", threads=1)
    assert tensor["kind"] == "input" and tensor["shape"] == [1, 1, 8, 8]
    with pytest.raises(pleat.PleatError, match="did you mean 'image'"):
        pleat.plan_tensor(DIGITS, "imag")


def test_models_know_their_plan(tmp_path):
    model = pleat.compile(DIGITS, threads=1, quick=True, desired_layouts={"Conv": "NHWC"})
    assert model.plan() == pleat.plan(DIGITS, threads=1, desired_layouts={"Conv": "NHWC"})
    assert model.fusion() == model.plan()["joins"]
    model.write(tmp_path / "digits.c", weights="beside")
    assert {p.name for p in tmp_path.iterdir()} == {"digits.c", "digits.h", "digits.c.weights"}


def test_files_are_written(tmp_path):
    pleat.write(MATMUL, tmp_path / "matmul.py", lowered=True)
    assert "def matmul" in (tmp_path / "matmul.py").read_text()
    pleat.write(MATMUL, tmp_path / "matmul.py", lowered=True, annotate=True)
    assert " <- " in (tmp_path / "matmul.py").read_text()
    pleat.write(DIGITS, tmp_path / "digits.o", threads=1)
    assert (tmp_path / "digits.o").stat().st_size
    with pytest.raises(pleat.PleatError, match="says what to write"):
        pleat.write(DIGITS, tmp_path / "digits.xyz")
    with pytest.raises(pleat.PleatError, match="expected inside or beside"):
        pleat.write(DIGITS, tmp_path / "digits.c", weights="under")


def test_kernels_run():
    kernel = pleat.compile(KERNELS, func="add", shapes={"n": 5})
    assert [(a.name, a.shape) for a in kernel.inputs] == [("A", (5, 3)), ("k", ())]
    a = np.arange(15, dtype="float32").reshape(5, 3)
    assert (kernel(a, np.float32(2)) == 2 * a).all()
    assert not kernel.outputs[0].is_read
    double = pleat.compile(KERNELS, func="double")
    values = np.array([1, 2, 3, 4], "int32")
    assert double.outputs[0].is_read and double.inputs == []
    double.run([], outputs=[values])
    assert values.tolist() == [2, 4, 6, 8]
    assert double.run({"A": values})[0].tolist() == [4, 8, 12, 16]
    assert values.tolist() == [2, 4, 6, 8]  # the array that was given is not written
    with pytest.raises(TypeError, match="'A' .* is missing"):
        double()
    with pytest.raises(pleat.PleatError, match="did you mean 'add'"):
        pleat.compile(KERNELS, func="ad")
    a, b, bias = (np.random.default_rng(3).standard_normal(shape).astype("float32")
                  for shape in ((384, 256), (256, 512), 512))
    assert np.allclose(pleat.compile(MATMUL)(a, b, bias), np.maximum(a @ b + bias, 0), atol=1e-3)


def test_progress_and_log():
    parts, messages = [], []
    pleat.compile(DIGITS, threads=1, quick=True, log=messages.append,
                  progress=lambda what, done, count: parts.append((what, done, count)))
    assert [what for what, done, _ in parts if done == 0][:2] == ["reading", "planning"]
    assert messages == []
    with pytest.raises(pleat.PleatError):
        pleat.compile("no-such-model.onnx", log=messages.append)
    assert [m.code for m in messages] == ["file"]


def test_exceptions_of_call_backs_end_the_call():
    class Stop(Exception):
        pass

    def fail(*_):
        raise Stop
    with pytest.raises(Stop):
        pleat.compile(DIGITS, progress=fail)
    with pytest.raises(Stop):
        pleat.compile("no-such-model.onnx", log=fail)
    with pytest.raises(Stop):
        pleat.plan(DIGITS, progress=fail)
    with pytest.raises(pleat.PleatCancelled):
        pleat.compile(DIGITS, progress=lambda *_: False)
    assert pleat.compile(DIGITS, threads=1, quick=True)(np.zeros((1, 1, 8, 8), "float32")).size == 10


def test_messages_speak_python():
    graph = b"""
from tvm.script import relax as R
@R.function
def main(x: R.Tensor(("n", 3), "float32")):
    with R.dataflow():
        y = R.nn.relu(x)
        R.output(y)
    return y
"""
    with pytest.raises(pleat.PleatError, match=r'shapes=\{"n": 128\}'):
        pleat.plan(graph, func="")


def test_the_import_loads_what_it_needs():
    """The time is measured by bench/saved.py: a busy machine can double it."""
    code = "import sys; import pleat; print(*sys.modules); pleat.Plan"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    loaded = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                            text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("pleat.") and name.count(".") == 1}
    assert ours == {"pleat." + name for name in
                    ("_declarations", "_expression", "_library", "_nvrtc", "_request", "layout",
                     "model", "operators", "places", "te", "tir")}
    assert not {"cffi", "ctypes", "numpy"} & set(loaded)
