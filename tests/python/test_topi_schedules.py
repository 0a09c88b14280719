# SPDX-License-Identifier: Apache-2.0
"""The schedules of pleat.topi: results are compared with NumPy's, on the processor, and one of each on OpenCL."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, topi  # noqa: E402
from test_opencl import device  # noqa: E402,F401

A = te.placeholder((13, 5, 70), name="A")


def softmax(a, axis):
    return np.exp(a) / np.exp(a).sum(axis, keepdims=True)


CASES = {
    "exp": (topi.exp(A), topi.cuda.schedule_injective, np.exp),
    "moved": (topi.add(topi.transpose(A), 1.0), topi.cuda.schedule_elemwise, lambda a: a.T + 1),
    "sum": (topi.sum(A, axis=2), topi.cuda.schedule_reduce, lambda a: a.sum(2)),
    "two axes": (topi.sum(topi.exp(A), axis=(0, 2)), topi.cuda.schedule_reduce, lambda a: np.exp(a).sum((0, 2))),
    "all": (topi.sum(A), topi.cuda.schedule_reduce, lambda a: a.sum()),
    "root": (topi.sqrt(topi.max(A, axis=1)), topi.cuda.schedule_reduce, lambda a: np.sqrt(a.max(1))),
    "argmax": (topi.argmax(A, axis=2), topi.cuda.schedule_reduce, lambda a: a.argmax(2)),
    "softmax": (topi.nn.softmax(A, axis=2), topi.cuda.schedule_softmax, lambda a: softmax(a, 2)),
    "of columns": (topi.nn.softmax(A, axis=1), topi.cuda.schedule_softmax, lambda a: softmax(a, 1)),
    "processor": (topi.nn.softmax(A, axis=2), topi.generic.schedule_softmax, lambda a: softmax(a, 2)),
}


def check(name, target):
    B, schedule, expected = CASES[name]
    a = np.random.default_rng(3).random((13, 5, 70)).astype("float32")
    b = np.full([int(e) for e in B.shape], 9, B.dtype)
    s = schedule(B)
    pleat.build(s, [A, B], target=target, cache=False)(a, b)
    assert np.allclose(b, expected(a), 1e-5)
    return pleat.lower(s, [A, B]).script()


@pytest.mark.parametrize("name", CASES)
def test_schedules(name):
    text = check(name, "llvm")
    assert text.count("threadIdx.x") == {"processor": 0, "softmax": 3}.get(name, 1)


@pytest.mark.parametrize("name", ["moved", "root", "softmax"])
def test_schedules_on_a_device(device, name):  # noqa: F811
    check(name, "opencl")
