# SPDX-License-Identifier: Apache-2.0
"""Products of integers of 8 bits, four at a time: the results are those of ONNX, bit by bit, for
numbers of both signs, zeros, padding, groups, and extents that four does not divide."""
import os
import subprocess

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import helper, numpy_helper

PLEAT = os.environ.get("PLEAT", "build/pleat")
KINDS = {np.uint8: onnx.TensorProto.UINT8, np.int8: onnx.TensorProto.INT8, np.float32: onnx.TensorProto.FLOAT}


def save(path, nodes, x, constants):
    values = [helper.make_tensor_value_info("x", KINDS[x.dtype.type], x.shape)]
    graph = helper.make_graph(nodes, "g", values, [onnx.ValueInfoProto(name="y")],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9), path)


def reference(path, x):
    """ONNX's own, since ONNX Runtime's sums of two products end at 16 bits without VNNI."""
    return onnx.reference.ReferenceEvaluator(str(path)).run(None, {"x": x})[0]


def run(path, x, *options):
    given, out = path.parent / "x.npy", path.parent / "y.npz"
    np.save(given, x)
    subprocess.run([PLEAT, "run", path, "-i", f"x={given}", "-o", out, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(out)["y"]


def numbers(rng, kind, shape):
    info = np.iinfo(kind)
    return rng.integers(info.min, info.max + 1, shape).astype(kind)


def programs(path, *options):
    return subprocess.run([PLEAT, "plan", path, "--programs", "--cpu", "avx512vnni", *options], check=True,
                          capture_output=True, text=True).stdout


def uses_dot(path):
    out = path.parent / "y.s"
    subprocess.run([PLEAT, "compile", path, "--cpu", "avx512vnni", "-o", out], check=True,
                   stdout=subprocess.DEVNULL)
    return "vpdpbusd" in out.read_text()


# input type and zero, weight type and zeros, shapes of both, attributes
CONVOLUTIONS = [
    (np.uint8, 131, np.int8, 0, (1, 16, 9, 7), (24, 16, 3, 3), {"pads": [1, 0, 2, 1]}),
    (np.int8, -7, np.int8, 0, (2, 5, 8, 6), (7, 5, 3, 2), {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    (np.uint8, 0, np.uint8, 119, (1, 3, 11, 10), (17, 3, 5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
    (np.uint8, 255, np.int8, 0, (1, 16, 5, 6), (32, 4, 3, 3), {"pads": [1, 1, 1, 1], "group": 4}),
    (np.uint8, 128, np.int8, 0, (1, 33, 1, 1), (10, 33, 1, 1), {}),
]


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolutions(tmp_path, case):
    kind, zero, weight_kind, weight_zero, shape, weights, attributes = CONVOLUTIONS[case]
    rng = np.random.default_rng(case)
    x, filters = numbers(rng, kind, shape), weights[0]
    constants = {"xs": np.float32(0.02), "xz": kind(zero), "w": numbers(rng, weight_kind, weights),
                 "ws": (rng.random(filters) * 0.01 + 0.001).astype(np.float32),
                 "wz": np.full(filters, weight_zero, weight_kind), "ys": np.float32(0.3), "yz": kind(100),
                 "b": rng.integers(-1000, 1000, filters).astype(np.int32)}
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    path = tmp_path / "conv.onnx"
    save(path, [helper.make_node("QLinearConv", names, ["y"], **attributes)], x, constants)
    want = reference(path, x)
    assert len(np.unique(want)) > 4
    assert np.array_equal(run(path, x), want)
    assert np.array_equal(run(path, x, "--cpu", "baseline"), want)  # in words
    assert uses_dot(path)


@pytest.mark.parametrize("kind, shape, weights", [
    (np.uint8, (5, 30), (30, 19)), (np.int8, (1, 64), (64, 48)), (np.uint8, (2, 7, 33), (2, 33, 16))])
def test_products(tmp_path, kind, shape, weights):
    rng = np.random.default_rng(4)
    x = numbers(rng, kind, shape)
    path = tmp_path / "product.onnx"
    constants = {"w": numbers(rng, np.int8, weights), "xz": kind(3), "wz": np.int8(-5)}
    save(path, [helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])], x, constants)
    assert np.array_equal(run(path, x), reference(path, x))
    assert uses_dot(path)


def test_dequantised_convolution(tmp_path):
    """A convolution in float32 of dequantised numbers is one of bytes, except where sums must stay as
    they are."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1, 8, 9, 7)).astype(np.float32)
    constants = {"xs": np.float32(0.03), "xz": np.uint8(121), "w": numbers(rng, np.int8, (16, 8, 3, 3)),
                 "ws": (rng.random(16) * 0.01 + 0.001).astype(np.float32), "wz": np.zeros(16, np.int8)}
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["d"]),
             helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["f"], axis=0),
             helper.make_node("Conv", ["d", "f"], ["y"], pads=[1, 1, 1, 1])]
    path = tmp_path / "qdq.onnx"
    save(path, nodes, x, constants)
    assert np.allclose(run(path, x), reference(path, x), rtol=1e-5, atol=1e-5)
    assert uses_dot(path)
    assert "dot_bytes" not in programs(path, "--accuracy", "exact")


def test_residual_network(tmp_path):
    """Numbers that several operators read are stored as bytes, and sums are stored as bytes at once."""
    rng = np.random.default_rng(6)
    x = rng.standard_normal((1, 6, 8, 7)).astype(np.float32)
    constants, nodes = {"z": np.uint8(9), "wz": np.int8(0)}, []

    def quantised(name, scale):
        constants[name + "_s"] = np.float32(scale)
        nodes.append(helper.make_node("QuantizeLinear", [name, name + "_s", "z"], [name + "_q"]))
        nodes.append(helper.make_node("DequantizeLinear", [name + "_q", name + "_s", "z"], [name + "_d"]))
        return name + "_d"

    def convolution(name, data, channels, filters, taps):
        constants[name + "_w"] = numbers(rng, np.int8, (filters, channels, taps, taps))
        constants[name + "_ws"] = np.float32(0.004)
        nodes.append(helper.make_node("DequantizeLinear", [name + "_w", name + "_ws", "wz"], [name + "_f"]))
        nodes.append(helper.make_node("Conv", [data, name + "_f"], [name], pads=[taps // 2] * 4))
        return name

    start = quantised(convolution("c1", quantised("x", 0.02), 6, 8, 3), 0.05)
    nodes.append(helper.make_node("Relu", [convolution("c2", start, 8, 8, 3)], ["r"]))
    end = quantised(convolution("c3", quantised("r", 0.09), 8, 8, 1), 0.1)
    nodes.append(helper.make_node("Add", [start, end], ["a"]))
    nodes.append(helper.make_node("Identity", [quantised("a", 0.15)], ["y"]))
    path = tmp_path / "residual.onnx"
    save(path, nodes, x, constants)
    steps = np.abs(run(path, x) - reference(path, x)) / 0.15
    assert steps.max() < 1.01 and (steps > 0.5).mean() < 0.02
    assert programs(path).count("dot_bytes") == 3


def test_products_share_packed_numbers(tmp_path):
    rng = np.random.default_rng(7)
    x = numbers(rng, np.uint8, (1, 6, 21))
    constants = {"z": np.uint8(77), "a": numbers(rng, np.int8, (21, 17)), "b": numbers(rng, np.int8, (21, 17))}
    nodes = [helper.make_node("MatMulInteger", ["x", "a", "z"], ["p"]),
             helper.make_node("MatMulInteger", ["x", "b", "z"], ["q"]),
             helper.make_node("Add", ["p", "q"], ["y"])]
    path = tmp_path / "shared.onnx"
    save(path, nodes, x, constants)
    assert np.array_equal(run(path, x), reference(path, x))
    packs = [line for line in programs(path).splitlines() if "shift_left" in line]
    assert programs(path).count("dot_bytes") == 2 and len(packs) == 1
