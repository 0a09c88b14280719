# SPDX-License-Identifier: Apache-2.0
"""Views that undo one another cost nothing, wherever they are. cancelling.py looks at more networks
and more variants."""
import numpy as np
import pytest

pytest.importorskip("onnx")
from built import skip_sanitized  # noqa: E402

skip_sanitized()
import cancelling  # noqa: E402
from cancelling import build, pleat  # noqa: E402


# Each of them once cost more: views inside of views, a pad that was composed with the reshapes
# around it, a copy that one reader of a shuffle had, one half of a rotation that was padded, and a
# result that was no longer worth storing beside another one.
@pytest.mark.parametrize("name, seed", [
    ("mobilenetv2", 1), ("shufflenetv2", 1), ("shufflenetv2", 5), ("shufflenetv2", 8), ("gpt2", 2),
    ("swin_t", 2), ("unet", 3), ("bert_base", 4)])
def test_cost(name, seed):
    more = cancelling.difference(build.build(name, small=True), seed, 8, "avx2")
    assert not more, more


@pytest.mark.parametrize("name", ["squeezenet", "whisper_tiny"])
def test_results(name):
    model = build.build(name, small=True)
    variant = cancelling.Variant(model, 1, 12).model
    compiled = [pleat.compile(m.SerializeToString()) for m in (model, variant)]
    random = np.random.default_rng(1)
    inputs = {i.name: random.standard_normal(i.shape).astype(np.float32)
              for i in compiled[0].inputs}
    for found, expected in zip(*(m.run(inputs) for m in reversed(compiled))):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
