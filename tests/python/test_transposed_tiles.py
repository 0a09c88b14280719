# SPDX-License-Identifier: Apache-2.0
"""A product writes its result in the layout that its reader wants, so that nothing is rewritten: in
vectors along its rows, for which the register tile is transposed when it is stored, or in blocks of
columns that are wider than a tile."""
import json
import re

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from command import pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

LAYOUTS = {
    "lambda a, b, c: [a, b // 16, c, b % 16]": lambda y: blocks(y, 16),
    "lambda a, b, c: [a, b // 8, c, b % 8]": lambda y: blocks(y, 8),
    "lambda a, b, c: [a, c, b]": lambda y: y.transpose(0, 2, 1),
    "lambda a, b, c: [a, c // 64, b, c % 64]": lambda y: panels(y, 64),
    "lambda a, b, c: [a, c // 96, b, c % 96]": lambda y: panels(y, 96),
}
SIZES = [(1, 32, 64, 96), (1, 37, 50, 70), (3, 61, 96, 112), (1, 5, 7, 48), (2, 128, 33, 1)]
CPUS = [[], ["--cpu", "avx2"], ["--cpu", "sse2"]]


def blocks(y, size):
    """The rows in blocks of `size`, with NaN as padding."""
    a, b, c = y.shape
    padded = np.pad(y, ((0, 0), (0, -b % size), (0, 0)), constant_values=np.nan)
    return padded.reshape(a, -1, size, c).transpose(0, 1, 3, 2)


def panels(y, size):
    """The columns in blocks of `size`, with NaN as padding."""
    return blocks(y.transpose(0, 2, 1), size)


def product(path, batch, rows, steps, columns, residual=True):
    """max(x · w + bias + residual, 0); returns its inputs and its result."""
    random = np.random.default_rng(rows * steps)
    inputs = {"x": random.standard_normal((batch, rows, steps), np.float32)}
    if residual:
        inputs["residual"] = random.standard_normal((batch, rows, columns), np.float32)
    w = random.standard_normal((steps, columns), np.float32)
    bias = random.standard_normal(columns, np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["products"]),
             helper.make_node("Add", ["products", "bias"], ["sums"]),
             helper.make_node("Add", ["sums", "residual" if residual else "sums"], ["both"]),
             helper.make_node("Relu", ["both"], ["y"])]
    save_model(path, nodes, [value_info(n, v.shape) for n, v in inputs.items()],
               [value_info("y", (batch, rows, columns))],
               [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "bias")])
    y = inputs["x"].astype(np.float64) @ w + bias
    return inputs, np.maximum(y + inputs.get("residual", y), 0)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("cpu", CPUS)
def test_rows_as_vectors(layout, sizes, cpu, tmp_path):
    path = tmp_path / "product.onnx"
    inputs, y = product(path, *sizes)
    arguments = [path, "--output-layout", f"y={layout}", *cpu]
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    pleat("run", *arguments, "-o", tmp_path / "y.npz")
    result, expected = np.load(tmp_path / "y.npz")["y"], LAYOUTS[layout](y)
    there = ~np.isnan(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result[there], expected[there], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_is_rewritten(layout, tmp_path):
    """With 16 registers, a rewrite is faster than a tile of fewer rows, and so it may be where sums
    are long: for 256 steps both take 169 us."""
    path = tmp_path / "product.onnx"
    product(path, 1, 197, 64, 192, residual=False)
    options = [path, "--output-layout", f"y={layout}", "--cpu", "avx512"]
    plan = json.loads(pleat("plan", *options, "--json"))
    assert plan["kernels"] == 1


def test_tiles_that_write_to_few_sets(tmp_path):
    """The lines that a tile writes are 4096 bytes apart, so the result is rewritten instead."""
    path = tmp_path / "product.onnx"
    product(path, 1, 1024, 64, 512, residual=False)
    plan = json.loads(pleat("plan", path, "--output-layout", "y=lambda a, b, c: [a, c, b]", "--json"))
    assert plan["kernels"] == 2


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("windows,size", [(8, 7), (3, 5)])
def test_rows_of_two_axes_each(windows, size, cpu, tmp_path):
    """The rows of the product are windows and places in them, each of two axes of the image that is
    written (grid attention). The image's axis of one element is stored between them."""
    path, random, side = tmp_path / "grid.onnx", np.random.default_rng(size), windows * size
    x = random.standard_normal((1, windows**2, size**2, 40), np.float32)
    w = random.standard_normal((40, 64), np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["product"]),
             helper.make_node("Transpose", ["product"], ["places"], perm=[0, 2, 1, 3]),
             helper.make_node("Reshape", ["places", "grid"], ["both"]),
             helper.make_node("Transpose", ["both"], ["turned"], perm=[0, 5, 1, 3, 2, 4]),
             helper.make_node("Reshape", ["turned", "image"], ["y"])]
    shapes = {"grid": (1, size, size, windows, windows, 64), "image": (1, 64, side, side)}
    save_model(path, nodes, [value_info("x", x.shape)], [value_info("y", shapes["image"])],
               [numpy_helper.from_array(w, "w"),
                *(numpy_helper.from_array(np.array(v), k) for k, v in shapes.items())])
    np.save(tmp_path / "x.npy", x)
    layout = f"y=n,c,h,w -> h%{windows},w%{windows},n,h//{windows},w//{windows},c"
    text = pleat("run", path, "--output-layout", layout, "--input", f"x={tmp_path / 'x.npy'}", *cpu,
                 "-o", tmp_path / "y.npz")
    assert "slow paths      none" in text
    expected = (x @ w).reshape(windows, windows, 1, size, size, 64)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("side,channels,size,stride", [(100, 32, 7, 4), (64, 64, 3, 2), (33, 48, 3, 1)])
def test_pixels_as_rows(side, channels, size, stride, cpu, tmp_path):
    """A convolution writes its pixels as rows (the patches of a vision transformer). The rows of a
    tile are pixels of one row of the image, also where tiles do not divide that row."""
    ort, path = pytest.importorskip("onnxruntime"), tmp_path / "patches.onnx"
    random = np.random.default_rng(side)
    x = random.standard_normal((1, 3, side, side), np.float32)
    w = random.standard_normal((channels, 3, size, size), np.float32)
    pixels = ((side + size // 2 * 2 - size) // stride + 1)**2
    nodes = [helper.make_node("Conv", ["x", "w"], ["image"], strides=[stride] * 2,
                              pads=[size // 2] * 4),
             helper.make_node("Reshape", ["image", "flat"], ["rows"]),
             helper.make_node("Transpose", ["rows"], ["y"], perm=[0, 2, 1])]
    save_model(path, nodes, [value_info("x", x.shape)], [value_info("y", (1, pixels, channels))],
               [numpy_helper.from_array(w, "w"),
                numpy_helper.from_array(np.array([1, channels, -1]), "flat")])
    np.save(tmp_path / "x.npy", x)
    text = pleat("run", path, "--input", f"x={tmp_path / 'x.npy'}", *cpu, "-o", tmp_path / "y.npz")
    assert "slow paths      none" in text
    expected = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], expected, rtol=1e-4, atol=1e-4)


def attention(path, batch, tokens, heads, width):
    """softmax(Q · Kᵀ) · V of one layer whose queries, keys and values are products of x."""
    random = np.random.default_rng(tokens)
    all_heads, nodes, weights = heads * width, [], []
    for name, order in ("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]):
        w = random.standard_normal((all_heads, all_heads), np.float32) / all_heads**0.5
        weights.append(numpy_helper.from_array(w.astype(np.float32), f"{name}_weight"))
        nodes += [helper.make_node("MatMul", ["x", f"{name}_weight"], [f"{name}_all"]),
                  helper.make_node("Reshape", [f"{name}_all", "by_head"], [f"{name}_heads"]),
                  helper.make_node("Transpose", [f"{name}_heads"], [name], perm=order)]
    nodes += [helper.make_node("MatMul", ["q", "k"], ["scores"]),
              helper.make_node("Softmax", ["scores"], ["shares"]),
              helper.make_node("MatMul", ["shares", "v"], ["parts"]),
              helper.make_node("Transpose", ["parts"], ["turned"], perm=[0, 2, 1, 3]),
              helper.make_node("Reshape", ["turned", "in_one"], ["y"])]
    weights += [numpy_helper.from_array(np.array([batch, tokens, heads, width]), "by_head"),
                numpy_helper.from_array(np.array([batch, tokens, all_heads]), "in_one")]
    shape = (batch, tokens, all_heads)
    save_model(path, nodes, [value_info("x", shape)], [value_info("y", shape)], weights)


HEADS = [(1, 128, 4, 64), (2, 67, 3, 64), (1, 131, 5, 32)]


def share_rewritten(path, *options, without=()):
    """The share of the plan's cycles for rewrites at run time, but for tensors in `without`."""
    plan = json.loads(pleat("plan", path, *options, "--json"))
    return sum(r["cost"] for r in plan["rewrites"]
               if r["when"] == "run" and r["tensor"] not in without) / plan["cost"]


@pytest.mark.slow
@pytest.mark.parametrize("cpu", CPUS[:2])
@pytest.mark.parametrize("sizes", HEADS)
def test_keys_are_hardly_rewritten(sizes, cpu, tmp_path):
    """The values may be, to blocks of one head each, where these are cheaper to read many times. A
    tensor is rewritten only where that is about as fast as the shuffles of the tile that writes it."""
    path = tmp_path / "attention.onnx"
    attention(path, *sizes)
    assert share_rewritten(path, *cpu, without={"v_all"}) < 0.02
    assert "agrees" in pleat("verify", path, *cpu)


@pytest.mark.parametrize("sizes", HEADS)
def test_values_are_written_in_parts_of_blocks(sizes, tmp_path):
    """A block has the values of one head, which is wider than the best tile of the product."""
    path = tmp_path / "attention.onnx"
    attention(path, *sizes)
    assert share_rewritten(path, "--cpu", "avx512") < 0.025


@pytest.mark.parametrize("rows, layout, function", [
    (17, "ABDC", None), (16, "ABDC", None), (17, "ABCD", None), (17, "ABCD", "Tanh")])
def test_constants_of_rows_and_columns(rows, layout, function, tmp_path):
    """A constant with an element for each of the rows and of as many columns is laid out along the
    axis on which the vectors of the result are, also where a function reads the sums in memory."""
    path, random = tmp_path / "m.onnx", np.random.default_rng(rows)
    x = random.standard_normal((2, 3, rows, 12), np.float32)
    w, bias = random.standard_normal((1, 3, 12, rows), np.float32), random.standard_normal(
        (3, rows, rows), np.float32)
    save_model(path, [helper.make_node("MatMul", ["x", "w"], ["s"]),
                      helper.make_node("Add", ["s", "bias"], ["sum" if function else "y"]),
                      *([helper.make_node(function, ["sum"], ["y"])] if function else [])],
               [value_info("x", x.shape)], [value_info("y", (2, 3, rows, rows))],
               [numpy_helper.from_array(w, "w"), numpy_helper.from_array(bias, "bias")])
    np.save(tmp_path / "x.npy", x)
    text = pleat("compile", path, "--cpu", "avx2", "--output-layout", f"y={layout}", "-o",
                 tmp_path / "m.c")
    assert "slow paths      none" in text
    schedules = pleat("plan", path, "--cpu", "avx2", "--output-layout", f"y={layout}", "--schedules")
    assert rows % 8 == 0 or re.search(r"bias [A-D]+8[bc]", schedules)  # whole vectors of its axis
    pleat("run", path, "--cpu", "avx2", "--output-layout", f"y={layout}", "-i",
          f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npz")
    y = x @ w + bias
    y = np.tanh(y) if function else y
    expected = y.transpose(0, 1, 3, 2) if layout == "ABDC" else y
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], expected, rtol=1e-4, atol=1e-4)


SHIFTED_WINDOWS = """
from pleat.script import ir as I, tir as T, relax as R
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16, 8, 40, 8), "float32"), C: T.Buffer((28, 40, 28), "float32")):
        for i, j, k in T.grid(28, 40, 28):
            with T.block("window"):
                w, c, h = T.axis.remap("SSS", [i, j, k])
                C[w, c, h] = T.max(A[(h + 4) // 8 * 4 - (h + 28) // 32 * 16 + (w + 4) // 8
                    - (w + 28) // 32 * 4 + 15, (h + 4) % 8, c, (w + 4) % 8], T.float32(0))
    @R.function
    def main(A: R.Tensor((16, 8, 40, 8), "float32")) -> R.Tensor((28, 40, 28), "float32"):
        return R.call_tir(Module.f, (A,), out_sinfo=R.Tensor((28, 40, 28), "float32"))
"""


def test_tiles_of_shifted_windows(tmp_path):
    """The rows of an image that is put together from windows and rolled are transposed in registers:
    the indices are sums of quotients of one axis and different shifts, which stay in the tensor."""
    path = tmp_path / "windows.py"
    path.write_text(SHIFTED_WINDOWS)
    schedule = pleat("plan", path, "--func", "main", "--cpu", "avx2", "--schedules")
    assert "reindex_cache_read" in schedule
    assert "agrees" in pleat("verify", path, "--func", "main", "--cpu", "avx2")
