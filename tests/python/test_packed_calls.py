# SPDX-License-Identifier: Apache-2.0
"""Functions of TVM's calling convention, which MakePackedAPI makes, run: in this process by their tensors
and scalars, and in files by arrays of tagged arguments, as TVM's runtime calls them."""
import ctypes
import subprocess

import command
import numpy as np
import pytest
from built import skip_sanitized
from test_argument_checks import Tensor, tensor_of

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import ir as I, tir as T  # noqa: E402


@I.ir_module
class Module:
    @T.prim_func
    def rows(a: T.handle, k: T.int16, c: T.handle):
        n, m, s = T.int32(), T.int64(), T.int64()
        A = T.match_buffer(a, (n + 1, m), "float32", strides=[s, 1])
        C = T.match_buffer(c, (n, m), "float32")
        tmp = T.alloc_buffer((n, m), "float32")
        for i in T.parallel(n):
            for j in range(m):
                tmp[i, j] = A[i + 1, j] + T.Cast("float32", k)
        for i in T.parallel(n):
            for j in range(m):
                C[i, j] = tmp[n - 1 - i, j]

    @T.prim_func
    def first(A: T.Buffer((5,), "int32"), k: T.int32, b: T.bool) -> T.float32:
        for i in range(5):
            if A[i] > k and b:
                return T.Cast("float32", i) + T.float32(0.5)
        return T.float32(-1)


PACKED = pleat.tir.transform.MakePackedAPI()(Module)


class Tagged(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("padding", ctypes.c_int32), ("value", ctypes.c_int64)]


def tagged(argument):
    if isinstance(argument, Tensor):
        return Tagged(7, 0, ctypes.addressof(argument))
    if isinstance(argument, bool):
        return Tagged(2, 0, argument)
    if isinstance(argument, float):
        return Tagged(3, 0, np.float64(argument).view("int64"))
    return Tagged(1, 0, argument)


@pytest.fixture(scope="module", params=["llvm", "c"])
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "packed.py").write_text(PACKED.script())
    path = folder / "packed.so"
    command.pleat("compile", folder / "packed.py", "-o", path if request.param == "llvm"
                  else folder / "packed.c")
    if request.param == "c":
        subprocess.run(["cc", "-std=gnu11", "-O1", "-march=native", "-Wall", "-Wextra", "-Werror",
                        "-shared", "-fPIC", folder / "packed.c", "-o", path], check=True)
    return path


def call(library, name, *arguments):
    """The result; a message where the arguments do not fit."""
    code = ctypes.CDLL(str(library))
    code.packed_error.restype = ctypes.c_char_p
    args = (Tagged * max(len(arguments), 1))(*map(tagged, arguments))
    result = Tagged()
    status = code["__tvm_ffi_" + name](None, args, len(arguments), ctypes.byref(result))
    return result if status == 0 else code.packed_error().decode()


def test_header(library):
    text = library.with_suffix(".h").read_text()
    assert "'A': float32 [n + 1, m], strides [s, 1]\n" in text.replace("T.int64(1)", "1")
    assert "sizes[0] 's': the stride of axis 0 of inputs[0]" in text
    assert "int32_t __tvm_ffi_rows(" in text and "rows_call" not in text


@pytest.mark.parametrize("n, m", [(0, 3), (1, 1), (3, 0), (7, 5)])
def test_tensors(library, n, m):
    a = np.arange((n + 1) * (m + 2), dtype="float32").reshape(n + 1, m + 2)
    c = np.zeros((n, m), "float32")
    given = tensor_of(a)
    given.shape[1] = m  # columns of a wider array
    assert call(library, "rows", given, 7, tensor_of(c)).kind == 0
    assert np.array_equal(c, a[:0:-1, :m] + 7)


def test_results(library):
    a = tensor_of(np.array([1, 2, 3, 9, 9], "int32"))
    for flag, expected in ((True, 3.5), (False, -1)):
        result = call(library, "first", a, 3, flag)
        assert (result.kind, result.padding) == (3, 0)
        assert np.int64(result.value).view("float64") == expected


def changed(tensor, field, value, axis=None):
    if axis is None:
        setattr(tensor, field, value)
    else:
        getattr(tensor, field)[axis] = value
    return tensor


@pytest.mark.parametrize("change, begin, end", [
    (lambda a, c: (a, 7), "Mismatched number of arguments when", "expected 3 arguments, got 2"),
    (lambda a, c: (a, 7.5, c), "Mismatched type on argument #1", "expected int, got 3"),
    (lambda a, c: (a, c, c), "Mismatched type on argument #1", "expected int, got 7"),
    (lambda a, c: (a, 7, changed(c, "rank", 3)), "Mismatched C.ndim on argument #2",
     "expected 2, got 3"),
    (lambda a, c: (changed(a, "code", 0), 7, c), "Mismatched A.dtype on argument #0",
     "expected float32, got type code 0 of 32 bits and 1 lanes"),
    (lambda a, c: (changed(a, "shape", None), 7, c), "Mismatched A.shape on argument #0", "got NULL"),
    (lambda a, c: (a, 7, changed(c, "shape", 2**33, 0)), "Invalid C.shape[0] on argument #2",
     "expected a value of int32, got 8589934592"),
    (lambda a, c: (changed(a, "shape", 9, 0), 7, c), "Invalid A.shape[0] on argument #0",
     "expected n + 1, got 9"),
    (lambda a, c: (changed(a, "strides", 2, 1), 7, c), "Invalid A.strides[1] on argument #0",
     "expected 1, got 2"),
    (lambda a, c: (a, 7, changed(c, "strides", 8, 0)), "Mismatched C.strides[0] on argument #2",
     "expected to be compact array, got 8"),
    (lambda a, c: (a, 7, changed(c, "byte_offset", 4)), "Invalid C.byte_offset on argument #2",
     "got 4"),
    (lambda a, c: (a, 7, changed(c, "device_type", 2)), "Mismatched C.device_type on argument #2",
     "expected cpu, got 2"),
    (lambda a, c: (a, 7, changed(c, "data", None)), "C data pointer is NULL on argument #2",
     "expected non-NULL data pointer, got NULL"),
])
def test_messages(library, change, begin, end):
    a, c = np.zeros((8, 5), "float32"), np.ones((7, 5), "float32")
    message = call(library, "rows", *change(tensor_of(a), tensor_of(c)))
    assert message.startswith(begin) and message.endswith(end), message
    assert (c == 1).all()


def test_runtime_of_tvm_calls_them(library):
    """In a process of its own, since libraries of TVM stay loaded. Needs apache-tvm-ffi."""
    ffi = pytest.importorskip("tvm_ffi")
    module = ffi.load_module(str(library))
    a = np.array([1, 2, 3, 9, 9], "int32")
    assert module["first"](ffi.from_dlpack(a), 3, True) == 3.5
    with pytest.raises(ValueError, match=r"Invalid A.shape\[0\] on argument #0"):
        module["first"](ffi.from_dlpack(a[:4]), 3, True)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_in_this_process(target):
    run = pleat.build(PACKED, target=target, cache=False)
    a, c = np.arange(24, dtype="float32").reshape(8, 3), np.zeros((7, 3), "float32")
    run["rows"](a, 7, c)
    assert np.array_equal(c, a[:0:-1] + 7)
    for flag, expected in ((True, 3.5), (False, -1.0)):
        assert run["first"](np.array([1, 2, 3, 9, 9], "int32"), 3, flag) == expected
    with pytest.raises(pleat.PleatError, match="axis 0|extent|shape"):
        run["rows"](a, 7, c[:5])


def test_pointers_are_refused():
    @T.prim_func
    def pointer(h: T.handle, A: T.Buffer((3,), "int32")):
        A[0] = T.call_extern("int32", "f", h)
    packed = pleat.tir.transform.MakePackedAPI()(pleat.IRModule({"pointer": pointer}))
    with pytest.raises(pleat.PleatError, match="uses the pointer 'h'"):
        pleat.build(packed, cache=False)


def test_a_string_that_the_text_does_not_hold():
    function = pleat.script.from_source("""
@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    T.call_packed("tests.show", metadata["ir.StringImm"][0])
    T.evaluate(T.call_extern("int32", "abs", metadata["ir.StringImm"][0]))
""")
    pleat.ir.assert_structural_equal(pleat.ir.load_json(pleat.ir.save_json(function)), function)
    again = pleat.tir.PrimFunc(function.params, function.body, buffer_map=function.buffer_map)
    assert str(again.body) == str(function.body)
    pleat.register_func("tests.show", lambda *_: None, override=True)
    with pytest.raises(pleat.PleatError, match=r'does not hold the string metadata\["ir.StringImm"\]\[0\]'):
        pleat.build(function, cache=False)(np.zeros(4, "int32"))
