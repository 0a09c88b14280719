# SPDX-License-Identifier: Apache-2.0
"""Runs leave out the branch of an `if` that is not taken, and give what ONNX Runtime gives."""
import ctypes
import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import pytest
from built import BUILD, skip_sanitized
from onnx import TensorProto, helper

skip_sanitized()
pleat = pytest.importorskip("pleat")

N, K = 13, 7
WEIGHTS = {name: np.random.default_rng(i).standard_normal(shape, dtype=np.float32)
           for i, (name, shape) in enumerate([("w", (K, K)), ("v", (K, K)), ("u", (N, K))])}


def node(op, inputs, output, **attributes):
    outputs = output.split()
    return helper.make_node(op, inputs.split(), outputs, name=outputs[0], **attributes)


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def branch(nodes, *results, kind=TensorProto.FLOAT):
    return helper.make_graph(nodes, "branch", [], [info(name, None, kind) for name in results])


def choose(condition, output, yes, no):
    return node("If", condition, output, then_branch=yes, else_branch=no)


def model_of(nodes, outputs=("y",), extra=(), conditions=("c",)):
    inputs = [info(c, [], TensorProto.BOOL) for c in conditions] + [info("x", [N, K])]
    graph = helper.make_graph(
        nodes, "g", inputs,
        [info(name, None) for name in outputs],
        [onnx.numpy_helper.from_array(a, name) for name, a in {**WEIGHTS, **dict(extra)}.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


PRODUCTS = branch([node("MatMul", "x w", "a1"), node("Relu", "a1", "a2"),
                   node("MatMul", "a2 v", "a3")], "a3")
SOFTMAX = branch([node("MatMul", "x v", "b1"), node("Softmax", "b1", "b2", axis=-1)], "b2")
TWO = [branch([node("MatMul", f"x {w}", f"{p}1"), node("Tanh", f"{p}1", f"{p}2"),
               node("Neg", f"{p}1", f"{p}3")], f"{p}2", f"{p}3") for p, w in (("a", "w"), ("b", "v"))]
INNER = branch([node("MatMul", "x w", "i1"),
                choose("d", "i2",
                       branch([node("MatMul", "i1 v", "j1"), node("Exp", "j1", "j2")], "j2"),
                       branch([node("MatMul", "i1 w", "k1"), node("Sin", "k1", "k2")], "k2"))], "i2")
# The indices that a branch computes are always computed.
GATHERED = branch([node("MatMul", "x w", "a1"),
                   node("ArgMax", "a1", "a2", axis=1, keepdims=0),
                   node("Gather", "v a2", "a3", axis=0)], "a3")
DIVIDED = branch([node("MatMul", "x w", "a1"), node("Cast", "a1", "a2", to=TensorProto.INT32),
                  node("Cast", "x", "a3", to=TensorProto.INT32), node("Abs", "a3", "a4"),
                  node("Add", "a4 one", "a5"), node("Div", "a2 a5", "a6"),
                  node("Cast", "a6", "a7", to=TensorProto.FLOAT)], "a7")
SHARED = [node("MatMul", "x v", "s"),
          choose("c", "y", branch([node("MatMul", "s w", "a1"), node("Relu", "a1", "a2")], "a2"),
                 branch([node("Softmax", "s", "b1", axis=0)], "b1"))]
COMPUTED = [node("MatMul", "x w", "m"), node("ReduceSum", "m", "sum", keepdims=0),
            node("Greater", "sum zero", "positive"),
            node("Xor", "c positive", "c2"), choose("c2", "y", PRODUCTS, SOFTMAX)]

MODELS = {
    "products": model_of([choose("c", "y", PRODUCTS, SOFTMAX)]),
    "an input": model_of([choose("c", "y", PRODUCTS, branch([node("Identity", "x", "b")], "b"))]),
    "a reader behind": model_of([choose("c", "t", PRODUCTS, SOFTMAX), node("MatMul", "t w", "t2"),
                                 node("Add", "t2 t", "y")]),
    "two results": model_of([choose("c", "y z", *TWO)], outputs=("y", "z")),
    "one result of two": model_of([choose("c", "y z", *TWO)]),
    "nested": model_of([choose("c", "y", INNER, SOFTMAX)], conditions=("c", "d")),
    "two in a row": model_of([choose("c", "t", PRODUCTS, SOFTMAX),
                              choose("d", "y", branch([node("MatMul", "t w", "e")], "e"),
                                     branch([node("MatMul", "x v", "f"), node("Neg", "f", "g")],
                                            "g"))],
                             conditions=("c", "d")),
    "indices": model_of([choose("c", "y", GATHERED, SOFTMAX)]),
    "divisors": model_of([choose("c", "y", DIVIDED, SOFTMAX)],
                         extra={"one": np.array(1, np.int32)}.items()),
    "shared": model_of(SHARED),
    "shared and returned": model_of(SHARED, outputs=("y", "s")),
    "computed": model_of(COMPUTED, extra={"zero": np.array(0, np.float32)}.items()),
}


def inputs_of(model, seed):
    random = np.random.default_rng(seed)
    return {i.name: random.standard_normal((N, K), dtype=np.float32) if i.name == "x"
            else np.array(random.integers(2), bool) for i in model.graph.input}


@pytest.mark.parametrize("poison", ["0", "1"])
@pytest.mark.parametrize("name", MODELS)
def test_results(name, poison, monkeypatch, tmp_path):
    monkeypatch.setenv("PLEAT_POISON", poison)
    model = MODELS[name]
    compiled = pleat.compile(model.SerializeToString(), cache=False, threads=1)
    compiled.save(tmp_path / "m.pleat")
    loaded = pleat.load(tmp_path / "m.pleat")
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    for seed in range(12):
        inputs = inputs_of(model, seed)
        for one in (compiled, loaded):
            results = one(**inputs)
            for got, expected in zip(results if isinstance(results, (tuple, list)) else [results],
                                     peer.run(None, inputs)):
                np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)
    assert compiled.verify()


def kernels_that_run(model, **inputs):
    """The names of the kernels that a run does not leave out, which take the least time."""
    return {kernel.name for kernel in model.profile(inputs).kernels if kernel.seconds > 1.5e-9}


def test_the_other_branch_is_left_out():
    model = pleat.compile(MODELS["nested"].SerializeToString(), cache=False, threads=1)
    x = np.ones((N, K), np.float32)
    for c, d, runs, rests in [(1, 1, "i1 j1", "k1 b1"), (1, 0, "i1 k1", "j1 b1"),
                              (0, 1, "b1", "i1 j1 k1")]:
        names = " ".join(kernels_that_run(model, c=np.bool_(c), d=np.bool_(d), x=x))
        assert all(name in names for name in runs.split()), names
        assert not any(name in names for name in rests.split()), names


class Code:
    """A model as a shared library, which Pleat or the C compiler makes."""

    def __init__(self, model, ending, folder):
        onnx.save(model, folder / "m.onnx")
        file = folder / f"m.{ending}"
        subprocess.run([BUILD / "pleat", "compile", folder / "m.onnx", "--cpu", "avx2", "-o", file], check=True)
        if ending == "c":
            subprocess.run(["cc", "-std=gnu11", "-O1", "-march=native", "-shared", "-fPIC",
                            "-o", folder / "m.so", file, "-lm"], check=True)
        size = int(re.search(r"ARENA_BYTES (\d+)", (folder / "m.h").read_text())[1])
        self.memory = np.zeros(size + 64, np.uint8)
        self.start = -self.memory.ctypes.data % 64
        self.arena = self.memory[self.start:self.start + size]
        self.run = ctypes.CDLL(str(folder / "m.so")).m_run

    def __call__(self, inputs):
        y = np.zeros((N, K), np.float32)
        arrays = [np.ascontiguousarray(a) for a in inputs.values()]
        pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        results = (ctypes.c_void_p * 1)(y.ctypes.data)
        assert self.run(pointers, results, ctypes.c_void_p(self.arena.ctypes.data)) == 0
        return y

    def written(self, inputs):
        """Which bytes of the arena a run writes."""
        found = np.zeros(len(self.arena), bool)
        for byte in (0x5a, 0xa5):
            self.arena[:] = byte
            self(inputs)
            found |= self.arena != byte
        return found


@pytest.mark.parametrize("ending", ["so", "c"])
@pytest.mark.parametrize("name", ["products", "nested", "computed", "two in a row"])
def test_files_of_code(name, ending, tmp_path):
    model = MODELS[name]
    code = Code(model, ending, tmp_path)
    peer = onnxruntime.InferenceSession(model.SerializeToString())
    for seed in range(8):
        inputs = inputs_of(model, seed)
        np.testing.assert_allclose(code(inputs), peer.run(None, inputs)[0], rtol=1e-4, atol=1e-4)
    one, other = (code.written({**inputs, "c": np.array(c)}) for c in (True, False))
    assert (one & ~other).any() and (other & ~one).any()


def test_plans_say_why_results_are_stored():
    text = str(pleat.plan(MODELS["products"].SerializeToString()))
    assert "it belongs to a branch, which runs may leave out" in text


SCRIPT = """
from pleat.script import relax as R
@R.function
def main(x: R.Tensor((13, 7), "float32"), w: R.Tensor((7, 7), "float32"), c: R.Tensor((), "bool")):
    if c:
        a = R.matmul(x, w)
        r = (R.nn.relu(a), R.negative(a))
    else:
        b = R.matmul(R.exp(x), w)
        r = (b, R.nn.softmax(b, axis=-1))
    return r
"""


@pytest.mark.parametrize("c", [True, False])
def test_scripts(c, tmp_path):
    (tmp_path / "m.py").write_text(SCRIPT)
    model = pleat.compile(tmp_path / "m.py", cache=False, threads=1)
    x, w = inputs_of(MODELS["products"], 3)["x"], WEIGHTS["w"]
    product = (x if c else np.exp(x)) @ w
    softmax = np.exp(product - product.max(-1, keepdims=True))
    expected = (np.maximum(product, 0), -product) if c else (
        product, softmax / softmax.sum(-1, keepdims=True))
    for got, one in zip(model(x, w, np.array(c)), expected):
        np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4)
