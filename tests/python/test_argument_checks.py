# SPDX-License-Identifier: Apache-2.0
"""NAME_call of emitted code: the arguments are checked in the code of each target, and what was wrong
is named with what was expected and found."""
import ctypes
import subprocess

import numpy as np
import pytest
from built import BUILD, skip_sanitized

skip_sanitized()

PROGRAM = """from tvm.script import tir as T

@T.prim_func
def two(A: T.Buffer((3, 5), "float32"), x: T.Buffer((7,), "int8"), B: T.Buffer((3, 1, 5), "float32"),
        E: T.Buffer((0, 4), "float16")):
    for i, j in T.grid(3, 5):
        B[i, 0, j] = A[i, j] + T.Cast("float32", x[i + j - j % 2])
    for i, j in T.grid(0, 4):
        E[i, j] = T.float16(1)
"""


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Fault(ctypes.Structure):
    _fields_ = [("what", ctypes.c_char_p), ("expected", ctypes.c_int64), ("got", ctypes.c_int64)]


def int64s(values):
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def tensor_of(array, with_strides=True):
    codes = {"i": 0, "u": 1, "f": 2}
    strides = [stride // array.itemsize for stride in array.strides]
    return Tensor(array.ctypes.data if array.size else None, 1, 0, array.ndim,
                  codes[array.dtype.kind], 8 * array.itemsize, 1, int64s(array.shape),
                  int64s(strides) if with_strides else None, 0)


@pytest.fixture(scope="module", params=["llvm", "c"])
def code(request, tmp_path_factory):
    """The function two_call of a shared library that a target wrote."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "two.py").write_text(PROGRAM)
    ending = {"llvm": "so", "c": "c"}[request.param]
    subprocess.run([BUILD / "pleat", "compile", "two.py", "-o", f"two.{ending}"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    if request.param == "c":
        subprocess.run(["cc", "-std=gnu11", "-O1", "-march=native", "-Wall", "-Wextra", "-Werror",
                        "-shared", "-fPIC", "two.c", "-o", "two.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "two.so")).two_call


@pytest.fixture
def arrays():
    rng = np.random.default_rng(7)
    return [rng.random((3, 5), "float32"), rng.integers(-9, 9, 7).astype("int8"),
            np.zeros((3, 1, 5), "float32"), np.zeros((0, 4), "float16")]


def call(code, tensors, fault=None):
    pointers = (ctypes.POINTER(Tensor) * len(tensors))(
        *(ctypes.pointer(t) if t is not None else None for t in tensors))
    return code(pointers, len(tensors), None, None if fault is None else ctypes.byref(fault))


def expect_result(arrays):
    a, x, b, _ = arrays
    j = np.arange(5)
    assert np.array_equal(b[:, 0], a + x[np.arange(3)[:, None] + j - j % 2].astype("float32"))


@pytest.mark.parametrize("with_strides", [True, False])
def test_arguments_that_fit(code, arrays, with_strides):
    assert call(code, [tensor_of(a, with_strides) for a in arrays]) == 0
    expect_result(arrays)


def test_offsets_and_strides_without_meaning(code, arrays):
    tensors = [tensor_of(a) for a in arrays]
    tensors[0].data, tensors[0].byte_offset = tensors[0].data - 20, 20
    tensors[2].strides[1] = 77  # of an axis of one element
    tensors[3].strides[0] = 99  # of a tensor without elements
    assert call(code, tensors, Fault()) == 0
    expect_result(arrays)


def change(field, value, axis=None):
    def apply(tensor):
        if axis is None:
            setattr(tensor, field, value)
        else:
            getattr(tensor, field)[axis] = value
    return apply


@pytest.mark.parametrize("argument, changed, what, expected, got", [
    (0, change("device_type", 2), "'A': device type", 1, 2),
    (1, change("rank", 2), "'x': number of axes", 1, 2),
    (1, change("code", 1), "'x': type code (int8)", 0, 1),
    (2, change("bits", 16), "'B': bits of an element (float32)", 32, 16),
    (0, change("bits", 64), "'A': bits of an element", 32, 64),
    (0, change("lanes", 300), "'A': lanes of an element", 1, 300),
    (0, change("shape", 4, 0), "'A': extent of axis 0", 3, 4),
    (2, change("shape", -1, 2), "'B': extent of axis 2", 5, -1),
    (3, change("shape", 2**40, 0), "'E': extent of axis 0", 0, 2**40),
    (0, change("strides", 6, 0), "'A': stride of axis 0", 5, 6),
    (2, change("strides", -5, 0), "'B': stride of axis 0", 5, -5),
    (1, change("strides", 2, 0), "'x': stride of axis 0", 1, 2),
    (1, change("data", None), "'x': memory is NULL", 0, 1),
    (0, change("byte_offset", 3), "'A': address modulo the 4 bytes", 0, 3),
])
def test_arguments_that_do_not_fit(code, arrays, argument, changed, what, expected, got):
    tensors, fault = [tensor_of(a) for a in arrays], Fault()
    changed(tensors[argument])
    assert call(code, tensors, fault) == 3
    assert fault.what.decode().startswith(f"argument {argument} {what}")
    assert (fault.expected, fault.got) == (expected, got)
    assert call(code, tensors) == 3
    assert not arrays[2].any()  # nothing ran


def test_number_of_arguments(code, arrays):
    tensors, fault = [tensor_of(a) for a in arrays], Fault()
    assert call(code, tensors[:3], fault) == 3
    assert (fault.what, fault.expected, fault.got) == (b"number of arguments", 4, 3)
    tensors[1] = None
    assert call(code, tensors, fault) == 3
    assert fault.what == b"argument 1 'x': is NULL"
