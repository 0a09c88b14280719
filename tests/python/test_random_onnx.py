# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs give what ONNX Runtime gives, or are refused. random_onnx.py runs more."""
import collections
import os

import pytest

pytest.importorskip("onnxruntime")
import random_onnx  # noqa: E402
from built import skip_sanitized  # noqa: E402

skip_sanitized()

GRAPHS, BATCH = 320, 80


@pytest.mark.parametrize("first", range(1, GRAPHS, BATCH))
def test_random_graphs(first):
    results = list(random_onnx.run_seeds(range(first, first + BATCH), processes=os.cpu_count() or 1))
    bad = [result for result in results if result[1] in ("wrong", "crashed")]
    assert not bad, bad[:3]
    outcomes = collections.Counter(outcome for _, outcome, _ in results)
    assert outcomes["passed"] > 0.9 * BATCH, outcomes  # graphs that both take


def test_a_wrong_result_is_seen():
    import numpy as np
    want = np.array([1.0, 2.0, np.nan, np.inf], np.float32)
    assert random_onnx.difference(want, want.copy()) is None
    assert random_onnx.difference(want, want[:3])
    assert random_onnx.difference(want, want.astype(np.float64))
    for at, value in ((0, 1.01), (2, 0.0), (3, -np.inf), (1, np.nan)):
        got = want.copy()
        got[at] = value
        assert random_onnx.difference(want, got)
