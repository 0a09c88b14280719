# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: what they compute, their programs beside TVM's, and what is refused."""
import re

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402


def run(args, *arrays):
    """Runs the program of arguments on arrays."""
    pleat.build(te.create_prim_func(args), cache=False)(*arrays)


def numbers(*shape, dtype="float32"):
    return np.random.default_rng(5).integers(-9, 9, shape).astype(dtype)


# ---- Definitions, which TVM reads too -------------------------------------------------------------

def matmul(te, tir):
    A, B = te.placeholder((13, 7), name="A"), te.placeholder((7, 5), name="B")
    k = te.reduce_axis((0, 7), "k")
    return [A, B, te.compute((13, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


def free_sizes(te, tir):
    n, m = te.var("n"), te.var("m", "int64")
    A, x = te.placeholder((n, m), name="A"), te.placeholder((m,), name="x")
    k = te.reduce_axis((0, m), "k")
    return [A, x, te.compute((n,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")]


def several(te, tir):
    A = te.placeholder((1, 11), name="A")
    return [A, *te.compute((1, 11), lambda i, j: (A[i, j] + 1.0, A[i, j] * A[i, 10 - j]), name="XY")]


def argmax(te, tir):
    A = te.placeholder((3, 13), name="A")
    k = te.reduce_axis((0, 13), "k")
    larger = te.comm_reducer(
        lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
    index = te.compute((3, 13), lambda i, j: j, name="index")
    return [A, *te.compute((3,), lambda i: larger((index[i, k], A[i, k]), axis=k), name="T")]


def padded(te, tir):
    A = te.placeholder((5, 7), name="A")
    P = te.compute((9, 7), lambda i, j: te.if_then_else(i < 5, A[i, j], 0.0), name="P")
    r, c = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 1), "c")
    return [A, te.compute((7, 7), lambda i, j: te.max(P[i + r, j + c], axis=[r, c]), name="pool")]


def scalars(te, tir):
    A, bias = te.placeholder((2, 3, 1), "float64", name="A"), te.placeholder((), "float64", name="b")
    alpha = te.var("alpha", "float64")
    return [A, alpha, bias,
            te.compute((2, 3, 1), lambda *i: te.exp(A(*i) * alpha) + bias(), name="scaled")]


def total(te, tir):
    A = te.placeholder((3, 5), "int8", name="A")
    i, j = te.reduce_axis((0, 3), "i"), te.reduce_axis((1, 5), "j")
    return [A, te.compute((), lambda: te.sum(A[i, j].astype("int32"), axis=[i, j]), name="total")]


def no_axes(te, tir):
    a = te.placeholder((), "int32", name="a")
    b = te.compute((), lambda: a() + 1, name="b")
    return [a, b, te.compute((), lambda *i: b(*i) * a(*i), name="c")]


def free_layout(te, tir):
    k = te.reduce_axis((0, 7), "k")
    A, B = te.placeholder((3, 7), name="A"), te.placeholder((5, 7), name="B")
    return [A, B, te.compute((3, 5), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C",
                             attrs={"layout_free_placeholders": [B]})]


def least(te, tir):
    A = te.placeholder((3, 5), "int16", name="A")
    j = te.reduce_axis((0, 5), "j")
    B = te.compute((3,), lambda i: te.min(A[i, j], axis=j), name="B", attrs={"note": 3})
    return [A, B, te.compute((3,), lambda i: B[i] - B[0], name="B")]


def mixed_types(te, tir):
    A, B = te.placeholder((6,), "float16", name="A"), te.placeholder((6,), "int32", name="B")
    return [A, B, te.compute((6,), lambda i: A[i].astype("float32") * B[i] + i, name="C")]


CASES = [matmul, free_sizes, several, argmax, padded, scalars, total, no_axes, free_layout, least,
         mixed_types]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_programs_are_those_of_tvm(case):
    """Blocks, loops, names and values are equal. The regions that blocks read are found from their
    bodies, since both spell their bounds differently."""
    tvm = pytest.importorskip("tvm")
    theirs = tvm.te.create_prim_func(case(tvm.te, tvm.tirx)).script()
    theirs, ours = (pleat.script.from_source(re.sub(r" *T.reads\(.*\n", "", text)) for text in (
        theirs.replace("tirx.noalias", "tir.noalias"), te.create_prim_func(case(te, tir)).script()))
    pleat.ir.assert_structural_equal(theirs, ours)
    assert _names(theirs) == _names(ours)


def _names(function):
    found = []
    tir.stmt_functor.pre_order_visit(function.body, lambda node: found.append(
        node.name_hint if isinstance(node, tir.Block) else
        node.loop_var.name if isinstance(node, tir.For) else None))
    return [name for name in found if name]


# ---- What they compute ----------------------------------------------------------------------------

def test_a_product():
    a, b, c = numbers(13, 7), numbers(7, 5), numbers(13, 5)
    run(matmul(te, tir), a, b, c)
    assert np.array_equal(c, a @ b)


@pytest.mark.parametrize("n, m", [(1, 1), (5, 7), (1, 13), (3, 0), (0, 3)])
def test_free_sizes(n, m):
    a, x, y = numbers(n, m), numbers(m), np.full(n, 9, "float32")
    run(free_sizes(te, tir), a, x, y)
    assert np.array_equal(y, a @ x)


def test_several_outputs():
    a, x, y = numbers(1, 11), numbers(1, 11), numbers(1, 11)
    run(several(te, tir), a, x, y)
    assert np.array_equal(x, a + 1) and np.array_equal(y, a * a[:, ::-1])


def test_a_reduction_of_pairs():
    a, at, most = numbers(3, 13), np.zeros(3, "int32"), np.zeros(3, "float32")
    run(argmax(te, tir), a, at, most)
    assert np.array_equal(at, a.argmax(1)) and np.array_equal(most, a.max(1))


def test_conditions_and_windows():
    a, out = numbers(5, 7), numbers(7, 7)
    run(padded(te, tir), a, out)
    p = np.pad(a, ((0, 4), (0, 0)))
    assert np.array_equal(out, np.max([p[r:r + 7] for r in range(3)], 0))


def test_scalars_and_tensors_without_axes():
    a, out = numbers(2, 3, 1, dtype="float64"), numbers(2, 3, 1, dtype="float64")
    run(scalars(te, tir), a, 0.25, np.array(2.0), out)
    assert np.allclose(out, np.exp(a * 0.25) + 2)
    a, out = numbers(3, 5, dtype="int8"), np.zeros((), "int32")
    run(total(te, tir), a, out)
    assert out == a[:, 1:].sum(dtype="int32")


def test_tensors_without_axes():
    b, c = np.zeros((), "int32"), np.zeros((), "int32")
    run(no_axes(te, tir), np.array(6, "int32"), b, c)
    assert (b, c) == (7, 42)
    a, b, c = numbers(3, 7), numbers(5, 7), numbers(3, 5)
    run(free_layout(te, tir), a, b, c)
    assert np.array_equal(c, a @ b.T)


def test_two_tensors_of_one_name():
    a, out = numbers(3, 5, dtype="int16"), [np.zeros(3, "int16") for _ in range(2)]
    run(least(te, tir), a, *out)
    assert np.array_equal(out[0], a.min(1)) and np.array_equal(out[1], a.min(1) - a.min(1)[0])


def test_types_are_matched():
    a, b, c = numbers(6, dtype="float16"), numbers(6, dtype="int32"), np.zeros(6, "float32")
    run(mixed_types(te, tir), a, b, c)
    assert np.array_equal(c, a.astype("float32") * b + np.arange(6))


def test_elements_that_do_not_count():
    """TVM drops `where` when it makes a program."""
    A, k = te.placeholder((3, 11), name="A"), te.reduce_axis((0, 11), "k")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k, where=k < i * 4), name="B")
    a, b = numbers(3, 11), numbers(3)
    run([A, B], a, b)
    assert np.array_equal(b, [a[i, :i * 4].sum() for i in range(3)])


@pytest.mark.parametrize("begin, end", [(lambda i: 0, lambda i: i), (lambda i: i // 2, lambda i: i + 1),
                                        (lambda i: 3, lambda i: 5 - i)])
def test_ranges_of_reductions_that_depend_on_the_index(begin, end):
    n = te.var("n")
    for extent in (1, 11) if begin(0) == 3 else (1, 11, n):
        A = te.placeholder((11 if begin(0) == 3 else extent,), name="A")

        def element(i):
            k = te.reduce_axis((begin(i), end(i)), "k")
            return te.sum(A[k], axis=k)
        B = te.compute((extent,), element, name="B")
        size = 6 if extent is n else extent
        a, b = numbers(*(size if e is n else e for e in A.shape)), numbers(size)
        spans = [(int(begin(i)), int(end(i))) for i in range(size)]
        expected = [a[low:high].sum() if low < high else 0 for low, high in spans]
        run([A, B], a, b)
        assert np.array_equal(b, expected)
        s = te.create_schedule(B.op)
        s[s.cache_write(B, "local")].split(B.op.reduce_axis[0], 3)
        b[:] = 9
        pleat.build(s, [A, B], cache=False)(a, b)
        assert np.array_equal(b, expected)


def test_first_values():
    A, k = te.placeholder((3, 11), name="A"), te.reduce_axis((0, 11), "k")
    bias = te.placeholder((3,), name="bias")
    B = te.compute((3,), lambda i: te.sum(A[i, k], axis=k, init=bias[i]), name="B")
    a, bias_, b = numbers(3, 11), numbers(3), numbers(3)
    run([A, bias, B], a, bias_, b)
    assert np.array_equal(b, a.sum(1) + bias_)


def test_functions_of_any_number_of_axes():
    """As asked for in the review of RFC 39: named axes behind `*others`."""
    A, B = te.placeholder((2, 1, 5, 7), name="A"), te.placeholder((2, 1, 7, 3), name="B")
    k = te.reduce_axis((0, 7), "k")
    C = te.compute((2, 1, 5, 3), lambda *other_indices, i, j: te.sum(
        A[(*other_indices, i, k)] * B[(*other_indices, k, j)], axis=k), name="C")
    assert [axis.name for axis in C.op.axis] == ["i0", "i1", "i", "j"]
    a, b, c = numbers(2, 1, 5, 7), numbers(2, 1, 7, 3), numbers(2, 1, 5, 3)
    run([A, B, C], a, b, c)
    assert np.array_equal(c, a @ b)


def test_equality_is_an_expression():
    A, k = te.placeholder((5, 7), name="A"), te.reduce_axis((0, 7), "k")
    B = te.compute((5, 7), lambda i, j: te.if_then_else(i == j, A[i, j], te.if_then_else(
        te.any(j == 0, i != 3), 1.0, A[0, 0] == A[i, j])), name="B")
    C = te.compute((5,), lambda i: te.sum(B[i, k], axis=k, where=te.floormod(k, 2) == 0), name="C")
    a, b, c = numbers(5, 7), numbers(5, 7), numbers(5)
    run([A, B, C], a, b, c)
    i, j = np.indices((5, 7))
    expected = np.where(i == j, a, np.where((j == 0) | (i != 3), 1, a[0, 0] == a))
    assert np.array_equal(b, expected) and np.array_equal(c, expected[:, ::2].sum(1))
    i, j = B.op.axis
    assert i == i and not i == j and i != j and not i != i and i in [j, i] and {i: 3}[i] == 3
    assert tir.const(3) == 3 and tir.const(3) != 4 and not tir.const(3) != 3
    assert tir.const(3) != tir.const(3, "int64") and isinstance((i == 3).as_expression(), tir.EQ)


def test_identities_and_combinations_that_depend_on_the_index():
    A, b = te.placeholder((5, 3), name="A"), te.placeholder((5,), name="b")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((5,), lambda i: te.comm_reducer(
        lambda x, y: te.max(x, y - b[i] * 2), lambda t: b[i])(A[i, k], axis=[k]), name="C")
    assert [t.name for t in C.op.input_tensors] == ["b", "A"]
    x, y, z = numbers(5, 3), numbers(5), numbers(5)
    run([A, b, C], x, y, z)
    assert np.array_equal(z, np.maximum((x - 2 * y[:, None]).max(1), y))


def test_slices_and_calls():
    A = te.placeholder((3, 5), name="A")
    B = te.compute((3, 5), lambda i, j: A[i][j] + A(i, 0) - A[0][0] * 2 + (1 - A[i, j]) / 4)
    a, b = numbers(3, 5), numbers(3, 5)
    run([A, B], a, b)
    assert np.allclose(b, a + a[:, :1] - a[0, 0] * 2 + (1 - a) / 4)


def test_functions_of_the_c_library():
    A = te.placeholder((te.var("n"),), name="A")
    B = te.compute(A.shape, lambda i: tir.call_pure_extern("float32", "hypotf", A[i], A[0])
                   + tir.call_intrin("float32", "tir.sqrt", A[i]), name="B")
    run = pleat.build(te.create_schedule(B.op), [A, B], cache=False)
    for n in (7, 1):
        a, b = np.arange(2, n + 2, dtype="float32"), np.zeros(n, "float32")
        run(a, b)
        assert np.allclose(b, np.hypot(a, a[0]) + np.sqrt(a), rtol=1e-6)


def test_external_code():
    A = te.placeholder((4,), name="A")

    def copy_reversed(ins, outs):
        i = tir.Var("i")
        return tir.For(i, 0, 4, 0, tir.BufferStore(outs[0], ins[0][3 - i] * 2.0, [i]))
    B = te.extern((4,), [A], copy_reversed, name="B")
    C = te.compute((4,), lambda i: B[i] + 1.0, name="C")
    a, c = numbers(4), numbers(4)
    run([A, C], a, c)
    assert np.array_equal(c, a[::-1] * 2 + 1)


def test_external_code_that_gets_pointers():
    """The block states what is behind the pointers: all of the inputs is read, and all of the output is written."""
    A, B = te.placeholder((4,), name="A"), te.placeholder((3,), name="B")
    C = te.extern((5,), [A, B], lambda ins, outs: tir.call_extern(
        "", "f", ins[0].data, outs[0].access_ptr("w"), ins[1][2], ins[0][1]), name="C")
    text = te.create_prim_func([A, B, C]).script()
    assert "T.reads(B[2], A[0:4])" in text and "T.writes(C[0:5])" in text
    assert 'T.call_extern("void", "f", A.data, ' in text


def test_short_names_of_types_and_strings_as_arguments():
    A = te.placeholder((4,), "float", name="A")
    B = te.compute((4,), lambda i: A[i].astype("int"), name="B")
    assert (A.dtype, B.dtype, te.var("x", "uint").dtype) == ("float32", "int32", "uint32")
    assert tir.decl_buffer((4,), "float").dtype == tir.const(1, "float").dtype == "float32"
    assert pleat.DataType("intx4") == "int32x4" and pleat.nd.empty((2,), "float").dtype == "float32"
    assert te.min_value("int").value == -2**31
    assert tir.call_intrin("handle", "tir.f", "row_major").args[0].value == "row_major"
    assert tir.call_extern("int32", "f", "a").script() == 'T.call_extern("int32", "f", "a")'


def test_another_type_of_indices():
    """Loops, extents and sizes have it, and elements, which are made of indices here, keep theirs."""
    n, m = te.var("n"), te.var("m")
    A, J = te.placeholder((n, 5), name="A"), te.placeholder((n,), "int32", name="J")
    P = te.compute((n, 7), lambda i, j: te.if_then_else(
        tir.all(i >= 1, j < 5), A[J[i], tir.min(j, 4)] * 2.0, (i * 3 + j).astype("float32")), name="P")
    k = te.reduce_axis((0, 7), "k")
    C = te.compute((n,), lambda i: te.sum(P[i, k] * k.astype("float32"), axis=k), name="C",
                   attrs={"layout_free_placeholders": [P, A]})
    D = te.compute((n, 1), lambda i, j: tir.ProducerLoad(J, [i]) + i + m * 2, name="D")
    program = te.create_prim_func([A, J, C, D, m], index_dtype_override="int64")
    text = program.script()
    assert "for i, k in T.grid(n, T.int64(7))" in text and "n = T.int64()" in text and "m: T.int32" in text
    assert '"layout_free_buffers": [0]' in text and 'T.block_attr({"layout_free_placeholders": [P]})' in text
    pleat.ir.assert_structural_equal(program, pleat.script.from_source(text))
    for size in (0, 1, 3):
        a, j, results = numbers(size, 5), np.arange(size, dtype="int32")[::-1].copy(), []
        for dtype in (None, "int64", "int32"):
            c, d = np.full(size, 7, "float32"), np.full((size, 1), 7, "int32")
            pleat.build(te.create_prim_func([A, J, C, D, m], dtype), cache=False)(a, j, c, d, 4)
            results.append((c.tolist(), d.tolist()))
        assert results[0] == results[1] == results[2], size
        assert results[0][1] == [[int(j[i]) + i + 8] for i in range(size)]
    with pytest.raises(pleat.PleatError, match="index_dtype_override is 'int32' or 'int64', not 'uint8'"):
        te.create_prim_func([A, J, C, D, m], "uint8")


def test_tags():
    A = te.placeholder((4,), name="A")
    with te.tag_scope("elementwise"):
        B = te.compute((4,), lambda i: A[i] + 1.0)
    assert B.op.tag == "elementwise" and te.compute((4,), lambda i: B[i], tag="copy").op.tag == "copy"

    @te.tag_scope(tag="both")
    def make():
        return te.compute((4,), lambda i: A[i])
    assert make().op.tag == "both"
    with pytest.raises(ValueError, match="nested tag"), te.tag_scope("a"):
        te.compute((4,), lambda i: A[i], tag="b")


def test_what_is_refused():
    A, k = te.placeholder((3, 5), name="A"), te.reduce_axis((0, 5), "k")
    with pytest.raises(ValueError, match="expected the name of a type .*, saw 'flaot32'"):
        te.placeholder((3,), "flaot32")
    with pytest.raises(ValueError, match="takes 3 indices, the shape has 2 axes"):
        te.compute((3, 5), lambda i, j, c: A[i, j])
    with pytest.raises(pleat.PleatError, match="a reduction is the whole value of a te.compute"):
        te.compute((3,), lambda i: te.sum(A[i, k], axis=k) + 1.0)
    with pytest.raises(pleat.PleatError, match="the outputs are not the results of one reduction"):
        te.compute((3,), lambda i: (te.sum(A[i, k], axis=k), A[i, 0]))
    with pytest.raises(pleat.PleatError, match="B: the range of r depends on an axis, and has no largest one"):
        index = te.placeholder((3,), "int32")
        te.compute((3,), lambda i: te.sum(A[i, k], axis=te.reduce_axis((0, index[i]), "r")), name="B")
    with pytest.raises(pleat.PleatError, match="the range of r depends on an axis of the same reduction"):
        te.compute((3,), lambda i: te.sum(A[i, k], axis=[k, te.reduce_axis((0, k), "r")]))
    with pytest.raises(ValueError, match="A has 2 axes, 3 indices were given"):
        A[0, 1, 2]
    with pytest.raises(TypeError, match="an index of A is of type float32"):
        te.compute((3,), lambda i: A[i, A[0, 0]])
    with pytest.raises(TypeError, match="is no te.reduce_axis"):
        te.compute((3,), lambda i: te.sum(A[i, k], axis=[i]))
    with pytest.raises(TypeError, match="the axis i is no te.reduce_axis"):
        te.compute((3,), lambda i: te.sum(A[i, k], axis=i))
    with pytest.raises(TypeError, match="if_then_else chooses between two values"):
        te.compute((3,), lambda i: A[i, 0] if i > 1 else 0.0)
    with pytest.raises(TypeError, match="a te.Schedule needs the list of its arguments"):
        pleat.build(te.create_schedule(te.compute((3,), lambda i: A[i, 0]).op))
    B = te.compute((3, 5), lambda i, j: A[i, j])
    with pytest.raises(pleat.PleatError, match="the placeholder A is not among the arguments"):
        te.create_prim_func([B])
    with pytest.raises(TypeError, match="an argument is a tensor or a variable, not str"):
        te.create_prim_func(["A", B])
    with pytest.raises(TypeError, match="A has 2 axes: index it"):
        A < 1
    with pytest.raises(AttributeError, match="'hybrid': write a tensor program"):
        te.hybrid  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        te.no_such_name
    with pytest.raises(pleat.PleatError, match="out of bounds"):
        pleat.build(te.create_prim_func([A, te.compute((4, 5), lambda i, j: A[i, j])]), cache=False)


def test_saving():
    """Tensors, operations and schedules are read as they were saved; a text that was changed is refused."""
    n = te.var("n")
    A, k = te.placeholder((7, n), name="A"), te.reduce_axis((0, n), "k")
    B = te.compute((7,), lambda i: te.max(A[i, k], axis=k), name="B", attrs={"sizes": [10, 12]})
    again = pleat.ir.load_json(pleat.ir.save_json([A, B]))
    assert pleat.ir.structural_equal(te.create_prim_func(again), te.create_prim_func([A, B]))
    assert isinstance(pleat.ir.load_json(pleat.ir.save_json(B.op)), te.ComputeOp) and again[1].op.attrs == B.op.attrs
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], 4)
    s = pleat.ir.load_json(pleat.ir.save_json(s))
    lowered = pleat.lower(s, [*s.outputs[0].input_tensors, s.outputs[0].output(0)])
    assert "v_i = T.axis.spatial(7, i_0 * 4 + i_1)" in lowered.script()
    s[s.outputs[0]].transform_layout(lambda i: [i // 4, i % 4])
    with pytest.raises(TypeError, match="of type IndexMap cannot be saved"):
        pleat.ir.save_json(s)
    for text in ('{"objects": [["Popen", {}]], "root": 1}', '{"objects": [], "root": {"object": 0}}'):
        with pytest.raises(pleat.PleatError, match="not one that save_json wrote"):
            pleat.ir.load_json(text)
