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


FREE = """from tvm.script import tir as T

@T.prim_func
def halves(a: T.handle, k: T.int32, b: T.handle):
    n, m = T.int32(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, ((n + 1) // 2, m + 1), "float32")
    tmp = T.alloc_buffer((n, m), "float32")
    for i in T.parallel(n):
        for j in range(m):
            tmp[i, j] = A[i, j] + T.Cast("float32", k)
    for i in T.parallel((n + 1) // 2):
        for j in range(m):
            B[i, j] = tmp[i * 2, j]
        B[i, m] = T.float32(9)

@T.prim_func
def halves_2(A: T.Buffer((7,), "int16"), n: T.int32):
    for i in T.parallel(n % 8):
        A[i] = T.Cast("int16", i)
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


def library(target, folder, source, *options):
    """A shared library with the interface two.h that a target wrote."""
    (folder / "two.py").write_text(source)
    ending = {"llvm": "so", "c": "c"}[target]
    subprocess.run([BUILD / "pleat", "compile", "two.py", "-o", f"two.{ending}", *options],
                   cwd=folder, check=True, stdout=subprocess.DEVNULL)
    if target == "c":
        subprocess.run(["cc", "-std=gnu11", "-O1", "-march=native", "-Wall", "-Wextra", "-Werror",
                        "-fopenmp", "-shared", "-fPIC", "two.c", "-o", "two.so"],
                       cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "two.so"))


@pytest.fixture(scope="module", params=["llvm", "c"])
def code(request, tmp_path_factory):
    """The function two_call of a shared library that a target wrote."""
    return library(request.param, tmp_path_factory.mktemp(request.param), PROGRAM).two_call


@pytest.fixture(scope="module", params=["llvm", "c", "openmp"])
def free(request, tmp_path_factory):
    """The same of a module of two functions, whose sizes are free."""
    options = ["--openmp"] if request.param == "openmp" else []
    made = library("llvm" if request.param == "llvm" else "c",
                   tmp_path_factory.mktemp(request.param), FREE, *options)
    made.two_halves_arena_bytes.restype = ctypes.c_int64
    return made


@pytest.fixture
def arrays():
    rng = np.random.default_rng(7)
    return [rng.random((3, 5), "float32"), rng.integers(-9, 9, 7).astype("int8"),
            np.zeros((3, 1, 5), "float32"), np.zeros((0, 4), "float16")]


def call(code, tensors, fault=None, arena=None):
    pointers = (ctypes.POINTER(Tensor) * len(tensors))(
        *(ctypes.pointer(t) if t is not None else None for t in tensors))
    return code(pointers, len(tensors), arena, None if fault is None else ctypes.byref(fault))


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
    (0, change("shape", None), "'A': shape is NULL", 0, 1),
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


def halves_of(n, m):
    a = np.arange(n * m, dtype="float32").reshape(n, m)
    return a, np.array(5, "int32"), np.zeros(((n + 1) // 2, m + 1), "float32")


def sizes_arena(free, n, m):
    size = free.two_halves_arena_bytes(int64s([n, m]))
    memory = np.zeros(max(size, 0) + 64, "uint8")
    return memory, ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)


@pytest.mark.parametrize("n, m", [(0, 3), (1, 1), (5, 0), (5, 7), (64, 33)])
def test_free_sizes(free, n, m):
    given, (memory, arena) = halves_of(n, m), sizes_arena(free, n, m)
    assert call(free.two_halves_call, [tensor_of(given[0]), tensor_of(given[1]), tensor_of(given[2])],
                Fault(), arena) == 0
    assert np.array_equal(given[2][:, :m], given[0][::2] + 5)
    assert (given[2][:, m] == 9).all()
    del memory


@pytest.mark.parametrize("argument, changed, what, expected, got", [
    (0, change("shape", None), "'A': shape is NULL", 0, 1),
    (0, change("shape", -2, 0), "'A': extent of axis 0, at least", 0, -2),
    (0, change("shape", 2**31, 0), "'A': extent of axis 0, at most", 2**31 - 1, 2**31),
    (0, change("shape", 2**31 - 1, 0), "'B': extent of axis 0 in 32 bits, at most", 2**31 - 1, 2**31),
    (0, change("shape", 2**50, 1), "'A': extent of axis 1, at most", 2**47 - 1, 2**50),
    (1, change("rank", 1), "'k': number of axes", 0, 1),
    (1, change("data", None), "'k': memory is NULL", 0, 1),
    (2, change("shape", 2, 0), "'B': extent of axis 0", 3, 2),
    (2, change("shape", 7, 1), "'B': extent of axis 1", 8, 7),
    (0, change("strides", 8, 0), "'A': stride of axis 0", 7, 8),
    (2, change("strides", 7, 0), "'B': stride of axis 0", 8, 7),
])
def test_free_sizes_that_do_not_fit(free, argument, changed, what, expected, got):
    tensors, fault = [tensor_of(a) for a in halves_of(5, 7)], Fault()
    changed(tensors[argument])
    assert call(free.two_halves_call, [tensors[0], tensors[1], tensors[2]], fault) == 3
    assert fault.what.decode()[len("argument 0 "):].startswith(what)
    assert (fault.expected, fault.got) == (expected, got)


def test_bytes_that_do_not_fit(free):
    assert free.two_halves_arena_bytes(int64s([5, 7])) == 192
    assert free.two_halves_arena_bytes(int64s([2**31 - 1, 2**40])) == -1


def test_functions_of_a_module(free):
    a, n = np.full(7, -1, "int16"), np.array(13, "int32")
    fault = Fault()
    assert call(free.two_halves_2_call, [tensor_of(n), tensor_of(a)], fault) == 0
    assert a.tolist() == [0, 1, 2, 3, 4, -1, -1]
    assert free.two_halves_2_run((ctypes.c_void_p * 1)(n.ctypes.data),
                                 (ctypes.c_void_p * 1)(a.ctypes.data), None) == 0


STRIDED = """from tvm.script import tir as T

@T.prim_func
def gaps(a: T.handle, b: T.handle, c: T.handle):
    n, s, o = T.int32(), T.int32(), T.int32()
    u = T.int64()
    A = T.match_buffer(a, (n, 5), "float32", strides=[s, u], elem_offset=o)
    B = T.match_buffer(b, (5, n), "float32", strides=[n + 2, 1], elem_offset=3)
    C = T.match_buffer(c, (n,), "int16", elem_offset=o * 2)
    for i, j in T.grid(5, n):
        B[i, j] = A[j, i] * T.float32(2)
    for j in range(n):
        C[j] = T.Cast("int16", A[j, 4])

@T.prim_func
def fixed(A: T.Buffer((3, 4), "float32", strides=[9, 2]), B: T.Buffer((4, 1), "float32", strides=[1, 6])):
    for i in range(4):
        B[i, 0] = A[2, i]
"""


@pytest.fixture(scope="module", params=["llvm", "c"])
def strided(request, tmp_path_factory):
    return library(request.param, tmp_path_factory.mktemp(request.param), STRIDED)


def view_of(memory, offset, shape, strides):
    """A view of an array, and the tensor that says where the memory begins."""
    item = memory.itemsize
    view = np.lib.stride_tricks.as_strided(memory[offset:], shape, [stride * item for stride in strides])
    tensor = tensor_of(view)
    tensor.data, tensor.byte_offset = memory.ctypes.data, offset * item
    tensor.strides = int64s(strides)
    return view, tensor


def gaps_of(n):
    memories = [np.random.default_rng(n).random(400, "float32"), np.zeros(200, "float32"),
                np.full(60, -1, "int16")]
    memories[0] *= 100
    return memories, [view_of(memories[0], 7, (n, 5), (31, 3)), view_of(memories[1], 3, (5, n), (n + 2, 1)),
                      view_of(memories[2], 14, (n,), (1,))]


@pytest.mark.parametrize("n", [0, 1, 3, 11])
def test_strides_and_offsets(strided, n):
    memories, given = gaps_of(n)
    fault = Fault()
    assert call(strided.two_gaps_call, [tensor for _, tensor in given], fault) == 0, fault.what
    (a, _), (b, _), (c, _) = given
    assert np.array_equal(b, 2 * a.T) and np.array_equal(c, a[:, 4].astype("int16"))
    assert np.count_nonzero(memories[1]) == b.size and (memories[2] != -1).sum() == n


def test_negative_strides(strided):
    memories, given = gaps_of(4)
    given[0] = view_of(memories[0], 120, (4, 5), (-31, -3))
    given[2] = view_of(np.zeros(300, "int16"), 240, (4,), (1,))
    assert call(strided.two_gaps_call, [tensor for _, tensor in given]) == 0
    assert np.array_equal(given[1][0], 2 * given[0][0].T)


@pytest.mark.parametrize("argument, changed, what, expected, got", [
    (0, change("strides", None), "'A': strides are NULL", 0, 1),
    (0, change("strides", 2**40, 0), "'A': stride of axis 0, at most", 2**31 - 1, 2**40),
    (0, change("strides", 2**30, 0), "'A': elements that axis 0 spans, at most", 2**31 - 1, 3 * 2**30),
    (0, change("byte_offset", 6), "'A': byte offset modulo the 4 bytes", 0, 2),
    (1, change("byte_offset", 16), "'B': elements before the first one", 3, 4),
    (1, change("strides", 3, 0), "'B': stride of axis 0", 5, 3),
    (1, change("strides", None), "'B': stride of axis 0", 5, 3),
    (2, change("byte_offset", 14), "'C': elements before the first one", 14, 7),
    (2, change("strides", 2, 0), "'C': stride of axis 0", 1, 2),
])
def test_strides_that_do_not_fit(strided, argument, changed, what, expected, got):
    memories, given = gaps_of(3)
    tensors, fault = [tensor for _, tensor in given], Fault()
    changed(tensors[argument])
    assert call(strided.two_gaps_call, tensors, fault) == 3
    assert fault.what.decode().startswith(f"argument {argument} {what}")
    assert (fault.expected, fault.got) == (expected, got)
    assert not memories[1].any()


def test_fixed_strides(strided):
    memory, out = np.arange(40, dtype="float32"), np.zeros((4, 1), "float32")
    a, tensor = view_of(memory, 0, (3, 4), (9, 2))
    fault = Fault()
    assert call(strided.two_fixed_call, [tensor, tensor_of(out)], fault) == 0, fault.what
    assert np.array_equal(out[:, 0], a[2])
    tensor.strides = None
    assert call(strided.two_fixed_call, [tensor, tensor_of(out)], fault) == 3
    assert (fault.what, fault.expected, fault.got) == (b"argument 0 'A': stride of axis 1", 2, 1)


def test_the_header_has_the_bytes_of_gaps(tmp_path):
    library("llvm", tmp_path, STRIDED)
    header = (tmp_path / "two.h").read_text()
    assert "#define TWO_FIXED_INPUT_0_BYTES 100\n" in header  # 2 * 9 + 3 * 2 + 1 elements
    assert "'A': float32 [3, 4], strides [9, 2]" in header
    assert "sizes[1] 's': the stride of axis 0 of inputs[0]" in header
