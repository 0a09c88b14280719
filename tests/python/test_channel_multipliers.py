# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions with several outputs for each channel: a vector of outputs loads each
channel once and repeats it. Results are those of ONNX Runtime."""
import subprocess

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
from test_models import EACH_LEVEL, PLEAT, Builder, check, level_here  # noqa: E402

CASES = [  # channels, outputs of each, taps, stride, side
    (48, 2, 7, 2, 13), (32, 4, 3, 1, 11), (8, 2, 3, 2, 7), (24, 2, 5, 1, 9), (16, 3, 3, 1, 5),
    (5, 2, 3, 1, 6), (1, 16, 3, 1, 7), (64, 8, 1, 1, 3), (7, 1, 3, 2, 9)]


def model(channels, each, taps, stride, side):
    b = Builder(x=[1, channels, side, side])
    y = b("Relu", b.conv("x", channels, channels, 1))
    y = b.conv(y, channels, channels * each, taps, group=channels, strides=[stride, stride])
    return b.model(b.conv(b("Relu", y), channels * each, 17, 1))


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs_of_each_channel(case, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"the processor has no {level}")
    check(model(*case), tmp_path, "--cpu", level)


@pytest.mark.parametrize("level", ["avx512", "avx2"])
def test_the_sums_are_in_vectors(level, tmp_path):
    if not level_here(level):
        pytest.skip(f"the processor has no {level}")
    onnx.save(model(48, 2, 7, 2, 56), tmp_path / "case.onnx")
    done = subprocess.run([PLEAT, "compile", str(tmp_path / "case.onnx"), "--cpu", level, "-o",
                           str(tmp_path / "case.ll")], capture_output=True, text=True, check=True)
    slow = [line for line in done.stdout.splitlines() if line.startswith("slow paths")]
    assert slow and "scalar" not in slow[0] and "lane by lane" not in slow[0]
