# SPDX-License-Identifier: Apache-2.0
"""The comparison of arrays that programs for TVM's package call."""
import numpy as np


def _array(value):
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7):
    """Raises AssertionError where two arrays have other shapes, or differ by more than
    atol + rtol * |desired|."""
    actual, desired = _array(actual), _array(desired)
    assert actual.shape == desired.shape, f"shapes {actual.shape} and {desired.shape}"
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol)
