# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions of sums that are computed in register tiles: they are in loops over tiles in
memory, and their values are those of ONNX Runtime."""
import os
import pathlib
import re
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))


def model_of(op, shape, weight, function, **attributes):
    """The function of a product or convolution with random weights, and the input."""
    random = np.random.default_rng(5)
    x = random.uniform(-2, 2, shape).astype(np.float32)
    weights = numpy_helper.from_array(random.uniform(-1, 1, weight).astype(np.float32), "w")
    nodes = [helper.make_node(op, ["x", "w"], ["sum"], **attributes)]
    if function == "Silu":
        nodes += [helper.make_node("Sigmoid", ["sum"], ["s"]),
                  helper.make_node("Mul", ["sum", "s"], ["y"])]
    else:
        nodes.append(helper.make_node(function, ["sum"], ["y"]))
    graph = helper.make_graph(nodes, "function",
                              [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
                              [helper.make_empty_tensor_value_info("y")], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), x


@pytest.mark.parametrize("level", ["avx2", "baseline"])
@pytest.mark.parametrize("op, shape, weight, function, attributes", [
    ("Conv", [2, 10, 7, 9], [20, 10, 3, 3], "Silu", {"pads": [1] * 4}),
    ("Conv", [1, 24, 13, 11], [24, 1, 5, 5], "Silu", {"pads": [2] * 4, "group": 24}),
    ("MatMul", [13, 31], [31, 37], "Gelu", {}),
    ("MatMul", [3, 1, 7], [7, 48], "Tanh", {})])
def test_functions_of_tiles(op, shape, weight, function, attributes, level, tmp_path):
    """Partial tiles of rows and of vectors, and windows at borders."""
    model, x = model_of(op, shape, weight, function, **attributes)
    onnx.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", x)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    subprocess.run([PLEAT, "run", tmp_path / "m.onnx", "--cpu", level, "-i", f"x={tmp_path}/x.npy",
                    "-o", tmp_path / "out.npz"], check=True, timeout=120)
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(out["y"], expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("function, staged", [("Silu", True), ("Relu", False)])
def test_tiles_of_functions_are_in_memory(function, staged, tmp_path):
    """The loop over a tile has one copy of the function for each of at most four vectors."""
    model, _ = model_of("MatMul", [96, 40], [40, 96], function)
    onnx.save(model, tmp_path / "m.onnx")
    subprocess.run([PLEAT, "compile", tmp_path / "m.onnx", "--cpu", "avx2", "-o", tmp_path / "m.c"],
                   check=True, timeout=60)
    kernel = (tmp_path / "m.c").read_text().split("static void k0")[1].split("\n}\n")[0]
    assert bool(re.search(r"_Alignas\(64\) float \w+_global", kernel)) == staged
    if staged:
        bodies = re.split(r"for \(", kernel)
        assert 1 <= max(body.count(" / ") for body in bodies) <= 4
