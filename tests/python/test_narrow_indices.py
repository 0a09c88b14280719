# SPDX-License-Identifier: Apache-2.0
"""Indices of fewer than 32 bits, in loops and from tables, against extents that their types do not hold."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir as T  # noqa: E402

ROWS = [("int8", 300), ("int8", 130), ("uint8", 256), ("uint8", 300), ("int16", 40000), ("int16", 65536),
        ("uint16", 65536), ("uint32", 77)]


def table(dtype, extent, kind):
    @T.prim_func
    def program(A: T.Buffer((extent,), "float32"), rows: T.Buffer((19,), dtype), B: T.Buffer((19,), "float32")):
        for i in T.serial(19):
            B[i] = A[rows[i]]
    text = program.script().replace("range(19)", f"{kind}(19)")
    return pleat.build(pleat.script.from_source(text))


@pytest.mark.parametrize("kind", ["range", "T.vectorized", "T.parallel"])
@pytest.mark.parametrize("dtype, extent", ROWS)
def test_tables(dtype, extent, kind):
    run = table(dtype, extent, kind)
    a = np.arange(extent, dtype="float32")
    most = min(extent - 1, np.iinfo(dtype).max)
    rows = np.random.default_rng(extent).integers(0, most + 1, 19).astype(dtype)
    rows[[3, 18]] = 0, most
    b = np.zeros(19, "float32")
    run(a, rows, b)
    np.testing.assert_array_equal(b, rows)


@pytest.mark.parametrize("kind", ["range", "T.vectorized", "T.parallel"])
@pytest.mark.parametrize("dtype, extent, outside", [
    ("int8", 300, -1), ("int8", 100, 100), ("uint8", 200, 255), ("int16", 40000, -32768), ("uint16", 300, 65535),
    ("uint32", 77, 2**31), ("uint32", 77, 2**32 - 1), ("uint64", 77, 2**63)])
def test_tables_out_of_bounds(dtype, extent, outside, kind):
    run = table(dtype, extent, kind)
    rows = np.zeros(19, dtype)
    rows[5] = outside
    with pytest.raises(pleat.PleatError, match="is out of bounds: index"):
        run(np.zeros(extent, "float32"), rows, np.zeros(19, "float32"))


@T.prim_func
def loops(A: T.Buffer((300, 5), "float32"), B: T.Buffer((300, 5), "float32"), C: T.Buffer((70000,), "int32")):
    for i, j in T.grid(300, 5):
        B[i, j] = A[i, j] + T.Cast("float32", i * 5 + j)
    for i in range(T.int64(70000)):
        C[i] = T.Cast("int32", i)
    for i, j in T.grid(300, 233):
        C[i * 233 + j] = C[i * 233 + j] + i
    for i in T.vectorized(7):
        C[i * 3] = i // 2 - 40000
    for i in T.parallel(3):
        C[i + 18 + 32767] = i - 4


def results(module):
    a = np.random.default_rng(3).random((300, 5), "float32")
    outputs = np.zeros((300, 5), "float32"), np.zeros(70000, "int32")
    pleat.build(module)(a, *outputs)
    return outputs


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_narrowed_programs_compute_the_same(bits):
    module = pleat.IRModule({"main": loops})
    narrow = pleat.tir.transform.NarrowDataType(bits)(module)
    text = narrow.script()
    assert ("for i, j in T.grid(T.int16(300), T.int16(5)):" in text) == (bits == 16)
    assert ("for i in range(T.int64(70000)):" in text) == (bits != 32)
    assert "for i, j in T.grid(300, 233):" in text  # i * 233 + j needs 32 bits
    assert "T.parallel(3)" in text
    if bits == 64:
        pleat.ir.assert_structural_equal(narrow, module)
    again = pleat.script.from_source(text)
    pleat.ir.assert_structural_equal(again, narrow)
    for got, expected in zip(results(narrow), results(module)):
        np.testing.assert_array_equal(got, expected)


def test_what_is_not_narrowed():
    @T.prim_func
    def blocks(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[vi]
    with pytest.raises(pleat.PleatError, match="at least 32; apply LowerOpaqueBlock"):
        pleat.tir.transform.NarrowDataType(16)(pleat.IRModule({"main": blocks}))
    lowered = pleat.tir.transform.LowerOpaqueBlock()(pleat.IRModule({"main": blocks}))
    assert "range(T.int16(7))" in pleat.tir.transform.NarrowDataType(16)(lowered).script()
    with pytest.raises(pleat.PleatError, match="target_bits can only be 16, 32 or 64, saw 8"):
        pleat.tir.transform.NarrowDataType(8)(lowered)
