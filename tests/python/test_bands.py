# SPDX-License-Identifier: Apache-2.0
"""Kernels that hand large tensors on run as one, in bands of rows: attention keeps its scores in the
second cache."""
import json

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from command import pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

LARGE = 960  # rows and columns of scores that no second cache holds


def attention(path, heads, rows, keys, depth, *, masked=False, scores=False):
    """softmax(q · k / 8 + mask) · v for each head; returns its inputs and its result."""
    random = np.random.default_rng(rows + keys)
    shapes = {"q": (heads, rows, depth), "k": (heads, depth, keys), "v": (heads, keys, depth)}
    if masked:
        shapes["mask"] = (rows, keys)
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    nodes = [helper.make_node("MatMul", ["q", "k"], ["products"], "products"),
             helper.make_node("Mul", ["products", "eighth"], ["scaled"]),
             helper.make_node("Add", ["scaled", "mask" if masked else "zero"], ["scores"]),
             helper.make_node("Softmax", ["scores"], ["shares"], "shares", axis=-1),
             helper.make_node("MatMul", ["shares", "v"], ["y"], "values")]
    outputs = [value_info("y", (heads, rows, depth))]
    if scores:
        outputs.append(value_info("scores", (heads, rows, keys)))
    save_model(path, nodes, [value_info(n, v.shape) for n, v in inputs.items()], outputs,
               [numpy_helper.from_array(np.float32(0.125), "eighth"),
                numpy_helper.from_array(np.zeros(1, np.float32), "zero")])
    exact = {name: value.astype(np.float64) for name, value in inputs.items()}
    sums = exact["q"] @ exact["k"] / 8 + exact.get("mask", 0)
    shares = np.exp(sums - sums.max(-1, keepdims=True))
    return inputs, {"y": shares / shares.sum(-1, keepdims=True) @ exact["v"], "scores": sums}


def check(path, inputs, expected, *options):
    arguments = list(options)
    for name, value in inputs.items():
        np.save(path.parent / f"{name}.npy", value)
        arguments += ["--input", f"{name}={path.parent / name}.npy"]
    pleat("run", path, *arguments, "-o", path.parent / "results.npz")
    results = np.load(path.parent / "results.npz")
    for name in results.files:
        np.testing.assert_allclose(results[name], expected[name], rtol=1e-4, atol=1e-5)


def kernels(path, *options):
    return [k["operators"] for k in json.loads(pleat("plan", path, *options, "--json"))["joins"]
            if not k["rewrite"]]


SIZES = [(2, LARGE, LARGE, 64), (1, 1500, 1500, 64), (3, 720, 1013, 48), (5, 600, 611, 7),
         (1, 1009, 1013, 32), (12, 1, 300000, 3), (7, 331, 331, 5), (1, 2048, 1025, 1)]


@pytest.mark.parametrize("cpu", ["avx512", "avx2", "sse2", "scalar"])
@pytest.mark.parametrize("sizes", SIZES)
def test_attention(sizes, cpu, tmp_path):
    path = tmp_path / "attention.onnx"
    check(path, *attention(path, *sizes), "--cpu", cpu)


@pytest.mark.parametrize("sizes", SIZES[:3])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_masks(sizes, threads, tmp_path):
    path = tmp_path / "attention.onnx"
    check(path, *attention(path, *sizes, masked=True), "--threads", threads)


def test_scores_stay_in_the_cache(tmp_path):
    """The three kernels become one, whose memory is a small part of the scores."""
    path = tmp_path / "attention.onnx"
    attention(path, 2, 2000, 2000, 64)  # scores of 32 MB
    assert len(kernels(path, "--cpu", "avx512")) == 1


@pytest.mark.parametrize("rows", [1009, 1499])
def test_the_last_band_may_be_smaller(rows, tmp_path):
    path = tmp_path / "attention.onnx"
    attention(path, 1, rows, rows, 64)
    assert len(kernels(path, "--cpu", "avx512")) < 3


def test_scores_that_are_an_output_are_stored(tmp_path):
    path = tmp_path / "attention.onnx"
    check(path, *attention(path, 2, LARGE, LARGE, 64, scores=True))
    assert len(kernels(path)) > 1


def test_small_scores_are_not_cut(tmp_path):
    path = tmp_path / "attention.onnx"
    attention(path, 2, 32, 32, 64)
    assert len(kernels(path)) > 1


def test_saved_model(tmp_path):
    path, saved = tmp_path / "attention.onnx", tmp_path / "attention.pleat"
    inputs, expected = attention(path, *SIZES[2])
    pleat("compile", path, "-o", saved)
    check(saved, inputs, expected)


def test_c(tmp_path):
    path = tmp_path / "attention.onnx"
    check(path, *attention(path, *SIZES[0], masked=True), "--target", "c")
