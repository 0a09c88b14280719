# SPDX-License-Identifier: Apache-2.0
"""Tests written for TVM run over this package through as_tvm.py, and the names of TVM that they use are
there. With PLEAT_TVM_TESTS=CHECKOUT TVM's own tests of passes are counted; docs/from-tvm.md has the
result."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tirx  # noqa: E402
from pleat.script import tir as classic  # noqa: E402
from pleat.script import tirx as T  # noqa: E402

sys.path.insert(0, str(ROOT / "scripts"))
import count_tvm_tests  # noqa: E402

FOREIGN = '''
import pytest
import tvm
import tvm.testing
from tvm import s_tir, te, tirx, topi
from tvm.script import ir as I, tirx as T


def test_pass():
    @T.prim_func(private=True)
    def before(A: T.Buffer((8,), "float32")):
        for i in T.unroll(2):
            A[i] = T.float32(1)

    after = tirx.transform.UnrollLoop()(tvm.IRModule.from_expr(before))["main"]
    assert isinstance(after.body, tvm.tirx.SeqStmt) and len(after.body) == 2


def test_missing():
    with pytest.raises(AttributeError, match="no attribute 'image'"):
        topi.image.resize2d
    with pytest.raises(AttributeError, match="pleat has no no"):
        tvm.no.thing()


class TestCompare(tvm.testing.CompareBeforeAfter):
    transform = tvm.tirx.transform.RemoveNoOp()

    def before(A: T.Buffer((4,), "float32")):
        A[1] = A[1]

    def expected(A: T.Buffer((4,), "float32")):
        T.evaluate(0)


@tvm.testing.requires_cuda
def test_left_out():
    assert False
'''


def test_foreign_tests(tmp_path):
    path = tmp_path / "test_foreign.py"
    path.write_text(FOREIGN)
    result = count_tvm_tests.run(path, sys.executable)
    assert "3 passed, 1 skipped" in result.stdout, result.stdout + result.stderr


def test_modules_are_the_same():
    """But for the names that passes have in each dialect."""
    import pleat.tirx.transform as newer
    assert newer.__all__ == pleat.tir.transform.__all__ and newer.PrimFuncPass is pleat.tir.transform.PrimFuncPass
    assert [one.Simplify().info.name for one in (newer, pleat.tir.transform, pleat.s_tir.transform)] == \
        ["tirx.Simplify", "tir.Simplify", "s_tir.Simplify"]
    assert pleat.s_tir.Schedule is pleat.tir.Schedule
    assert tirx.BufferLoad is pleat.tir.BufferLoad
    with pytest.raises(AttributeError):
        tirx.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        pleat.ir.nothing  # noqa: B018


def test_statements_without_bodies():
    """Bind, DeclBuffer and AllocBuffer in a sequence hold for the statements behind them."""
    x = tirx.Var("x", "int32")
    A = tirx.decl_buffer((3,), "int32", name="A")
    B = tirx.decl_buffer((3,), "int32", name="B")
    body = tirx.SeqStmt([tirx.AllocBuffer(B), tirx.Bind(x, tirx.IntImm("int32", 5)),
                         tirx.BufferStore(B, x, [0]), tirx.BufferStore(A, B[0] + x, [1])])
    made = tirx.PrimFunc([A], body)

    @classic.prim_func
    def main(A: classic.Buffer((3,), "int32")):
        B = classic.decl_buffer((3,), "int32")
        x: classic.int32 = 5
        B[0] = x
        A[1] = B[0] + x

    pleat.ir.assert_structural_equal(made.with_attr("global_symbol", "main"), main)
    pleat.ir.assert_structural_equal(made.body, main.body, map_free_vars=True)
    allocation, bind, *_ = made.body
    assert isinstance(allocation, tirx.AllocBuffer) and isinstance(allocation, tirx.Allocate)
    assert [e.value for e in allocation.buffer.ty.shape] == [3]
    assert isinstance(bind, tirx.Bind) and bind.body is None and len(made.body) == 4
    assert isinstance(main.body.body.body, tirx.Bind), "classic statements have bodies"

    @T.prim_func
    def newer(A: T.Buffer((3,), "int32")):
        B = T.alloc_buffer((3,), "int32")
        for i in range(3):
            x: T.let = i
            B[i] = x
        A[1] = B[0]

    assert [type(one).__name__ for one in newer.body] == ["AllocBuffer", "For", "BufferStore"]
    assert len(pleat.tir.transform.ConvertSSA()(newer).body[1].body) == 2, "it is so after passes, too"
    pleat.ir.assert_structural_equal(newer.with_body(newer.body), newer)
    assert [e.value for e in made.params[0].ty.shape] == [3] and x.ty.dtype == pleat.ir.PrimType("int32")
    again = tirx.SeqStmt([tirx.Bind(x, tirx.IntImm("int32", 7)), tirx.BufferStore(A, x, [0])])
    twice = tirx.PrimFunc([A], tirx.SeqStmt([tirx.Bind(x, tirx.IntImm("int32", 5)), tirx.BufferStore(A, x, [2]),
                                             again, tirx.BufferStore(A, x, [1])]))
    values = np.zeros(3, "int32")
    pleat.build(twice)(values)
    assert values.tolist() == [7, 7, 5]
    at_end = tirx.SeqStmt([tirx.BufferStore(A, 4, [0]), tirx.Bind(x, tirx.IntImm("int32", 2))])
    assert isinstance(tirx.PrimFunc([A], at_end).body[1], tirx.Bind)
    pointer = pleat.ir.PointerType(pleat.ir.PrimType("float32"), "shared")
    assert (pointer.element_type, pointer.storage_scope) == ("float32", "shared")


def test_declarations_with_a_pointer():
    """DeclBuffer(data=…) gives the buffer's pointer a value, in a sequence and around a body."""
    A, B = (tirx.decl_buffer((3,), "int32", name=name) for name in "AB")
    store = tirx.BufferStore(B, A[0] + 1, [2])
    bodies = tirx.SeqStmt([tirx.DeclBuffer(B, data=A.data), store]), tirx.DeclBuffer(B, store, data=A.data)
    assert bodies[1].data is A.data and tirx.DeclBuffer(B).data is B.data
    for body in bodies:
        values = np.array([5, 0, 0], "int32")
        pleat.build(tirx.PrimFunc([A], body))(values)
        assert list(values) == [5, 0, 6]
    thread = tirx.IterVar((0, 3), "tx", tirx.IterVar.ThreadIndex, "threadIdx.x")
    assert isinstance(thread.dom, pleat.ir.Range) and thread.var.name == "tx"
    launched = tirx.PrimFunc([A], tirx.AttrStmt(thread, "thread_extent", 3, tirx.BufferStore(A, 7, [thread.var])))
    assert 'T.launch_thread("threadIdx.x", 3)' in launched.script()

def test_visitors_and_mutators():
    """Classes with a method for each kind of node, under the names of several versions of TVM."""
    functor = tirx.stmt_functor

    @classic.prim_func
    def main(A: classic.Buffer((8,), "int32")):
        x: classic.int32 = 3
        for i in range(8):
            if i < 5:
                A[i] = A[i] // 2 + x

    class Log(functor.StmtExprVisitor):
        def __init__(self):
            self.seen = []

        def visit_let_stmt_(self, op):
            self.seen.append(f"let {op.var.name}")
            super().visit_let_stmt_(op)

        def visit_floor_div_(self, op):
            self.seen.append("//")
            super().visit_floor_div_(op)

        def visit_int_imm_(self, op):
            self.seen.append(op.value)

        def visit_var_(self, op):
            self.seen.append(op.name)

    log = Log()
    log(main.body)
    assert log.seen == ["let x", 3, 0, 8, "i", 5, "//", "i", 2, "x", "i"]

    class Statements(functor.StmtVisitor):
        def visit_bind_(self, op):
            self.found = op.var.name

        def visit_int_imm_(self, op):
            raise AssertionError("an expression")

    statements = Statements()
    statements(main.body)
    assert statements.found == "x"

    @tirx.functor.mutator
    class Doubled(tirx.PyStmtExprMutator):
        def visit_int_imm_(self, op):
            return tirx.IntImm(op.dtype, op.value * 2) if op.value in (2, 5) else op

    @classic.prim_func
    def doubled(A: classic.Buffer((8,), "int32")):
        x: classic.int32 = 3
        for i in range(8):
            if i < 10:
                A[i] = A[i] // 4 + x

    pleat.ir.assert_structural_equal(main.with_body(Doubled()(main.body)), doubled)
    assert functor.StmtMutator()(main.body) is main.body
    assert Doubled().visit_expr(tirx.const(5)) == 10
    with pytest.raises(NotImplementedError):
        tirx.expr_functor.ExprFunctor()(tirx.const(5))


def test_names_of_operations():
    call = tirx.exp(tirx.const(1.5))
    assert call.op == "tir.exp" and call.op.name == "tirx.exp" and call.op != "tir.sin"
    assert isinstance(call.op, pleat.ir.Op) and call.op.same_as(pleat.ir.Op.get("tirx.exp"))
    assert {call.op: 1}[pleat.ir.Op.get("tirx.exp")] == 1


def test_accesses_of_buffers():
    """The methods of buffers, whose results are nodes of programs."""
    n = tirx.Var("n", "int32")
    A = tirx.decl_buffer((n, 8), "float32", name="A", strides=[n + 8, 1], elem_offset=3)
    B = tirx.decl_buffer((4, 8), "float32", name="B")
    pleat.ir.assert_structural_equal(A.offset_of([2, 5]), [n * 2 + 24])
    pleat.ir.assert_structural_equal(B.offset_of([n, 5]), [n * 8 + 5])
    assert B.get_flattened_buffer().shape == [32] and B.get_flattened_buffer().data is B.data
    pointer = B.access_ptr("rw", offset=4)
    assert [int(one) for one in pointer.args[2:]] == [4, 28, 3] and pointer.args[0].dtype == "float32"
    assert isinstance(B.data.ty, pleat.ir.PointerType) and B.data.ty.element_type == "float32"
    for wrong in (lambda: B.vload([0]), lambda: B.vload([0, 0], "int32"), lambda: B.access_ptr("x"),
                  lambda: B.vload([0, 0], "float32x4", predicate=n < 3)):
        with pytest.raises((TypeError, ValueError)):
            wrong()
    i = tirx.Var("i", "int32")
    body = tirx.For(i, 0, 4, 0, B.vstore([i, 4], B.vload([i, 0], "float32x4") * 2.0))
    values = np.arange(32, dtype="float32").reshape(4, 8)
    expected = np.concatenate([values[:, :4], values[:, :4] * 2], 1)
    pleat.build(tirx.PrimFunc([B], body))(values)
    np.testing.assert_array_equal(values, expected)


def test_pointers_keep_their_types():
    @classic.prim_func
    def main(p: classic.handle("float32", "shared"), q: classic.handle):
        A = classic.decl_buffer((4,), "float32", data=p, scope="shared")
        A[0] = A[1]

    pleat.ir.assert_structural_equal(main.with_body(main.body), main)
    assert 'p: T.handle("float32", "shared"), q: T.handle)' in main.with_body(main.body).script()
    assert main.params[0].type_annotation.storage_scope == "shared"


def test_numbers_and_nodes_are_compared():
    pleat.ir.assert_structural_equal([4, 5], [T.int32(4), tirx.const(5, "int64")])
    assert not pleat.ir.structural_equal(4, tirx.const(5)) and pleat.ir.structural_equal(T.float32(1.5), 1.5)
    assert tirx.isnullptr(tirx.Var("p", "handle")).dtype == "bool" and tirx.likely(cond=True).args[0] == 1
    assert tirx.tvm_tuple("a", 1).args == [tirx.StringImm("a"), 1]
    with pytest.raises(TypeError, match="and no node: make nodes with the functions of pleat.tir"):
        tirx.Evaluate(T.exp(T.float32(4)))
    assert len(tirx.stmt_list(tirx.SeqStmt([tirx.Evaluate(0), tirx.Evaluate(1)]))) == 2


def test_constants_are_numbers_of_their_types():
    assert [tirx.const(one).dtype for one in (2**31, 2**63, 1e39, np.int16(3), np.float64(2))] == \
        ["int64", "uint64", "float64", "int32", "float32"]
    for value, dtype in ((128, "int8"), (-1, "uint8"), (2**64, "uint64"), (65505.0, "float16"), (1e39, "float32")):
        with pytest.raises(ValueError, match="is no number of type"):
            tirx.const(value, dtype)

    @classic.prim_func
    def main(A: classic.Buffer((1,), "uint64")):
        A[0] = classic.uint64(18446744073709551615)

    assert main.body.value.value == 2**64 - 1
    pleat.ir.assert_structural_equal(main.with_body(main.body), main)


def test_names_of_functions():
    @T.prim_func(private=True)
    def hidden():
        T.evaluate(0)

    @T.prim_func
    def shown():
        T.evaluate(0)

    assert list(pleat.IRModule.from_expr(hidden)) == ["main"]
    assert list(pleat.IRModule.from_expr(shown)) == ["shown"]
    assert "private" not in hidden.with_attr("global_symbol", "f").attrs
    assert hidden.same_as(hidden) and not hidden.same_as(shown)


def test_free_variables_before_and_after_passes():
    @T.prim_func
    def f(A: T.Buffer((3,), "int32"), n: T.int32, m: T.int32):
        A[0] = n
        T.evaluate(0)

    @T.prim_func
    def g(A: T.Buffer((3,), "int32"), n: T.int32, m: T.int32):
        A[0] = n

    after = pleat.tir.transform.RemoveNoOp()(pleat.IRModule({"main": f}))["main"]
    assert pleat.ir.structural_equal(f.body.seq[0], after.body)
    assert not pleat.ir.structural_equal(f.body.seq[0], g.body)
    assert pleat.ir.structural_equal(f.params[1], after.params[1])
    assert not pleat.ir.structural_equal(f.params[1], after.params[2])
    assert not pleat.ir.structural_equal(f.params[1], f.params[2])


@pytest.mark.parametrize("given, kind, attrs", [
    ("llvm", "llvm", {}), ("cuda -arch=sm_80 -fast", "cuda", {"arch": "sm_80", "fast": 1}),
    ({"kind": "llvm", "mcpu": "znver4"}, "llvm", {"mcpu": "znver4"}),
    ('{"kind": "c"}', "c", {})])
def test_targets(given, kind, attrs):
    target = pleat.target.Target(given)
    assert (target.kind.name, target.attrs) == (kind, attrs)
    assert target == pleat.target.Target(str(target)) and hash(target) == hash(target.with_host(None))
    assert pleat.target.Target.current() is None
    with target.with_host("llvm") as inner:
        assert pleat.target.Target.current() is inner and inner.host.kind.name == "llvm"
        assert inner != target and eval(repr(inner), {"Target": pleat.target.Target}) == inner
    with pytest.raises(ValueError):
        pleat.target.Target.current(allow_none=False)


def test_targets_in_scripts():
    host = pleat.target.Target("llvm")

    @T.prim_func
    def f():
        T.func_attr({"target": T.target("cuda", host="llvm")})
        T.evaluate(0)

    @T.prim_func
    def g():
        T.evaluate(0)

    target = pleat.target.Target("cuda", host=host)
    assert pleat.ir.structural_equal(f, g.with_attr("target", target))


@pytest.mark.skipif("PLEAT_TVM_TESTS" not in os.environ, reason="needs a checkout of TVM")
def test_counts():
    result = subprocess.run([sys.executable, count_tvm_tests.__file__, os.environ["PLEAT_TVM_TESTS"]],
                            capture_output=True, text=True)
    assert re.search(r"^[1-9]\d* of \d+ tests hold$", result.stdout, re.M), result.stderr
