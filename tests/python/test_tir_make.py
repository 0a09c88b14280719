# SPDX-License-Identifier: Apache-2.0
"""Programs made of nodes, and rewritten: constructors with TVM's arguments, operators, substitution,
ir_transform; programs that are not well formed are refused; all nodes of the text cases are made again."""
import pathlib

import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import ir, tir  # noqa: E402
from pleat.script import from_source, ir as I, tir as T  # noqa: E402
from pleat.tir import nodes, op, stmt_functor  # noqa: E402
from pleat.tir.node_table import make_module  # noqa: E402

M, N = 5, 7


@T.prim_func
def scale(A: T.Buffer((M, N), "float32"), B: T.Buffer((M, N), "float32")):
    for i, j in T.grid(M, N):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0


def run(function):
    a, b = np.arange(M * N, dtype="float32").reshape(M, N), np.zeros((M, N), "float32")
    pleat.build(function, cache=False)(a, b)
    return a, b


def made_scale():
    """The program above, made of nodes."""
    A, B = (tir.decl_buffer((M, N), "float32", name) for name in "AB")
    i, j, vi, vj = (tir.Var(name) for name in ("i", "j", "vi", "vj"))
    block = tir.Block([tir.IterVar(tir.Range(0, M), vi), tir.IterVar(tir.Range(0, N), vj)],
                      [tir.BufferRegion(A, [tir.Range.from_min_extent(vi, 1), tir.Range.from_min_extent(vj, 1)])],
                      [tir.BufferRegion(B, [tir.Range.from_min_extent(vi, 1), tir.Range.from_min_extent(vj, 1)])], "B",
                      tir.BufferStore(B, A[vi, vj] * 2.0, [vi, vj]))
    inner = tir.For(j, 0, N, nodes.ForKind.SERIAL, tir.BlockRealize([i, j], True, block))
    return tir.PrimFunc([A, B], tir.For(i, 0, M, nodes.ForKind.SERIAL, inner),
                        attrs={"global_symbol": "scale"})


def test_programs_are_made_of_nodes():
    made = made_scale()
    ir.assert_structural_equal(made, scale)
    assert made.__name__ == "scale"
    a, b = run(made)
    assert np.array_equal(b, a * 2)


def test_expressions():
    x, y, f = tir.Var("x"), tir.Var("y", "int64"), tir.Var("f", "float32")
    for expression, kind, dtype in [
            (x + 1, tir.Add, "int32"), (3 - y, tir.Sub, "int64"), (f / 2, tir.Div, "float32"),
            (x // 2, tir.FloorDiv, "int32"), (-f, tir.Sub, "float32"), (x % 3, tir.FloorMod, "int32"),
            (x < 3, tir.LT, "bool"), (y >= x.astype("int64"), tir.GE, "bool"),
            (x << 2, tir.Call, "int32"), (~y, tir.Call, "int64"), (1 & x, tir.Call, "int32"),
            (tir.Ramp(x, 1, 4), tir.Ramp, "int32x4"), (tir.Broadcast(f, 8), tir.Broadcast, "float32x8"),
            (tir.Ramp(x, 1, 4) < tir.Broadcast(x, 4), tir.LT, "boolx4"),
            (nodes.Select(x < 1, f, 2.0), nodes.Select, "float32"),
            (tir.Cast("float16", f), tir.Cast, "float16"),
            (tir.Call("float32", "tir.exp", [f]), tir.Call, "float32")]:
        assert type(expression) is kind and expression.dtype == expression.ty == dtype
    assert (2.5 * f).a == 2.5 and (2.5 * f).a.dtype == "float32" and (y + 1).b.dtype == "int64"
    for expression, dtype in [(x + y, "int64"), (y * x, "int64"), (f - x, "float32"),
                              (tir.Var("u", "uint32") + x, "int32"), (x + 1.5, "float32"),
                              (tir.Var("h", "float16") * f, "float32"), (x < f, "bool")]:
        assert expression.dtype == dtype and expression.a.dtype == expression.b.dtype
    assert (f * nodes.const(3)).b.value == 3.0
    with pytest.raises(TypeError, match="Add of int32 and int64: cast one of them"):
        tir.Add(x, y)
    with pytest.raises(TypeError, match="/ on integers is ambiguous"):
        x / 2
    with pytest.raises(TypeError, match="known only when the program runs"):
        bool(x < y.astype("int32"))
    with pytest.raises(TypeError, match="For takes the arguments loop_var, min"):
        tir.For(x, 0)
    with pytest.raises(TypeError, match="takes the arguments"):
        tir.Evaluate(value=1, other=2)


def test_functions_of_expressions():
    """Each function beside NumPy's value, in a program that runs."""
    A, B = (tir.decl_buffer(n, "int32", name) for n, name in ((6, "A"), (84, "B")))
    X, Y = (tir.decl_buffer(n, "float32", name) for n, name in ((6, "X"), (24, "Y")))
    i = tir.Var("i", "int32")
    a, x = A[i], X[i]
    integers = [op.add(a, 1), op.subtract(3, a), op.multiply(a, a), op.ceildiv(a, 4), op.ceildiv(a + 9, 4),
                op.bitwise_and(a, 6), op.bitwise_or(a, 6), op.bitwise_xor(a, 6), op.bitwise_not(a),
                op.shift_left(a, 2), op.shift_right(a, 1), op.reinterpret("int32", x),
                op.min(a, 5), op.floormod(a, 3)]
    floats = [op.pow(x, 2.0), op.min(x, op.infinity("float32")),
              op.reinterpret("float32", op.reinterpret("int32", x)), op.add(x, 0.5)]
    stores = [tir.BufferStore(B, e, [i + 6 * k]) for k, e in enumerate(integers)]
    stores += [tir.BufferStore(Y, e, [i + 6 * k]) for k, e in enumerate(floats)]
    f = tir.PrimFunc([A, X, B, Y], tir.For(i, 0, 6, tir.ForKind.SERIAL, tir.SeqStmt(stores)))
    va, vx = np.array([-9, -1, 1, 5, 8, 1000], np.int32), np.linspace(-3, 4, 6, dtype=np.float32)
    vb, vy = np.zeros(84, np.int32), np.zeros(24, np.float32)
    pleat.build(f, cache=False)(va, vx, vb, vy)
    expected = [va + 1, 3 - va, va * va, -(-va // 4), -(-(va + 9) // 4), va & 6, va | 6, va ^ 6, ~va,
                va << 2, va >> 1, vx.view(np.int32), np.minimum(va, 5), va % 3]
    np.testing.assert_array_equal(vb, np.concatenate(expected))
    np.testing.assert_allclose(vy, np.concatenate([vx**2, vx, vx, vx + 0.5]), rtol=1e-6)
    made = [op.address_of(a), op.clz(a), op.ldexp(x, 3)]  # no target runs the last two
    assert [e.dtype for e in made] == ["handle", "int32", "float32"]
    with pytest.raises(TypeError, match="expected an element of a buffer"):
        op.address_of(i)
    with pytest.raises(TypeError, match="int32 has no infinity"):
        op.infinity("int32")


@pytest.mark.parametrize("text", [
    "anylist_getitem(h, 0)", "anylist_setitem_call_packed(h, 0, 'f', 1)", "dp4a(x, x, x)",
    "end_profile_intrinsic(3)", "filter(x, x > 2)", "handle_add_byte_offset(h, 8)",
    "ignore_loop_partition(x > 2)", "q_multiply_shift(x, x, 31, 2)", "selector(x, x > 2)", "thread_return()",
    "tvm_stack_alloca('shape', 4)", "tvm_thread_invariant(x > 1)",
    "tvm_warp_shuffle_down(tvm_warp_activemask(), f, 1, 32, 32)",
    "masked_load('float32x4', B, Ramp(0, 1, 4), Broadcast(x > 1, 4))",
    "masked_store(B, Broadcast(f, 4), Ramp(0, 1, 4), Broadcast(x > 1, 4))"])
def test_calls_of_intrinsics(text):
    x, f, h, b = tir.Var("x", "int32"), tir.Var("f", "float32"), tir.Var("h", "handle"), tir.Var("b", "handle")
    buffer = tir.decl_buffer((16,), "float32", name="B")
    call = eval(text, {**vars(tir.op), "Ramp": tir.Ramp, "Broadcast": tir.Broadcast,
                       "x": x, "f": f, "h": h, "B": buffer})
    function = tir.PrimFunc([x, f, h, b], tir.Evaluate(call), buffer_map={b: buffer})
    again = function.body.value  # as the library reads it
    assert (again.dtype, str(again)) == (call.dtype, str(call))


def test_vectors_and_scalars():
    A, k = tir.decl_buffer(16, "float32", "A"), tir.Var("k", "int32")
    load = A[tir.Ramp(0, 1, 4)]
    assert load.dtype == "float32x4"
    f = tir.PrimFunc([A, k], tir.SeqStmt([
        tir.BufferStore(A, load + tir.Broadcast(tir.const(1.0), 4), [tir.Ramp(4, 1, 4)]),
        tir.IfThenElse(k > 0, tir.BufferStore(A, 7.0, [k]))]))
    assert "A[4:8] = A[0:4] + T.Broadcast(T.float32(1.0), 4)" in f.script()
    lanes = tir.vscale() * 4
    g = tir.PrimFunc([A, k], tir.BufferStore(A, tir.Broadcast(1.0, lanes), [tir.Ramp(k, 1, lanes)]))
    assert "A[k:k + T.vscale() * 4] = T.Broadcast(T.float32(1.0), T.vscale() * 4)" in g.script()
    assert str(pleat.arith.Analyzer().simplify(tir.Ramp(k, 1, lanes) + tir.Ramp(k, 2, lanes))) == \
        "T.Ramp(k * 2, 3, T.vscale() * 4)"
    assert "global_symbol" not in f.attrs and f.attrs["private"]
    assert f.with_attr("global_symbol", "main").attrs["global_symbol"] == "main"


def test_constants():
    B, table = tir.decl_buffer((2, 3), "int8", "B"), tir.Var("table", "handle")
    C = tir.decl_buffer((2, 3), "int8", "C", data=table)
    i = tir.Var("i")
    f = tir.PrimFunc([B], tir.AllocateConst(table, "int8", (2, 3), range(-3, 3), tir.DeclBuffer(
        C, tir.For(i, 0, 3, 0, tir.BufferStore(B, C[1, i], [0, i])))))
    out = np.zeros((2, 3), "int8")
    f(out)
    assert out.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert f.body.data == list(range(-3, 3)) and f.body.extents == [2, 3]
    with pytest.raises(pleat.PleatError, match="'data' does not have 6 items"):
        f.with_body(f.body.with_fields(data=[1]))


def test_substitution():
    i = scale.body.block.body.loop_var
    loop = scale.body.block.body
    body = stmt_functor.substitute(loop.body, {i: i + 1})
    assert body is not loop.body and body.body.iter_values[0].b == 1
    assert stmt_functor.substitute(loop, {}) is loop
    assert stmt_functor.substitute(loop, lambda v: None) is loop
    n = tir.Var("n")
    A = tir.decl_buffer((n,), "float32", "A")
    store = stmt_functor.substitute(tir.BufferStore(A, 1.0, [0]), {n: 3})
    assert store.buffer.shape == [3] and store.buffer is not A


def test_rewriting():
    seen = []

    def double(node):
        seen.append(node.kind_name)
        if isinstance(node, tir.FloatImm):
            return tir.const(node.value * 2)

    changed = scale.with_body(stmt_functor.ir_transform(scale.body, None, double))
    assert {"FloatImm", "Mul", "BufferStore", "Block", "For"} <= set(seen)
    a, b = run(changed)
    assert np.array_equal(b, a * 4)
    parallel = stmt_functor.ir_transform(
        scale.body, None, lambda loop: loop.with_fields(kind=nodes.ForKind.PARALLEL)
        if loop.loop_var.name == "i" else None, ["tir.For"])
    assert "T.parallel(5)" in scale.with_body(parallel).script()
    stopped = stmt_functor.ir_transform(
        scale.body, lambda node: tir.Evaluate(0) if isinstance(node, tir.For) else None, None)
    assert "T.evaluate(0)" in scale.with_body(stopped).script()


def test_types_follow_new_operands():
    x = tir.Var("x", "int64")
    assert (tir.Var("i") + 1).with_fields(a=x, b=tir.const(1, "int64")).dtype == "int64"
    with pytest.raises(TypeError, match="Add of int64 and int32"):
        (tir.Var("i") + 1).with_fields(a=x)


def refused(why, params, body, **options):
    with pytest.raises(pleat.PleatError, match=why):
        tir.PrimFunc(params, body, **options)


def test_programs_that_are_not_well_formed_are_refused():
    A, x = tir.decl_buffer((4,), "int32", "A"), tir.Var("x")
    refused("'x' is used|x.* is not defined|not defined", [A], tir.BufferStore(A, x, [0]))
    refused("has 2 items, and the buffer 1 axes", [A], tir.BufferStore(A, 1, [0, 0]))
    refused("buffer 'A' is used where it is not declared", [], tir.BufferStore(A, 1, [0]))
    refused("stored|type", [A], tir.BufferStore(A, 1.5, [0]))
    refused("is not an operation", [A], tir.Evaluate(tir.Call("int32", "tir.no_such_call", [])))
    refused("expected a statement", [A], tir.SeqStmt([tir.const(1)]))
    refused("contradicts 'kind'", [A],
            tir.For(x, 0, 4, nodes.ForKind.THREAD_BINDING, tir.BufferStore(A, 1, [x])))
    refused("not a variable", [tir.const(1)], tir.Evaluate(0))
    block = tir.Block([tir.IterVar(tir.Range(0, 4), x)], [], [], "b", tir.BufferStore(A, 1, [x]))
    i = tir.Var("i")
    refused("domain|proved", [A], tir.For(i, 0, 5, 0, tir.BlockRealize([i], True, block)))


def test_constants_are_folded_and_captured():
    two, three = tir.const(2, "int64"), tir.const(3, "int64")
    assert [x.value for x in (two * three, two - three, -7 + two, three // two, two % three)] == \
        [6, -1, -5, 1, 2]
    assert (two * three).dtype == "int64"
    for kept in (tir.const(2**31 - 1) + 1, two // 0, tir.const(1.5) * 2, two * tir.Var("n", "int64")):
        assert not isinstance(kept, tir.IntImm)
    big = tir.const(2**31, "int64")

    @T.prim_func
    def func(A: T.Buffer((two * three,), "int8")):
        for i in range(three):
            A[i + two] = T.Cast("int8", i // big + 2**2)
    ir.assert_structural_equal(func, from_source("""from tvm.script import tir as T

@T.prim_func
def func(A: T.Buffer((T.int64(6),), "int8")):
    for i in range(T.int64(3)):
        A[i + T.int64(2)] = T.Cast("int8", i // T.int64(2147483648) + T.int64(4))
"""))


FILES = sorted((ROOT / "tests" / "cases" / "script").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_nodes_are_made_again(path):
    try:
        module = from_source(pathlib.Path(path).read_text())
    except pleat.PleatError:
        pytest.skip("a case of wrong text")
    functions = dict(module.items()) if isinstance(module, pleat.IRModule) else \
        {module.__name__: module}
    functions = {name: function for name, function in functions.items()
                 if isinstance(function, tir.PrimFunc)}
    if not functions:
        pytest.skip("a case of graph functions")
    originals = {name: function.node for name, function in functions.items()}
    rebuilt = {name: node.with_fields(body=stmt_functor.ir_transform(
        node.body, None, lambda part: None if isinstance(part, tir.Var) else part.with_fields()))
        for name, node in originals.items()}
    for table in (originals, rebuilt):
        made = pleat.IRModule(handle=make_module(table))
        for name, function in functions.items():
            ir.assert_structural_equal(made[name], function)


def test_regions_are_found():
    """A block that states no regions gets those of its accesses, as in a script."""
    A, B, C = (tir.decl_buffer((M, N), "float32", name) for name in "ABC")
    i, j, vi, vj = (tir.Var(name) for name in ("i", "j", "vi", "vj"))
    block = tir.Block([tir.IterVar(tir.Range(0, M), vi), tir.IterVar(tir.Range(0, N), vj)], [], [],
                      "B", tir.BufferStore(B, A[vi, vj] * C[vi, 0], [vi, vj]))
    inner = tir.For(j, 0, N, nodes.ForKind.SERIAL, tir.BlockRealize([i, j], True, block))
    script = tir.PrimFunc([A, B, C], tir.For(i, 0, M, nodes.ForKind.SERIAL, inner)).script()
    assert "T.reads(A[vi, vj], C[vi, 0])" in script and "T.writes(B[vi, vj])" in script


def test_threads_are_attributes():
    A, tx = tir.decl_buffer((8,), "float32", name="A"), tir.Var("threadIdx.x")
    axis = tir.IterVar(tir.Range(0, 8), tx, tir.IterVar.ThreadIndex, "threadIdx.x")
    store = tir.BufferStore(A, A[tx] + 1.0, [tx])
    made = tir.PrimFunc([A], tir.AttrStmt(axis, "thread_extent", 8, store))

    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        tx = T.launch_thread("threadIdx.x", 8)
        A[tx] = A[tx] + T.float32(1)
    pleat.ir.assert_structural_equal(made.with_attr("global_symbol", "main"), main)
    read = main.body
    assert (type(read).__name__, read.attr_key, read.node.thread_tag) == \
        ("AttrStmt", "thread_extent", "threadIdx.x")
    assert read.value == 8 and read.node.dom.extent == 8

    @I.ir_module
    class Captured:
        @T.prim_func
        def twice(A: T.Buffer((8,), "float32")):
            with T.attr(axis, "thread_extent", 8):
                A[tx] = A[tx] + T.float32(1)
            with T.attr(axis, "thread_extent", 8):
                A[tx] = A[tx] * T.float32(2)

        @T.prim_func
        def main(A: T.Buffer((8,), "float32")):
            T.attr(axis, "thread_extent", 8)
            A[tx] = A[tx] + T.float32(1)

        @T.prim_func
        def pragma(A: T.Buffer((8,), "float32")):
            T.attr(axis, "pragma_x", 8)
            A[0] = T.float32(1)
    assert Captured["twice"].script().count('T.launch_thread("threadIdx.x", 8)') == 2
    pleat.ir.assert_structural_equal(Captured["main"], main)
    assert 'T.iter_var(threadIdx_x, T.Range(0, 8), "ThreadIndex", "threadIdx.x")' in Captured["pragma"].script()


def test_parameters_bring_their_buffers():
    """A function is made of the nodes of another, whose variables stand for its buffers."""
    again = tir.PrimFunc(scale.params, scale.body.block.body)
    a, b = run(again)
    assert (b == 2 * a).all()
    ir.assert_structural_equal(again, tir.PrimFunc([scale.buffer_map[p] for p in scale.params], scale.body.block.body))


def test_module_of_a_named_function():
    @T.prim_func
    def before():
        T.func_attr({"global_symbol": "main"})
        T.evaluate(0)
    assert list(pleat.IRModule.from_expr(before)) == ["main"]
