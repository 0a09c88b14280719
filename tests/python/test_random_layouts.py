# SPDX-License-Identifier: Apache-2.0
"""Random graphs with random requests for layouts give what ONNX Runtime gives, with NaN in all
padding. random_layouts.py runs more."""
import collections
import os
import subprocess

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
from built import skip_sanitized  # noqa: E402

skip_sanitized()
import random_layouts  # noqa: E402
import random_onnx  # noqa: E402
from test_models import PLEAT, Builder  # noqa: E402

GRAPHS, BATCH = 160, 80


@pytest.mark.parametrize("first", range(1, GRAPHS, BATCH))
def test_random_requests(first):
    results = list(random_onnx.run_seeds(range(first, first + BATCH), os.cpu_count() or 1,
                                         random_layouts.run_seed))
    bad = [result for result in results if result[1] in ("wrong", "crashed")]
    assert not bad, bad[:3]
    outcomes = collections.Counter(outcome for _, outcome, _ in results)
    assert outcomes["passed"] > 0.8 * BATCH, outcomes  # graphs with a request that is met


@pytest.mark.parametrize("first", [731901, 732141])
def test_small_caches(first, monkeypatch):
    """Small tensors take the paths of those that no cache holds."""
    monkeypatch.setenv("PLEAT_CACHES", "4K,8K,16K")
    results = list(random_onnx.run_seeds(range(first, first + 50), os.cpu_count() or 1, random_layouts.run_seed))
    bad = [result for result in results if result[1] in ("wrong", "crashed")]
    assert not bad, bad[:3]


@pytest.mark.parametrize("layout, gaps", [("lambda i, j: [i + 3, j]", np.s_[:3]),
                                          ("lambda i, j: [j, i + 2]", np.s_[:, :2])])
def test_undefined_memory_is_nan(layout, gaps, tmp_path):
    """With PLEAT_POISON=1, what a run does not write is NaN; without it, it is what it was."""
    b = Builder(x=[3, 5])
    model = b.model(b("Neg", "x"))
    onnx.save(model, tmp_path / "case.onnx")
    np.save(tmp_path / "x.npy", np.ones((3, 5), np.float32))
    name = model.graph.output[0].name
    command = [PLEAT, "run", str(tmp_path / "case.onnx"), "-i", f"x={tmp_path / 'x.npy'}",
               "--output-layout", f"{name}={layout}", "-o", str(tmp_path / "y.npz")]
    for value in "1", "0", None:
        environment = {k: v for k, v in os.environ.items() if k != "PLEAT_POISON"}
        subprocess.run(command, check=True, capture_output=True,
                       env=dict(environment, PLEAT_POISON=value) if value else environment)
        result = np.load(tmp_path / "y.npz")[name]
        assert np.isnan(result[gaps]).all() == (value == "1")
        assert (result == -1).sum() == 15
