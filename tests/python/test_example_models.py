# SPDX-License-Identifier: Apache-2.0
"""The networks of examples/models at a reduced size, with every operator in its place: `pleat run`
gives what ONNX Runtime gives."""
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("onnxruntime")
from test_models import ROOT, check  # noqa: E402

sys.path.insert(0, str(pathlib.Path(ROOT) / "examples" / "models"))
import build  # noqa: E402
from builder import feeds  # noqa: E402

QUICK = {"resnet50", "bert_base", "lstm"}  # in sanitized runs too


@pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in build.MODELS])
def test_architecture(name, tmp_path):
    model = build.build(name, small=True)
    got = check(model, tmp_path, feeds=feeds(model))
    assert all(value.std() > 0.01 for value in got.values())  # nothing was scaled away


def test_the_same_bytes_each_time(tmp_path):
    for path in ("a.onnx", "b.onnx"):
        subprocess.check_call([sys.executable, ROOT / "examples/models/build.py", "mobilenetv3",
                               tmp_path / path, "--small"])
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
