# SPDX-License-Identifier: Apache-2.0
"""tensorize of pleat.tir.Schedule: what a description computes is done by an implementation."""
import subprocess

import numpy as np
import pytest
from built import BUILD, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402
from test_tir_schedule import K, check, matmul  # noqa: E402


@T.prim_func
def rows_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (1, K), "float32", offset_factor=1)
    B = T.match_buffer(b, (K, 10), "float32", offset_factor=1)
    C = T.match_buffer(c, (1, 10), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:1, 0:10], A[0:1, 0:K], B[0:K, 0:10])
        T.writes(C[0:1, 0:10])
        for i, j, k in T.grid(1, 10, K):
            with T.block("update"):
                vj, vk = T.axis.remap("SR", [j, k])
                C[0, vj] = C[0, vj] + A[0, vk] * B[vk, vj]


@T.prim_func
def rows_impl(a: T.handle, b: T.handle, c: T.handle):
    stride = T.int32()
    A = T.match_buffer(a, (1, K), "float32", offset_factor=1)
    B = T.match_buffer(b, (K, 10), "float32", strides=[stride, 1], offset_factor=1)
    C = T.match_buffer(c, (1, 10), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:1, 0:10], A[0:1, 0:K], B[0:K, 0:10])
        T.writes(C[0:1, 0:10])
        for k in range(K):
            for j in T.vectorized(10):
                C[0, j] = C[0, j] + A[0, k] * B[k, j]


def tiled(sch):
    i, j, k = sch.get_loops("product")
    outer, inner = sch.split(i, factors=[None, 1])
    columns, column = sch.split(j, factors=[None, 10])
    sch.reorder(outer, columns, inner, column, k)
    return inner


@T.prim_func
def bits(A: T.Buffer((3, 12), "uint8"), C: T.Buffer((3, 12), "uint8")):
    for i, j in T.grid(3, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]


@T.prim_func
def copied(A: T.Buffer((4,), "uint8", offset_factor=1), C: T.Buffer((4,), "uint8", offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.block("copy"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi]


@T.prim_func
def as_a_word(A: T.Buffer((4,), "uint8", offset_factor=1), C: T.Buffer((4,), "uint8", offset_factor=1)):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        word: T.int32 = T.reinterpret("int32", A[T.Ramp(0, 1, 4)])
        C[T.Ramp(0, 1, 4)] = T.reinterpret("uint8x4", word)


def test_tensorize_reinterprets_vectors():
    """The lanes of a reinterpreted value may be parts of those of its operand."""
    tir.TensorIntrin.register("as_a_word", copied, as_a_word, override=True)
    sch = tir.Schedule(bits)
    sch.tensorize(sch.split(sch.get_loops("C")[1], factors=[None, 4])[1], "as_a_word")
    assert 'T.reinterpret("int32"' in sch.func.script()
    a, c = np.arange(36, dtype="uint8").reshape(3, 12) * 7, np.zeros((3, 12), "uint8")
    pleat.build(sch.func, cache=False)(a, c)
    np.testing.assert_array_equal(a, c)


def test_tensorize(tmp_path):
    tir.TensorIntrin.register("rows", rows_desc, rows_impl, override=True)
    assert tir.TensorIntrin.get("rows").desc is rows_desc
    assert tir.TensorIntrin.get("none", allow_missing=True) is None
    with pytest.raises(ValueError, match="override"):
        tir.TensorIntrin.register("rows", rows_desc, rows_impl)
    with pytest.raises(ValueError, match="none"):
        tir.TensorIntrin.get("none")
    sch = tir.Schedule(matmul)
    sch.tensorize(tiled(sch), "rows")
    check(sch)
    assert "T.match_buffer(B[0:7, vj_o * 10:vj_o * 10 + 10]" in sch.func.script()
    check(sch.copy())
    other = tir.Schedule(matmul)
    with pytest.raises(ScheduleError, match="no tensor intrinsic 'row'; did|no tensor intrinsic 'row'"):
        other.tensorize(tiled(other), "row")
    module = pleat.IRModule({"main": matmul, "rows_desc": rows_desc, "rows_impl": rows_impl})
    (tmp_path / "kernel.py").write_text(module.script())
    (tmp_path / "steps.py").write_text(str(sch.trace))
    done = subprocess.run([BUILD / "pleat", "opt", tmp_path / "kernel.py", "--func", "main", "--schedule",
                           tmp_path / "steps.py"], capture_output=True, text=True, check=True)
    assert "T.match_buffer(B[0:7" in done.stdout


def test_wrong_intrinsics_are_refused():
    tir.TensorIntrin.register("wrong", rows_desc, matmul, override=True)
    sch = tir.Schedule(matmul)
    with pytest.raises(pleat.PleatError, match="no equal parameters"):
        sch.tensorize(tiled(sch), "wrong")


@T.prim_func
def four_desc(A: T.Buffer((4,)), C: T.Buffer((4,))):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + T.float32(1)


@T.prim_func
def four_impl(A: T.Buffer((4,)), C: T.Buffer((4,))):
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(C[0:4])
        for i in T.vectorized(4):
            C[i] = A[i] + T.float32(1)


tir.TensorIntrin.register("four", four_desc, four_impl, override=True)


def test_tiles_with_a_rest():
    """A tile that may be cut off is refused with the way out, which then is made."""
    @T.prim_func
    def main(A: T.Buffer((18,)), C: T.Buffer((18,))):
        for i in range(18):
            with T.block("C"):
                vi = T.axis.spatial(18, i)
                C[vi] = A[vi] + T.float32(1)

    sch = tir.Schedule(main)
    with pytest.raises(ScheduleError, match=r"'C' runs where vi_o \* 4 \+ i_1 < 18 only[\s\S]*loop_partition"):
        sch.tensorize(sch.split(sch.get_loops("C")[0], [None, 4])[1], "four")
    sch = tir.Schedule(main)
    whole, _ = sch.loop_partition(sch.get_loops("C")[0], [16])
    sch.tensorize(sch.split(whole, [None, 4])[1], "four")
    a, c = np.arange(18, dtype="float32"), np.zeros(18, "float32")
    pleat.build(sch.mod)(a, c)
    assert (c == a + 1).all() and "T.vectorized(4)" in sch.mod.script()
    sch = tir.Schedule(main)
    sch.transform_layout("C", "A", lambda i: [i // 4, i % 4], pad_value=0.0)
    sch.transform_layout("C", "C", lambda i: [i // 4, i % 4], pad_value=T.undef(), rewrite_loops=True)
    sch.drop_padding_predicate("C")
    sch.tensorize(sch.get_loops("C")[1], "four")
    padded, c = np.pad(a, (0, 2)).reshape(5, 4), np.zeros((5, 4), "float32")
    pleat.build(sch.mod)(padded, c)
    assert (c.reshape(20)[:18] == a + 1).all()


def test_tiles_of_free_sizes():
    """Tiles in rows of a free length: the whole ones, from any tile on, are cut off and tensorized."""
    @T.prim_func
    def rows(a: T.handle, c: T.handle):
        m, n = T.int32(), T.int32()
        A, C = T.match_buffer(a, (m, n)), T.match_buffer(c, (m, n))
        for i, j in T.grid(m, n):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)

    def check(sch):
        run = pleat.build(pleat.script.from_source(sch.mod.script()), cache=False)
        for shape in [(1, 1), (2, 4), (3, 13), (2, 29)]:
            a, c = np.random.rand(*shape).astype("float32"), np.zeros(shape, "float32")
            run(a, c)
            assert (c == a + 1).all()

    for factors, whole in ([None, 1], 0), ([1, None, 1], 1):
        sch = tir.Schedule(rows)
        parts = sch.loop_partition(sch.split(sch.get_loops("C")[1], [None, 4])[0], factors)
        block = sch.get_child_blocks(parts[whole])[0]
        sch.tensorize(sch.get_loops(block)[-1], "four")
        assert "T.vectorized(4)" in sch.mod.script() and str(sch.mod).count("T.where") == len(factors) - 1
        check(sch)
    sch = tir.Schedule(rows)
    tiles = sch.split(sch.fuse(*sch.get_loops("C")), [None, 4])[0]
    sch.loop_partition(tiles, [None, 1])
    check(sch)
