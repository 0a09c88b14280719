# SPDX-License-Identifier: Apache-2.0
"""Channels that are shuffled before windows: the shuffle moves through elementwise operators into
the weights of the next convolutions, and no kernel moves elements. Results are those of ONNX
Runtime."""
import json
import subprocess

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
from test_models import EACH_LEVEL, PLEAT, Builder, check, level_here  # noqa: E402


def reshaped(b, x, *shape):
    return b("Reshape", x, b.constant(np.array(shape, np.int64)))


def shuffled(b, x, groups, channels, side):
    y = reshaped(b, x, 1, groups, channels // groups, side, side)
    return reshaped(b, b("Transpose", y, perm=[0, 2, 1, 3, 4]), 1, channels, side, side)


def normalised(b, x, channels):
    values = [b.constant(np.linspace(low, high, channels).astype(np.float32))
              for low, high in ((0.5, 1.5), (-1, 1), (-0.2, 0.3), (0.8, 1.2))]
    return b("BatchNormalization", x, *values)


def depthwise(b, x, channels, stride=1):
    return b.conv(x, channels, channels, 3, group=channels, strides=[stride, stride])


def unit(b, x, groups, channels, side):
    """The readers of the shuffle at the end of a stage of ShuffleNet-V2."""
    x = shuffled(b, x, groups, channels, side)
    left = normalised(b, depthwise(b, x, channels, 2), channels)
    left = b("Relu", normalised(b, b.conv(left, channels, 19, 1), 19))
    right = b("Relu", b.conv(x, channels, 18, 1))
    return left, right


def after_shuffle(b, x, groups, channels, side, read):
    x = shuffled(b, b("Relu", x), groups, channels, side)
    y = depthwise(b, x, channels)
    if read == "convolution":
        return b("Relu", b.conv(y, channels, 7, 1))
    if read == "elementwise":
        return b.conv(b("Sigmoid", b("Mul", y, b.weight(1, channels, 1, 1))), channels, 5, 3)
    if read == "output":
        return b("Relu", y)
    if read == "residual":
        return b.conv(b("Add", y, x), channels, 5, 1)
    if read == "twice":
        return b("Add", b.conv(y, channels, 5, 1), b.conv(b("Relu", y), channels, 5, 1))
    if read == "windows":
        return b.conv(depthwise(b, y, channels), channels, 3, 1)
    return b("Softmax", y, axis=1)


READS = ["convolution", "elementwise", "output", "residual", "twice", "windows", "softmax"]
SHAPES = [(2, 34, 5), (3, 21, 4), (7, 14, 6), (4, 64, 7), (2, 2, 3), (5, 5, 3)]


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("read", READS)
def test_results(read, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"the processor has no {level}")
    for groups, channels, side in SHAPES:
        b = Builder(x=[1, channels, side, side])
        model = b.model(after_shuffle(b, "x", groups, channels, side, read))
        check(model, tmp_path, "--cpu", level)


@pytest.mark.parametrize("groups, channels", [(2, 116), (2, 58), (4, 60), (3, 51)])
def test_nothing_moves(groups, channels, tmp_path):
    """Only the ends of the graph are rewritten; the shuffled constants are folded."""
    b = Builder(x=[1, channels, 28, 28])
    x = b("Relu", b.conv("x", channels, channels, 1))
    model = b.model(*unit(b, x, groups, channels, 28))
    check(model, tmp_path)
    onnx.save(model, tmp_path / "case.onnx")
    done = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx"), "--json", "--accuracy",
                           "exact"], capture_output=True, text=True, check=True)
    rewrites = json.loads(done.stdout)["rewrites"]
    moved = [r["tensor"] for r in rewrites if r["when"] == "run"]
    assert set(moved) <= {"x", *(o.name for o in model.graph.output)}
