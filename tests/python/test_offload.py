# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products that oneDNN computes: compared with ONNX Runtime, with the layouts that
it asks for, and with operations that follow."""
import ctypes
import json
import threading

import numpy as np
import onnx
import pytest
from built import skip_sanitized
from onnx import TensorProto, helper

skip_sanitized()
pleat = pytest.importorskip("pleat")
ort = pytest.importorskip("onnxruntime")


def has_dnnl():
    try:
        ctypes.CDLL("libdnnl.so.2")
        return True
    except OSError:
        return False


needs_dnnl = pytest.mark.skipif(not has_dnnl(), reason="oneDNN 2 is not installed")


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def model_of(nodes, inputs, outputs, weights=()):
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(model, calls, offload="dnnl", **options):
    """Compares a model with ONNX Runtime, and the number of its calls of oneDNN."""
    inputs = {i.name: random(*[d.dim_value for d in i.type.tensor_type.shape.dim], seed=k)
              for k, i in enumerate(model.graph.input)}
    own = pleat.compile(model, offload=offload, cache=False, **options)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, inputs)
    for result, wanted in zip(own.run(inputs), expected):
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=2e-6 * np.abs(wanted).max())
    plan = pleat.plan(model, offload=offload, **options)
    assert sum((kernel.function or "").startswith("oneDNN") for kernel in plan.kernels) == calls
    assert pleat.verify(model, inputs, offload=offload, **options).agrees
    return plan


WINDOWS = [
    dict(pads=[1, 1, 1, 1]), dict(), dict(strides=[2, 2], pads=[1, 1, 1, 1]),
    dict(strides=[2, 3], pads=[0, 2, 1, 0]), dict(dilations=[2, 1], pads=[2, 1, 2, 1]),
    dict(auto_pad="SAME_LOWER", strides=[2, 2]), dict(strides=[3, 3]),
]


@needs_dnnl
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("channels", [(3, 16), (16, 32), (17, 13), (1, 8), (32, 1)])
def test_convolutions(window, channels):
    c, o = channels
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["t"], "conv", **window),
             helper.make_node("Relu", ["t"], ["y"], "relu")]
    check(model_of(nodes, [("x", [2, c, 11, 13])], ["y"],
                   [("w", random(o, c, 3, 3, seed=8)), ("b", random(o, seed=9))]), 1)


@needs_dnnl
@pytest.mark.parametrize("kernel, shape", [((1, 1), [1, 16, 7, 5]), ((5, 2), [3, 7, 9, 8]),
                                           ((3,), [2, 5, 19]), ((2, 3, 1), [1, 4, 5, 6, 7])])
def test_ranks_and_kernels(kernel, shape):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "conv")]
    check(model_of(nodes, [("x", shape)], ["y"], [("w", random(11, shape[1], *kernel))]), 1)


@needs_dnnl
def test_chain_in_blocks():
    """Between convolutions nothing is rewritten: oneDNN's blocks are layouts that the planner has."""
    nodes = [helper.make_node("Conv", ["x", "a"], ["t"], "first", pads=[1] * 4),
             helper.make_node("Relu", ["t"], ["u"], "relu"),
             helper.make_node("Conv", ["u", "b", "c"], ["v"], "second", pads=[1] * 4),
             helper.make_node("Add", ["v", "u"], ["s"], "add"),
             helper.make_node("Relu", ["s"], ["r"], "relu2"),
             helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Conv", ["p", "d"], ["y"], "third")]
    weights = [("a", random(32, 16, 3, 3, seed=1)), ("b", random(32, 32, 3, 3, seed=2)),
               ("c", random(32, seed=3)), ("d", random(48, 32, 1, 1, seed=4))]
    model = model_of(nodes, [("x", [1, 16, 28, 28])], ["y"], weights)
    plan = check(model, 3)
    assert len([kernel for kernel in plan.kernels if not kernel.is_rewrite]) == 4
    check(model, 1, "dnnl=second")
    check(model, 3, "dnnl=Conv,MatMul")
    for layout in ("NHWC", "NCHW"):
        check(model, 3, desired_layouts={"Conv": layout})
    for policy in ("none", "forward", "backward"):
        check(model, 3, policy=policy)


@needs_dnnl
def test_channels_last_networks():
    nodes = [helper.make_node("Transpose", ["x"], ["n"], "to", perm=[0, 3, 1, 2]),
             helper.make_node("Conv", ["n", "w"], ["t"], "conv", pads=[1] * 4),
             helper.make_node("Transpose", ["t"], ["y"], "back", perm=[0, 2, 3, 1])]
    check(model_of(nodes, [("x", [1, 9, 10, 16])], ["y"], [("w", random(24, 16, 3, 3))]), 1)


@needs_dnnl
@pytest.mark.parametrize("a, b, constant", [
    ([7, 5], [5, 3], True), ([33, 64], [64, 128], True), ([2, 3, 7, 5], [2, 3, 5, 11], False),
    ([4, 7, 5], [5, 3], True), ([3, 1, 6], [3, 6, 4], False),
])
def test_products(a, b, constant):
    nodes = [helper.make_node("MatMul", ["a", "b"], ["t"], "product"),
             helper.make_node("Add", ["t", "c"], ["u"], "bias"),
             helper.make_node("Relu", ["u"], ["y"], "relu")]
    weights = [("c", random(b[-1], seed=5))] + ([("b", random(*b, seed=6))] if constant else [])
    check(model_of(nodes, [("a", a)] + ([] if constant else [("b", b)]), ["y"], weights), 1)


@needs_dnnl
def test_what_is_left_to_own_kernels():
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "grouped", group=4)]
    model = model_of(nodes, [("x", [1, 8, 9, 9])], ["y"], [("w", random(8, 2, 3, 3))])
    check(model, 0)
    nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["y"], "up", strides=[2, 2])]
    check(model_of(nodes, [("x", [1, 8, 9, 9])], ["y"], [("w", random(8, 4, 3, 3))]), 0)


@needs_dnnl
def test_sessions():
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], "conv", pads=[1] * 4)]
    model = model_of(nodes, [("x", [1, 16, 20, 20])], ["y"], [("w", random(32, 16, 3, 3))])
    own = pleat.compile(model, offload="dnnl", cache=False)
    x = [random(1, 16, 20, 20, seed=i) for i in range(4)]
    expected, results = [own(one) for one in x], [None] * 4

    def work(i):
        session = own.session(threads=1)
        for _ in range(20):
            results[i] = session(x[i])
    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for one, wanted in zip(results, expected):
        np.testing.assert_array_equal(one, wanted)
    with pytest.raises(pleat.PleatError, match="cannot hold the library's function 'oneDNN"):
        own.save("model.pleat")


def test_messages():
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", [3])], ["y"])
    with pytest.raises(pleat.PleatError, match="there is no library 'mkl'; expected dnnl"):
        pleat.compile(model, offload="mkl=Conv", cache=False)
    if not has_dnnl():
        with pytest.raises(pleat.PleatError, match="oneDNN is not installed"):
            pleat.compile(model, offload="dnnl", cache=False)


@needs_dnnl
def test_beside_own_kernels(tmp_path):
    """`bench --against dnnl` measures each call beside the kernels that take its place."""
    from command import pleat as command
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "conv", pads=[1, 1, 1, 1]),
             helper.make_node("Tanh", ["a"], ["b"], "tanh"),
             helper.make_node("Conv", ["b", "v"], ["y"], "last")]
    weights = [("w", random(20, 3, 3, 3)), ("v", random(5, 20, 1, 1))]
    model = model_of(nodes, [("x", [2, 3, 9, 7])], ["y"], weights)
    onnx.save(model, tmp_path / "net.onnx")
    call = ("bench", tmp_path / "net.onnx", "--against", "dnnl", "--repeat", 10, "--threads", 1)
    against = json.loads(command(*call, "--json"))["against"]
    assert against["name"].startswith("oneDNN") and against["latency_ms"]["median"] > 0
    rows = {row["operators"]: row for row in against["rows"]}
    assert list(rows) == ["conv, tanh", "last"]
    for row in rows.values():
        assert row["calls"] == 1 and row["own_kernels"] == 1
        assert row["library_ms"] > 0 and row["own_ms"] > 0
    some = json.loads(command(*call, "--offload", "dnnl=last", "--json"))["against"]
    assert [row["operators"] for row in some["rows"]] == ["last"]
    text = command(*call)
    assert "with oneDNN" in text and "  conv, tanh " in text
    nothing = command(*call, "--offload", "dnnl=Tanh", status=1)
    assert "Tanh" in nothing or "computes nothing" in nothing
