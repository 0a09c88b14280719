# SPDX-License-Identifier: Apache-2.0
"""Minima and maxima of what is no number: one answer at every level of the processor, whichever
operand it stands in. A window of MaxPool passes over it, as the standard's reference does."""
import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
from test_models import LEVELS, Builder, level_here, run_pleat  # noqa: E402

SHAPE = (3, 37)


def numbers(*without, shape=SHAPE):
    values = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    values.reshape(-1)[list(without)] = np.nan
    return values


def results(node, tmp_path, attributes=None, **arrays):
    """The results of the operator for the arrays, at each level of this processor."""
    b = Builder(**{name: list(array.shape) for name, array in arrays.items()})
    name = b(node, *arrays, **(attributes or {}))
    onnx.save(b.model(name), tmp_path / "case.onnx")
    return [run_pleat(tmp_path / "case.onnx", arrays, tmp_path, "--cpu", level)[name]
            for level in LEVELS if level_here(level)]


@pytest.mark.parametrize("a, b", [((0, 36, 40), ()), ((), (0, 36, 40)), ((1, 50), (1, 51, 110))])
@pytest.mark.parametrize("node, of", [("Min", np.minimum), ("Max", np.maximum)])
def test_either_operand(node, of, a, b, tmp_path):
    x, y = numbers(*a), -numbers(*b)
    for got in results(node, tmp_path, x=x, y=y):
        np.testing.assert_array_equal(got, of(x, y))


@pytest.mark.parametrize("place", [0, 17, 36, 75])
@pytest.mark.parametrize("node, of", [("ReduceMin", np.min), ("ReduceMax", np.max)])
def test_reductions(node, of, place, tmp_path):
    x = numbers(place)
    for axis in 0, 1:
        for got in results(node, tmp_path, {"axes": [axis], "keepdims": 0}, x=x):
            np.testing.assert_array_equal(got, of(x, axis=axis))


def test_where_it_is(tmp_path):
    x = numbers(40, 50)
    for got in results("ArgMax", tmp_path, {"axis": 1, "keepdims": 0}, x=x):
        np.testing.assert_array_equal(got, np.argmax(x, axis=1))


@pytest.mark.parametrize("place", [0, 14, 24])
def test_windows(place, tmp_path):
    x = numbers(place, shape=(1, 1, 5, 5))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    want = np.nanmax(windows, axis=(4, 5))
    for got in results("MaxPool", tmp_path, {"kernel_shape": [3, 3]}, x=x):
        np.testing.assert_array_equal(got, want)


def test_rows_keep_it(tmp_path):
    for got in results("Softmax", tmp_path, x=numbers(40)):
        assert np.isnan(got[1]).all() and np.isfinite(got[[0, 2]]).all()
