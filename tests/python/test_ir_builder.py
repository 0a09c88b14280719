# SPDX-License-Identifier: Apache-2.0
"""Programs that are built by calls are those that are written as text."""
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import ir, tir  # noqa: E402
from pleat.script import ir as SI, tir as S, tirx as X  # noqa: E402
from pleat.script.ir_builder import IRBuilder, ir as I, tir as T, tirx  # noqa: E402


def test_blocks():
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_name("scale")
            T.func_attr({"key": "value"})
            a = T.arg("a", T.handle())
            n = T.int32()
            A = T.match_buffer(a, (n, 7), "float32", name="A")
            B = T.arg("B", T.Buffer((5, 7), "float32"))
            k = T.arg("k", T.float32())
            C = IRBuilder.name("C", T.sblock_alloc_buffer((n, 7)))
            with T.grid(n, 7) as (i, j):
                with T.block("C"):
                    vi, vj = IRBuilder.name_many(["vi", "vj"], T.axis.remap("SS", [i, j]))
                    T.where(i < 5)
                    T.reads(A[vi, vj])
                    T.writes(C[vi, vj])
                    T.block_attr({"kept": 3})
                    T.buffer_store(C, A[vi, vj] * 2.0 + k, [vi, vj])
            with T.serial(5) as i, T.serial(6) as j:
                with T.block("B"):
                    vi, vj = T.axis.spatial(5, i), T.axis.reduce((1, 7), j + 1)
                    with T.init():
                        T.buffer_store(B, 0.0, [vi, 0])
                    with T.If(vi < 3):
                        with T.Then():
                            T.buffer_store(B, T.max(B[vi, 0], T.float32(1)), [vi, 0])
                        with T.Else():
                            T.evaluate(0)

    @S.prim_func
    def scale(a: S.handle, B: S.Buffer((5, 7), "float32"), k: S.float32):
        S.func_attr({"key": "value"})
        n = S.int32()
        A = S.match_buffer(a, (n, 7), "float32")
        C = S.alloc_buffer((n, 7))
        for i, j in S.grid(n, 7):
            with S.block("C"):
                vi, vj = S.axis.remap("SS", [i, j])
                S.where(i < 5)
                S.reads(A[vi, vj])
                S.writes(C[vi, vj])
                S.block_attr({"kept": 3})
                C[vi, vj] = A[vi, vj] * 2.0 + k
        for i, j in S.grid(5, 6):
            with S.block("B"):
                vi, vj = S.axis.spatial(5, i), S.axis.reduce((1, 7), j + 1)
                with S.init():
                    B[vi, 0] = 0.0
                if vi < 3:
                    B[vi, 0] = S.max(B[vi, 0], S.float32(1))
                else:
                    S.evaluate(0)

    made = builder.get()
    assert made.__name__ == "scale"
    assert "vi, vj = T.axis.remap" in made.script() and "C = T.alloc_buffer" in made.script()
    ir.assert_structural_equal(made, scale)


def test_loops():
    with IRBuilder() as builder:
        with T.prim_func(private=True):
            A = T.arg("A", T.Buffer((5, 8), "int32"))
            n = T.arg("n", T.int32())
            with T.parallel(5) as i, T.vectorized(8) as j:
                T.buffer_store(A, i * 8 + j, [i, j])
            with T.unroll(2) as i:
                x = T.decl_buffer((1,), "int32", scope="local", name="x")
                T.buffer_store(x, n, [0])
                with T.While(x[0] < 3):
                    T.buffer_store(x, x[0] + 1, [0])
                with T.Assert(n > 0, "n is positive"):
                    T.evaluate(n)
            with T.thread_binding(5, thread="threadIdx.x") as t:
                with T.LetStmt(t * 2) as twice:
                    T.buffer_store(A, T.if_then_else(twice < 7, twice, -1), [t, 0])

    @S.prim_func(private=True)
    def main(A: S.Buffer((5, 8), "int32"), n: S.int32):
        for i in S.parallel(5):
            for j in S.vectorized(8):
                A[i, j] = i * 8 + j
        for i in S.unroll(2):
            x = S.decl_buffer((1,), "int32", scope="local")
            x[0] = n
            while x[0] < 3:
                x[0] = x[0] + 1
            with S.Assert(n > 0, "n is positive"):
                S.evaluate(n)
        for t in S.thread_binding(5, thread="threadIdx.x"):
            with S.LetStmt(t * 2) as twice:
                A[t, 0] = S.if_then_else(twice < 7, twice, -1)

    ir.assert_structural_equal(builder.get(), main)
    assert pleat.tir.analysis.accesses(main)


def test_module():
    with IRBuilder() as builder:
        with I.ir_module():
            for name, value in (("f", 1.0), ("g", 2.0)):
                with tirx.prim_func(private=True):
                    tirx.func_name(name)
                    A = tirx.arg("A", tirx.Buffer((5,), "float32"))
                    with tirx.serial(5) as i:
                        tirx.buffer_store(A, tirx.float32(value), [i])

    @SI.ir_module
    class Module:
        @X.prim_func(private=True)
        def f(A: X.Buffer((5,), "float32")):
            for i in range(5):
                A[i] = 1.0

        @X.prim_func(private=True)
        def g(A: X.Buffer((5,), "float32")):
            for i in range(5):
                A[i] = 2.0

    ir.assert_structural_equal(builder.get(), Module)
    assert list(builder.get()) == ["f", "g"]
    with IRBuilder() as builder, I.ir_module():
        pass
    assert list(builder.get()) == []


def test_statements_alone():
    with IRBuilder() as builder:
        n = T.int32()
        A = T.Buffer((9,), "float32", name="A")
        with T.serial(n) as i:
            T.buffer_store(A, 2.0, [i])
    loop = builder.get()
    assert isinstance(loop, tir.For) and isinstance(loop.body, tir.BufferStore)
    assert loop.body.buffer.name == "A" and loop.extent.name == "v_1"
    with IRBuilder() as builder:
        with T.block("alone"):
            T.evaluate(7)
    assert builder.get().block.name_hint == "alone"
    with IRBuilder() as builder:
        T.evaluate(T.meta_var(3).value + sum(one.value for one in T.meta_var([4, 5])))
    assert builder.get().value == 12
    with IRBuilder() as builder:
        pass


def test_what_is_refused():
    assert not IRBuilder.is_in_scope()
    with pytest.raises(ValueError, match="belongs into `with IRBuilder"):
        T.evaluate(0)
    with IRBuilder() as builder:
        assert IRBuilder.current() is builder
        with pytest.raises(pleat.PleatError, match="stands outside of `with T.prim_func"):
            T.func_name("f")
        with pytest.raises(pleat.PleatError, match="T.arg: 'A' is 3, expected T.Buffer"):
            T.arg("A", 3)
        with pytest.raises(pleat.PleatError, match="end of `with IRBuilder"):
            builder.get()
        with pytest.raises(AttributeError, match="T.axis has no 'other'"):
            T.axis.other(3, 4)
    with pytest.raises(pleat.PleatError, match="IRBuilder|main|script"):
        with IRBuilder():
            with T.prim_func():
                T.buffer_store(T.Buffer((3,), "float32"), 1.0, [0, 0])
    with pytest.raises(pleat.PleatError, match="a second T.prim_func"):
        with IRBuilder():
            for _ in range(2):
                with T.prim_func():
                    T.evaluate(0)
    assert not IRBuilder.is_in_scope()
