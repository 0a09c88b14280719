# SPDX-License-Identifier: Apache-2.0
"""Intrinsics that are functions of their operands run in the interpreter and on the targets llvm and c."""
import math

import command
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import from_source  # noqa: E402


def program(value, shapes):
    """B[i] = value for each element, where `shapes` has the arrays' element types."""
    parameters = ", ".join(f"{name}: T.Buffer(({count},), '{dtype}')" for name, (count, dtype) in shapes.items())
    count = shapes["B"][0]
    return from_source(f"@T.prim_func\ndef f({parameters}):\n    for i in range({count}):\n        B[i] = {value}\n")


def run_all(function, *arrays):
    for target in ("llvm", "c"):
        pleat.build(function, target=target, cache=False)(*arrays)
        yield target


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_clz(dtype):
    bits = np.iinfo(dtype).bits
    values = {0, 1, 2, 3, 5, (1 << bits) - 1, 1 << (bits - 1), *(1 << i for i in range(bits)),
              *(int(x) >> s for x in np.random.default_rng(1).integers(0, 2 ** 63, 5) for s in range(0, bits, 3))}
    raw = np.array(sorted(value % (1 << bits) for value in values), f"uint{bits}")
    a, b = raw.view(dtype), np.zeros(len(raw), "int32")
    function = program("T.clz(A[i])", {"A": (len(a), dtype), "B": (len(b), "int32")})
    for _ in run_all(function, a, b):
        assert b.tolist() == [bits - int(x).bit_length() for x in raw]
        b[:] = -1
    assert pleat.verify(function, {"A": a})


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_ldexp(dtype):
    random = np.random.default_rng(2)
    bits = f"uint{np.dtype(dtype).itemsize * 8}"
    a = random.integers(0, np.iinfo(bits).max, 3001, bits, endpoint=True).view(dtype)
    a[:5] = 0, -0.0, np.inf, -np.inf, np.nan
    most = {"float16": 50, "float32": 320, "float64": 2200}[dtype]
    n = random.integers(-most, most, len(a)).astype("int32")
    n[5:9] = 2 ** 31 - 1, -2 ** 31, 1024, -1075
    b = np.zeros_like(a)
    function = program("T.ldexp(A[i], n[i])", {"A": (len(a), dtype), "n": (len(a), "int32"), "B": (len(a), dtype)})
    with np.errstate(all="ignore"):
        expected = np.array([scaled(x, int(k)) for x, k in zip(a, n)]).astype(dtype)
    for _ in run_all(function, a, n, b):
        np.testing.assert_array_equal(b, expected)
        np.testing.assert_array_equal(np.signbit(b[~np.isnan(b)]), np.signbit(expected[~np.isnan(b)]))
        b[:] = 0


def scaled(x, n):
    """x * 2**n in float64; a narrower x is exact there, but for what is far beyond its type."""
    try:
        return math.ldexp(float(x), max(min(n, 3000), -3000))
    except OverflowError:
        return math.copysign(math.inf, float(x))


@pytest.mark.parametrize("name, function", [
    ("llvm.sqrt", np.sqrt), ("llvm.floor.f32", np.floor), ("llvm.fabs.f32", np.abs), ("llvm.trunc", np.trunc),
    ("llvm.rint", np.rint), ("llvm.exp2.f32", np.exp2)])
def test_functions_of_llvm(name, function):
    a = np.linspace(0, 9, 37, dtype="float32")
    b = np.zeros_like(a)
    for stated in ("", "T.uint32(1), "):
        made = program(f"T.call_llvm_pure_intrin('float32', '{name}', {stated}A[i])",
                       {"A": (37, "float32"), "B": (37, "float32")})
        for _ in run_all(made, a, b):
            np.testing.assert_allclose(b, function(a), 2e-6)
    assert f'"{name}"' in made.script() and pleat.verify(made)


def test_bits_of_llvm():
    a = np.array([0, 1, 7, -1, 1 << 20], "int32")
    b = np.zeros_like(a)
    for name, expected in (("llvm.ctpop', A[i]", [0, 1, 3, 32, 1]), ("llvm.ctlz', A[i], False", [32, 31, 29, 0, 11])):
        for _ in run_all(program(f"T.call_llvm_pure_intrin('int32', '{name})", {"A": (5, "int32"), "B": (5, "int32")}),
                         a, b):
            assert b.tolist() == expected


def test_vectors():
    function = from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((4,), "int32"), n: T.int32):
    B[0:8] = T.vectorcombine(T.vectorhigh(A[0:8], dtype="int32x4"), T.vectorlow(A[0:8], dtype="int32x4"),
                             dtype="int32x8")
    C[0:4] = T.Select(T.get_active_lane_mask("boolx4", 2, n), A[0:4], T.Broadcast(-1, 4))
""")
    a, b, c = np.arange(8, dtype="int32"), np.zeros(8, "int32"), np.zeros(4, "int32")
    for _ in run_all(function, a, b, c, 5):
        assert b.tolist() == [4, 5, 6, 7, 0, 1, 2, 3] and c.tolist() == [0, 1, 2, -1]
        b[:] = c[:] = 0


def test_assumptions_and_undefined_values():
    function = from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        T.evaluate(T.assume(A[i] == 3))
    for i in range(8):
        B[i] = A[i] + T.if_then_else(i < 8, 1, T.undef(dtype="int32"))
""")
    a, b = np.full(8, 3, "int32"), np.zeros(8, "int32")
    for _ in run_all(function, a, b):
        assert (b == 4).all()
    assert pleat.verify(function)


def test_isfinite():
    a = np.array([1, np.inf, -np.inf, np.nan, -0.0], "float32")
    b = np.zeros(5, "bool")
    for _ in run_all(program("T.isfinite(A[i])", {"A": (5, "float32"), "B": (5, "bool")}), a, b):
        assert b.tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("call, message", [
    ("T.call_llvm_pure_intrin('float32', 'llvm.x86.sse.rcp.ss', A[i])", "llvm.x86.sse.rcp.ss cannot run here"),
    ("T.call_llvm_pure_intrin('float32', T.uint32(125), A[i])", "give the name"),
    ("T.call_llvm_intrin('float32', 'llvm.prefetch', A[i])", "cannot run here")])
def test_what_does_not_run(call, message, tmp_path):
    function = program(call, {"A": (5, "float32"), "B": (5, "float32")})
    with pytest.raises(pleat.PleatError, match=rf":6:9: error: .*{message}|{message}"):
        pleat.build(function, cache=False)
    (tmp_path / "f.py").write_text(function.script())
    assert "f.py:6:9" in command.pleat("run", tmp_path / "f.py", "--fill", "random", status=1)
