# SPDX-License-Identifier: Apache-2.0
"""DynamicQuantizeLSTM of com.microsoft: an LSTM with quantized weights, which is compared with the LSTM
of the weights as floats, and with ONNX Runtime, which also quantizes what it multiplies."""
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from built import skip_sanitized  # noqa: E402

skip_sanitized()
import pleat  # noqa: E402

LENGTH, BATCH, SIZE, HIDDEN = 5, 2, 7, 3


def model_of(nodes, weights):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [LENGTH, BATCH, SIZE])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "case", [x], [y],
                              [numpy_helper.from_array(w, n) for n, w in weights.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model, x):
    compiled = pleat.compile(model.SerializeToString())
    return np.asarray(compiled.run({"x": x})[0])


def weights_of(columns, directions, kind, seed):
    """Quantized weights with scales and zero points, and the weights as LSTM has them."""
    random = np.random.default_rng(seed)
    shape = (directions, 4 * HIDDEN) if columns else (directions,)
    result, floats = {}, {}
    for name, rows in (("W", SIZE), ("R", HIDDEN)):
        info = np.iinfo(kind)
        values = random.integers(info.min, info.max + 1, (directions, rows, 4 * HIDDEN)).astype(kind)
        scale = random.uniform(0.001, 0.004, shape).astype(np.float32)
        zero = np.full(shape, 0 if kind == np.int8 else 120, kind)
        result.update({name: values, f"{name}_scale": scale, f"{name}_zero": zero})
        exact = (values.astype(np.float32) - zero.reshape(directions, 1, -1)) * scale.reshape(
            directions, 1, -1)
        floats[name] = np.ascontiguousarray(exact.transpose(0, 2, 1))
    return result, floats


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_weights_are_dequantized(columns, kind, direction):
    directions = 2 if direction == "bidirectional" else 1
    weights, floats = weights_of(columns, directions, kind, 5)
    bias = np.random.default_rng(6).standard_normal((directions, 8 * HIDDEN)).astype(np.float32)
    x = np.random.default_rng(7).standard_normal((LENGTH, BATCH, SIZE)).astype(np.float32)
    names = ["x", "W", "R", "B", "", "", "", "", "W_scale", "W_zero", "R_scale", "R_zero"]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft",
                            hidden_size=HIDDEN, direction=direction)
    plain = helper.make_node("LSTM", ["x", "W", "R", "B"], ["y"], hidden_size=HIDDEN,
                             direction=direction)
    quantized = model_of([node], dict(weights, B=bias))
    given = run(quantized, x)
    assert given.shape == (LENGTH, directions, BATCH, HIDDEN)
    assert np.allclose(given, run(model_of([plain], dict(floats, B=bias)), x), atol=1e-5)
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(quantized.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    assert np.abs(session.run(None, {"x": x})[0] - given).max() < 0.03


def test_scales_are_needed():
    weights, _ = weights_of(False, 1, np.int8, 5)
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "W", "R"], ["y"], domain="com.microsoft",
                            hidden_size=HIDDEN)
    with pytest.raises(pleat.PleatError, match="needs weights of rank 3 in input 1 and scales"):
        run(model_of([node], weights), np.zeros((LENGTH, BATCH, SIZE), np.float32))
