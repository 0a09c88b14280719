# SPDX-License-Identifier: Apache-2.0
"""Elements that are chosen by a constant table of indices which follows a rule are read as a view: the
table is computed, and neighbours are loaded as whole vectors."""
import json

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from command import pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

CPUS = ["avx512", "avx2", "sse2", "scalar"]
TABLES = {
    "every": np.arange(29), "reversed": np.arange(28, -1, -1), "even": np.arange(0, 29, 2),
    "twice": np.repeat(np.arange(29), 2), "three": np.repeat(np.arange(29), 3)[1:-1],
    "back by threes": np.repeat(np.arange(28, -1, -1), 3), "one": np.array([7]),
    "negative": np.arange(-1, -30, -1), "constant": np.full(20, 3), "far": np.arange(0, 29, 9),
    "no rule": np.array([0, 1, 3, 2, 5, 4, 7, 6, 28, 0]), "rotated": np.roll(np.arange(29), 5),
    "almost": np.r_[np.arange(20), 28],
}


def run(tmp_path, nodes, inputs, outputs, weights, *options):
    path = tmp_path / "model.onnx"
    save_model(path, nodes, [value_info(n, v.shape) for n, v in inputs.items()],
               [value_info(n, shape) for n, shape in outputs.items()],
               [numpy_helper.from_array(v, n) for n, v in weights.items()])
    arguments = [path, *options]
    for name, value in inputs.items():
        np.save(tmp_path / f"{name}.npy", value)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    pleat("run", *arguments, "-o", tmp_path / "y.npz")
    return np.load(tmp_path / "y.npz")["y"]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("table", TABLES)
def test_gather(table, axis, cpu, tmp_path):
    shape = [3, 5, 7]
    shape[axis] = 29
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    y = x.take(TABLES[table], axis)
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    found = run(tmp_path, [node], {"x": x}, {"y": y.shape}, {"i": TABLES[table]}, "--cpu", cpu)
    np.testing.assert_array_equal(found, y)


def test_indices_in_rows_and_columns(tmp_path):
    x = np.random.default_rng(0).standard_normal((6, 20), np.float32)
    indices = np.arange(20).reshape(4, 5)
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    found = run(tmp_path, [node], {"x": x}, {"y": (6, 4, 5)}, {"i": indices})
    np.testing.assert_array_equal(found, x.take(indices, 1))
    found = run(tmp_path, [node], {"x": x}, {"y": (6,)}, {"i": np.array(-3)})
    np.testing.assert_array_equal(found, x[:, -3])


def upsampled_convolution(tmp_path, channels, size, times):
    random = np.random.default_rng(size)
    x = random.standard_normal((1, channels, size, size), np.float32)
    w = random.standard_normal((8, channels, 3, 3), np.float32)
    scales = np.array([1, 1, times, times], np.float32)
    nodes = [helper.make_node("Resize", ["x", "", "scales"], ["u"], mode="nearest",
                              coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
             helper.make_node("Conv", ["u", "w"], ["y"], pads=[1, 1, 1, 1])]
    return nodes, x, w, scales


@pytest.mark.parametrize("channels, size, times", [(4, 7, 2), (3, 5, 3), (16, 14, 2)])
def test_nearest_neighbours_before_a_convolution(channels, size, times, tmp_path):
    nodes, x, w, scales = upsampled_convolution(tmp_path, channels, size, times)
    u = x.repeat(times, 2).repeat(times, 3)
    rows = size * times
    padded = np.pad(u, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = sum(np.einsum("nchw,oc->nohw", padded[:, :, i:i + rows, j:j + rows], w[:, :, i, j])
            for i in range(3) for j in range(3))
    found = run(tmp_path, nodes, {"x": x}, {"y": y.shape}, {"w": w, "scales": scales})
    np.testing.assert_allclose(found, y, rtol=1e-3, atol=1e-3)


def test_no_table_is_left(tmp_path):
    x = np.zeros((1, 8, 28, 28), np.float32)
    node = helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest",
                            coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    run(tmp_path, [node], {"x": x}, {"y": (1, 8, 56, 56)},
        {"scales": np.array([1, 1, 2, 2], np.float32)})
    out = tmp_path / "lowered.py"
    pleat("compile", tmp_path / "model.onnx", "-o", out, "--lowered", "--cpu", "avx512")
    text = out.read_text()
    assert "int32\")" not in text and "T.Shuffle" in text
    plan = json.loads(pleat("plan", tmp_path / "model.onnx", "--json"))
    assert plan["kernels"] == 1
