# SPDX-License-Identifier: Apache-2.0
"""An elementwise kernel that reads a tensor along another axis than the one along which its output is
contiguous moves square tiles, which are transposed in registers, and gathers no element by itself."""
import re

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from command import pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from onnx.helper import np_dtype_to_tensor_dtype as kind  # noqa: E402

CPUS = ["avx512", "avx2", "sse2", "scalar"]
# Extents that are whole tiles, odd, prime, 1, and shorter than a vector.
SHAPES = [((64, 48), (1, 0)), ((37, 53), (1, 0)), ((3, 5), (1, 0)), ((1, 40), (1, 0)),
          ((2, 3, 31, 29), (0, 2, 3, 1)), ((2, 31, 29, 3), (0, 3, 1, 2)),
          ((1, 64, 14, 14), (0, 2, 3, 1)), ((5, 7, 4, 33), (3, 2, 1, 0)),
          ((600, 520), (1, 0)), ((2, 17, 3, 40), (0, 2, 3, 1)),
          ((2, 3, 5, 32), (0, 2, 3, 1)), ((2, 5, 32, 3), (0, 3, 1, 2))]
TYPES = ["float32", "float64", "float16", "int8", "int64", "bool"]


def contents(shape, dtype, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape) * 40
    return values > 0 if dtype == "bool" else values.astype(dtype)


def results(tmp_path, nodes, inputs, outputs, *options):
    """The results of the model, whose outputs have these types and shapes."""
    path = tmp_path / "model.onnx"
    save_model(path, nodes, [value_info(n, v.shape, kind(v.dtype)) for n, v in inputs.items()],
               [value_info(n, shape, kind(np.dtype(dtype))) for n, (dtype, shape) in outputs.items()])
    arguments = [path, *options]
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    said = pleat("run", *arguments, "-o", tmp_path / "y.npz")
    return np.load(tmp_path / "y.npz"), said


def lowered(tmp_path, *options):
    out = tmp_path / "lowered.py"
    pleat("compile", tmp_path / "model.onnx", "-o", out, "--lowered", *options)
    return out.read_text()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape, order", SHAPES)
def test_transposes(shape, order, cpu, tmp_path):
    x = contents(shape, "float32")
    y = x.transpose(order)
    node = helper.make_node("Transpose", ["x"], ["y"], perm=list(order))
    found, _ = results(tmp_path, [node], {"x": x}, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], y)


@pytest.mark.parametrize("cpu", CPUS[:2])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape, order", SHAPES[1:2] + SHAPES[4:6] + SHAPES[-2:])
def test_types(shape, order, dtype, cpu, tmp_path):
    x = contents(shape, dtype)
    y = x.transpose(order)
    node = helper.make_node("Transpose", ["x"], ["y"], perm=list(order))
    found, _ = results(tmp_path, [node], {"x": x}, {"y": (dtype, y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], y)


# Large outputs whose rows share sets of the first cache; in the last two, blocks leave a rest.
CROWDED = [((512, 512), (1, 0)), ((3, 512, 512), (0, 2, 1)), ((512, 3, 512), (2, 1, 0)),
           ((512, 640, 1), (1, 0, 2)), ((1024, 300), (1, 0)), ((1536, 331), (1, 0))]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", TYPES[:4])
@pytest.mark.parametrize("shape, order", CROWDED)
def test_rows_that_share_cache_sets(shape, order, dtype, cpu, tmp_path):
    x, by = contents(shape, dtype), contents([shape[i] for i in order], dtype, seed=1)
    y = x.transpose(order)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=list(order)),
             helper.make_node("Add", ["t", "by"], ["y"])]
    with np.errstate(over="ignore"):
        expected = (y + by).astype(dtype)
    found, _ = results(tmp_path, nodes, {"x": x, "by": by}, {"y": (dtype, y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], expected)


@pytest.mark.parametrize("shape, order", CROWDED[:4])
def test_blocks_are_written_from_a_buffer(shape, order, tmp_path):
    x = contents(shape, "float32")
    node = helper.make_node("Transpose", ["x"], ["y"], perm=list(order))
    save_model(tmp_path / "model.onnx", [node], [value_info("x", shape)],
               [value_info("y", x.transpose(order).shape)])
    steps = pleat("plan", tmp_path / "model.onnx", "--schedules", "--cpu", "avx2")
    assert steps.count("cache_write") == 1


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("block, into", [(8, 16), (4, 16), (4, 12), (8, 24), (3, 6)])
def test_blocks_of_channels_that_grow(block, into, cpu, tmp_path):
    """Vectors of loads that are contiguous in pieces are as long as these, and no element is gathered."""
    x = contents((2, 3 * into // block, 5, 7, block), "float32")
    parts = (2, 3, into // block, 5, 7, block)
    y = x.reshape(parts).transpose(0, 1, 3, 4, 2, 5).reshape(2, 3, 5, 7, into)
    nodes = [helper.make_node("Reshape", ["x", "parts"], ["a"]),
             helper.make_node("Transpose", ["a"], ["b"], perm=[0, 1, 3, 4, 2, 5]),
             helper.make_node("Reshape", ["b", "whole"], ["y"])]
    constants = [numpy_helper.from_array(np.array(shape), name)
                 for name, shape in (("parts", parts), ("whole", y.shape))]
    save_model(tmp_path / "model.onnx", nodes, [value_info("x", x.shape)], [value_info("y", y.shape)],
               constants)
    np.save(tmp_path / "x.npy", x)
    pleat("run", tmp_path / "model.onnx", "--input", f"x={tmp_path / 'x.npy'}", "--cpu", cpu,
          "-o", tmp_path / "y.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], y)
    if cpu == "avx512" and into == 16:
        steps = pleat("plan", tmp_path / "model.onnx", "--schedules", "--cpu", cpu)
        assert f"factors=[None, {block}]" in steps


@pytest.mark.parametrize("cpu", CPUS[:3])
@pytest.mark.parametrize("rows, columns, ones", [(64, 96, 0), (70, 50, 0), (19, 131, 0), (64, 48, 2)])
def test_no_element_is_gathered(rows, columns, ones, cpu, tmp_path):
    """Also where axes of one element follow the last axis of several."""
    x = contents((rows, columns, *[1] * ones), "float32")
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, *range(2, 2 + ones)])
    y = x.swapaxes(0, 1)
    found, said = results(tmp_path, [node], {"x": x}, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], y)
    assert "lane by lane" not in said
    assert not re.search(r"x\w*\[T\.Ramp\(", lowered(tmp_path, "--cpu", cpu))


@pytest.mark.parametrize("channels, side, skipped, cpu", [(40, 32, 1, "avx512"), (37, 17, 3, "avx2")])
def test_rows_after_the_first(channels, side, skipped, cpu, tmp_path):
    """An image of all rows but the first ones, such as the class token of a transformer."""
    x = contents((1, channels, side * side + skipped), "float32")
    constants = [numpy_helper.from_array(np.array(v, "int64"), n)
                 for n, v in (("from", [skipped]), ("to", [10**6]), ("axis", [1]),
                              ("image", [1, side, side, channels]))]
    nodes = [helper.make_node("Constant", [], [c.name], value=c) for c in constants]
    nodes += [helper.make_node("Transpose", ["x"], ["rows"], perm=[0, 2, 1]),
              helper.make_node("Slice", ["rows", "from", "to", "axis"], ["part"]),
              helper.make_node("Reshape", ["part", "image"], ["y"])]
    y = x.transpose(0, 2, 1)[:, skipped:].reshape(1, side, side, channels)
    found, said = results(tmp_path, nodes, {"x": x}, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], y)
    assert "lane by lane" not in said


@pytest.mark.parametrize("shape, rows, cpu", [((12, 40, 16), 480, "avx512"), ((9, 21, 19), 189, "avx2"),
                                              ((8, 3, 40), 24, "sse2")])
def test_rows_that_a_reshape_fuses(shape, rows, cpu, tmp_path):
    """A tile of fused rows is no box of the tensor, and nothing beside it is read."""
    x = contents(shape, "float32")
    image = numpy_helper.from_array(np.array([rows, shape[2]], "int64"), "image")
    nodes = [helper.make_node("Constant", [], ["image"], value=image),
             helper.make_node("Reshape", ["x", "image"], ["r"]),
             helper.make_node("Transpose", ["r"], ["y"], perm=[1, 0])]
    y = x.reshape(rows, shape[2]).T
    found, _ = results(tmp_path, nodes, {"x": x}, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], y)
    assert not re.search(r"\w*local\w*\[T\.Ramp\(", lowered(tmp_path, "--cpu", cpu))


@pytest.mark.parametrize("cpu", CPUS[:2])
@pytest.mark.parametrize("block", [8, 16])
def test_from_blocks_to_padded_blocks(block, cpu, tmp_path):
    path = tmp_path / "model.onnx"
    kinds = [value_info(n, (3, 49, 64), kind(np.dtype("float32"))) for n in "xy"]
    save_model(path, [helper.make_node("Neg", ["x"], ["y"])], kinds[:1], kinds[1:])
    layouts = ["--cpu", cpu, "--input-layout", "x=ACB32c", "--output-layout", f"y=ABC{block}b"]
    pleat("verify", path, *layouts)
    assert "lane by lane" not in pleat("run", path, "--fill", "random", *layouts)


@pytest.mark.parametrize("cpu", CPUS[:3])
@pytest.mark.parametrize("order", [(0, 3, 1, 2), (0, 2, 3, 1)])
def test_three_channels(order, cpu, tmp_path):
    """Images of bytes become normalised tensors: the channels are read, or written, as whole vectors."""
    shape = (2, 3, 7, 48) if order == (0, 2, 3, 1) else (2, 7, 48, 3)
    x = np.random.default_rng(0).integers(0, 256, shape).astype("uint8")
    y = x.transpose(order)
    each = (1, 1, 1, 3) if y.shape[-1] == 3 else (1, 3, 1, 1)
    mean, scale = (np.array(v, "float32").reshape(each) for v in ((3, 5, 7), (0.5, 0.25, 2)))
    nodes = [helper.make_node("Constant", [], [n], value=numpy_helper.from_array(v, n))
             for n, v in (("mean", mean), ("scale", scale))]
    nodes += [helper.make_node("Cast", ["x"], ["f"], to=kind(np.dtype("float32"))),
              helper.make_node("Transpose", ["f"], ["t"], perm=list(order)),
              helper.make_node("Sub", ["t", "mean"], ["d"]), helper.make_node("Mul", ["d", "scale"], ["y"])]
    found, said = results(tmp_path, nodes, {"x": x}, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_array_equal(found["y"], (y - mean) * scale)
    assert "lane by lane" not in said


@pytest.mark.parametrize("cpu", CPUS[1:3])
@pytest.mark.parametrize("given, taken", [("NHWC", "NCHW16c"), ("NCHW16c", "NCHW4c"), ("NHWC", "NCHW8c")])
def test_what_is_read_comes_in_order(given, taken, cpu, tmp_path):
    """Where the output's order jumps over what the first cache holds, the loops follow the input."""
    path = tmp_path / "model.onnx"
    kinds = [value_info(n, (2, 48, 24, 25), kind(np.dtype("float32"))) for n in "xy"]
    save_model(path, [helper.make_node("Neg", ["x"], ["y"])], kinds[:1], kinds[1:])
    layouts = ["--cpu", cpu, "--input-layout", f"x={given}", "--output-layout", f"y={taken}"]
    pleat("verify", path, *layouts)
    steps = pleat("plan", path, *layouts, "--schedules", "--kernel", 1)
    assert re.search(r"sch.reorder\((l\d+, ){5}l\d+\)", steps)


@pytest.mark.parametrize("mask", ["i % 8", "i // 2 % 4", "i"])
@pytest.mark.parametrize("shape, cpu", [((48, 40), "avx2"), ((48, 40), "sse2"), ((16, 104), "avx512")])
def test_swizzles(shape, cpu, mask, tmp_path):
    """The iterations that share a mask have code of their own, so that no element is gathered."""
    if mask == "i":
        shape = (8, shape[1])
    path = tmp_path / "model.onnx"
    kinds = [value_info(n, (3, *shape), kind(np.dtype("float32"))) for n in "xy"]
    save_model(path, [helper.make_node("Neg", ["x"], ["y"])], kinds[:1], kinds[1:])
    layouts = ["--cpu", cpu, "--threads", 1, "--output-layout", f"y=lambda n, i, j: [n, i, j ^ ({mask})]"]
    pleat("verify", path, *layouts)
    if cpu != "sse2" or mask == "i // 2 % 4":  # masks below the lanes of a vector
        assert not re.search(r"x\w*\[T\.Broadcast\(", lowered(tmp_path, *layouts))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("batch, rows, columns", [(1, 64, 48), (3, 37, 53), (2, 5, 200)])
def test_arithmetic_around(batch, rows, columns, cpu, tmp_path):
    """Two transposed tensors, one that is not, and one that is broadcast, in one kernel."""
    names = {"x": (batch, rows, columns), "z": (batch, rows, columns),
             "r": (batch, columns, rows), "c": (columns, 1)}
    inputs = {n: contents(s, "float32", i) for i, (n, s) in enumerate(names.items())}
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
             helper.make_node("Transpose", ["z"], ["u"], perm=[0, 2, 1]),
             helper.make_node("Add", ["t", "u"], ["s"]), helper.make_node("Mul", ["s", "r"], ["p"]),
             helper.make_node("Add", ["p", "c"], ["y"])]
    y = (inputs["x"] + inputs["z"]).transpose(0, 2, 1) * inputs["r"] + inputs["c"]
    found, _ = results(tmp_path, nodes, inputs, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_allclose(found["y"], y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("rows, columns", [(64, 48), (37, 53), (130, 9)])
def test_functions_of_transposed_tensors(rows, columns, cpu, tmp_path):
    """A function is computed row by row of a tile that is in memory."""
    x, r = contents((rows, columns), "float32") / 20, contents((columns, rows), "float32", 1)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
             helper.make_node("Sigmoid", ["t"], ["s"]), helper.make_node("Mul", ["t", "s"], ["m"]),
             helper.make_node("Add", ["m", "r"], ["y"])]
    y = x.T / (1 + np.exp(-x.T)) + r
    found, said = results(tmp_path, nodes, {"x": x, "r": r}, {"y": ("float32", y.shape)}, "--cpu", cpu)
    np.testing.assert_allclose(found["y"], y, rtol=1e-4, atol=1e-4)
    assert "lane by lane" not in said and "in memory" not in said


@pytest.mark.parametrize("cpu", CPUS[:3])
def test_a_tensor_read_in_both_orders(cpu, tmp_path):
    x = contents((45, 45), "float32")
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
             helper.make_node("Add", ["t", "x"], ["y"])]
    found, _ = results(tmp_path, nodes, {"x": x}, {"y": ("float32", x.shape)}, "--cpu", cpu)
    np.testing.assert_allclose(found["y"], x + x.T, rtol=1e-6)


@pytest.mark.parametrize("layout, moved", [
    ("lambda n, c, h, w: [n, c // 16, h, w, c % 16]", lambda y: y.reshape(1, 3, 16, 13, 21)
     .transpose(0, 1, 3, 4, 2)),
    ("lambda n, c, h, w: [n, h, w, c]", lambda y: y.transpose(0, 2, 3, 1))])
@pytest.mark.parametrize("threads", [1, 2])
def test_rewrites(layout, moved, threads, tmp_path):
    x = contents((1, 48, 13, 21), "float32")
    node = helper.make_node("Relu", ["x"], ["y"])
    found, _ = results(tmp_path, [node], {"x": x}, {"y": ("float32", x.shape)}, "--output-layout",
                       f"y={layout}", "--threads", threads)
    np.testing.assert_array_equal(found["y"], moved(np.maximum(x, 0)))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("channels, width, block", [
    (13, 4, 16), (8, 4, 16), (19, 16, 16), (33, 5, 16), (32, 28, 8), (36, 7, 4), (37, 16, 8)])
def test_blocks(channels, width, block, cpu, tmp_path):
    """Tiles hold the elements of a block, without its padding, and are transposed whether a block has
    as many elements as a vector or fewer."""
    x = contents((2, channels, 9, width), "float32")
    blocks = -(-channels // block)
    padded = np.full((2, blocks * block, 9, width), np.nan, "float32")
    padded[:, :channels] = x
    path = tmp_path / "model.onnx"
    save_model(path, [helper.make_node("Relu", ["x"], ["y"])], [value_info("x", x.shape)],
               [value_info("y", x.shape)])
    np.save(tmp_path / "x.npy", padded.reshape(2, blocks, block, 9, width).transpose(0, 1, 3, 4, 2))
    layout = f"x=lambda n, c, h, w: [n, c // {block}, h, w, c % {block}]"
    options = ["--input-layout", layout, "--keep-layout", "--cpu", cpu]
    pleat("run", path, *options, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], np.maximum(x, 0))
    if cpu != "scalar":
        assert "cache_read" in pleat("plan", path, *options, "--schedules")


@pytest.mark.parametrize("cpu", CPUS[:2])
@pytest.mark.parametrize("channels", [8, 24, 40])
@pytest.mark.parametrize("constant", [False, True])
def test_blocks_that_are_half_padding(channels, constant, cpu, tmp_path):
    """A convolution whose output has fewer channels than a block has no tile in that layout; those with
    more have. Either kernel is in vectors, and right."""
    x = contents((2, 16, 7, 9), "float32")
    w = contents((channels, 16, 1, 1), "float32", 1)
    y = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
    path = tmp_path / "model.onnx"
    inputs = [value_info("x", x.shape)] + ([] if constant else [value_info("w", w.shape)])
    save_model(path, [helper.make_node("Conv", ["x", "w"], ["y"])], inputs,
               [value_info("y", y.shape)], [numpy_helper.from_array(w, "w")] if constant else [])
    layout = "lambda n, c, h, w: [n, c // 16, h, w, c % 16]"
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", w)
    arguments = ["--input", f"x={tmp_path / 'x.npy'}"]
    arguments += [] if constant else ["--input", f"w={tmp_path / 'w.npy'}"]
    said = pleat("run", path, "--output-layout", f"y={layout}", "--cpu", cpu, *arguments, "-o",
                 tmp_path / "y.npz")
    blocks = np.load(tmp_path / "y.npz")["y"].transpose(0, 1, 4, 2, 3).reshape(2, -1, 7, 9)
    np.testing.assert_allclose(blocks[:, :channels], y, rtol=1e-4, atol=1e-2)
    assert "parallel:" not in said and "reorder:" not in said


@pytest.mark.parametrize("rows", [48, 53])
def test_gathered_rows_are_read_in_place(rows, tmp_path):
    """Rows at indices that are read are in no tile: a copy of what a tile reads would be the whole
    table, in each tile."""
    table, at = contents((3000, 64), "float32"), np.random.default_rng(rows).integers(0, 3000, rows)
    path = tmp_path / "model.onnx"
    save_model(path, [helper.make_node("Gather", ["table", "at"], ["y"])],
               [value_info("at", at.shape, kind(at.dtype))], [value_info("y", (rows, 64))],
               [numpy_helper.from_array(table, "table")])
    np.save(tmp_path / "at.npy", at)
    layout = "--desired-layout", "Gather=BA", "--output-layout", "y=BA"
    pleat("run", path, *layout, "-i", f"at={tmp_path / 'at.npy'}", "-o", tmp_path / "y.npz")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], table[at].T)
    assert "cache_read" not in pleat("plan", path, *layout, "--schedules")
