# SPDX-License-Identifier: Apache-2.0
"""Schedules that are some places behind the ones that are predicted to be the fastest compute the
same, and are other schedules."""
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from command import pleat, run_pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402


@pytest.mark.parametrize("sizes", [(61, 67, 129), (128, 96, 512), (1, 300, 48), (37, 1, 5)])
def test_runners_up_compute_the_same(sizes, tmp_path):
    rows, steps, columns = sizes
    random = np.random.default_rng(rows)
    x = random.standard_normal((rows, steps), np.float32)
    w = random.standard_normal((steps, columns), np.float32)
    path = save_model(tmp_path / "product.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
                      [value_info("x", x.shape)], [value_info("y", (rows, columns))],
                      [numpy_helper.from_array(w, "w")])
    np.save(tmp_path / "x.npy", x)
    for place in (0, 1, 2, 3, 1000):
        pleat("run", path, "-i", f"x={tmp_path / 'x.npy'}", "--runner-up", place,
              "-o", tmp_path / "y.npz")
        np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], x.astype(np.float64) @ w,
                                   rtol=1e-4, atol=1e-4)


def test_a_program_has_no_runners_up(tmp_path):
    (tmp_path / "kernel.py").write_text("""
from pleat.script import tir as T
@T.prim_func
def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * T.float32(2)
""")
    told = pleat("run", tmp_path / "kernel.py", "--fill", "random", "--runner-up", 1, status=1)
    assert "--runner-up" in told and "holds tensor programs" in told


def test_a_place_is_a_whole_number(tmp_path):
    assert "--runner-up" in pleat("run", tmp_path / "none.onnx", "--runner-up", "-1", status=2)


def test_other_tiles_are_run(tmp_path):
    path = save_model(tmp_path / "product.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
                      [value_info("x", (256, 256))], [value_info("y", (256, 256))],
                      [numpy_helper.from_array(np.ones((256, 256), np.float32), "w")])
    kernels = [run_pleat("run", path, "--fill", "zero", "--runner-up", place, "--print-ir-after",
                         "convert_blocks").stderr for place in (0, 1, 2)]
    assert all("# after convert_blocks" in text for text in kernels)
    assert len(set(kernels)) == 3


@pytest.mark.parametrize("batch, rows, columns", [(7, 5, 96), (6, 3, 64), (2, 1, 33)])
@pytest.mark.parametrize("cpu", ["avx512", "avx2"])
def test_tiles_over_a_batch_of_constants(batch, rows, columns, cpu, tmp_path):
    """A tile may have rows of several matrices of weights, which are then consecutive in memory."""
    random = np.random.default_rng(batch)
    x = random.standard_normal((batch, rows, 67), np.float32)
    w = random.standard_normal((batch, 67, columns), np.float32)
    path = save_model(tmp_path / "products.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
                      [value_info("x", x.shape)], [value_info("y", (batch, rows, columns))],
                      [numpy_helper.from_array(w, "w")])
    np.save(tmp_path / "x.npy", x)
    for place in range(4):
        pleat("run", path, "-i", f"x={tmp_path / 'x.npy'}", "--runner-up", place, "--cpu", cpu,
              "-o", tmp_path / "y.npz")
        np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], x.astype(np.float64) @ w,
                                   rtol=1e-4, atol=1e-4)
