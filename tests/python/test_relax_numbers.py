# SPDX-License-Identifier: Apache-2.0
"""Numbers and shapes as values of graph functions: arguments of tensor programs, parameters, results;
and programs that change their arguments in place."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

GIVEN = """
from pleat.script import relax as R, tir as T

@R.function
def whole(x: R.Tensor((4,), "int64"), k: R.Prim(value=3)):
    return R.multiply(x, k)

@R.function
def typed(x: R.Tensor((4,), "float32"), k: R.Prim(value=T.float32(2.5))):
    return R.multiply(x, k)

@R.function
def sized(n: R.Prim("int64"), k: T.int64, x: R.Tensor(["n"], "float32"), y: R.Tensor([n, "k"], "float32")):
    return R.add(R.add(x, R.sum(y, axis=[1])), R.const(given))
"""


def test_parameters_whose_values_are_stated():
    module = pleat.script.from_source(GIVEN, {"given": pleat.nd.array(np.float32([1.5]))})
    pleat.ir.assert_structural_equal(pleat.script.from_source(module.script()), module)
    x = np.arange(4)
    assert np.array_equal(pleat.compile(module, func="whole", cache=False)(x, np.int64(3)), 3 * x)
    got = pleat.compile(module, func="typed", cache=False)(x.astype("float32"), np.float32(2.5))
    assert np.array_equal(got, 2.5 * x)
    arrays = np.ones(3, "float32"), np.ones((3, 4), "float32")
    sized = pleat.compile(module, func="sized", shapes={"n": 3, "k": 4}, quick=True, cache=False)
    assert np.array_equal(sized(*arrays), [6.5, 6.5, 6.5])
    sized = pleat.compile(module, func="sized", quick=True, cache=False)
    assert np.array_equal(sized(3, 4, *arrays), [6.5, 6.5, 6.5])
    with pytest.raises(pleat.PleatError, match="size 'k' is 5 by .* and 4 by"):
        sized(3, 5, *arrays)


SCRIPT = """
from pleat.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def scale(x: T.handle, k: T.float32, y: T.handle, n: T.int64):
        m = T.int64()
        A = T.match_buffer(x, (m, 3))
        B = T.match_buffer(y, (m, 3))
        for i, j in T.grid(m, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * k + T.cast(n, "float32")

    @T.prim_func
    def grow(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4, 3), "float32")):
        for i, j in T.grid(3, 3):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + A[vi + 1, vj]
        for i, j in T.grid(4, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0

    @R.function
    def scaled(x: R.Tensor(("n", 3), "float32"), s: R.Prim("float32"), i: R.Prim("int64")):
        n = T.int64()
        cls = Module
        a = R.call_tir(cls.scale, (x, s), R.Tensor((n, 3), "float32"), tir_vars=R.shape([n * 2]))
        b = R.call_tir(cls.scale, (x, R.prim_value(T.float32(2.5))), R.Tensor((n, 3), "float32"),
                       tir_vars=(i,))
        return R.add(a, b)

    @R.function
    def in_place(x: R.Tensor((4, 3), "float32")):
        cls = Module
        y = R.negative(x)
        r = R.call_tir_inplace(cls.grow, (y,), inplace_indices=[0, -1],
                               out_sinfo=[R.Tensor((4, 3), "float32"), R.Tensor((4, 3), "float32")])
        return r, y

    @R.function
    def shapes(x: R.Tensor(("n", 3), "float32"), s: R.Shape(["k", 2])):
        n, k = T.int64(), T.int64()
        a = R.concat((x, x), axis=0)
        t = R.shape_to_tensor(R.shape_of(a))
        z = R.reshape(R.reshape(a, R.shape([3, n * 2])), R.tensor_to_shape(t))
        h = R.assert_op(R.const(True, "bool"), x, format="x")
        with R.dataflow():
            f = R.full(R.shape([k, 2]), R.prim_value(T.float32(1.5)))
            R.output(f)
        return t, z, f, R.prim_value(n + 3), R.size(x), R.shape_of(f), R.add(x, R.prim_value(T.float32(n)))

    @R.function
    def unknown(x: R.Tensor("float32", ndim=2), y: R.Tensor("float32")):
        m = T.int64()
        z = R.match_cast(y, R.Tensor((m, 3), "float32"))
        return R.nn.relu(x), R.reshape(z, R.shape([m * 3]))

    @R.function
    def pieces(x: R.Tensor((5, 7), "float32")):
        return R.split(x, [2, 3], axis=1), R.topk(x, 2, ret_type="values", axis=1), R.split(x, 7, axis=1)[1]

    @R.function(private=True)
    def filled(x: R.Tensor(("n", 3), "float32"), f: R.Prim(value="factor"), s: R.Shape(["rows", 3])):
        factor = T.int64()
        rows = T.int64()
        return R.concat((x, R.full(R.shape([rows, 3]), R.prim_value(T.Cast("float32", factor)))), axis=0)

    @R.function
    def rest(x: R.Tensor((5, 2), "float32"), k: R.Prim(value="k")):
        k = T.int64()
        return R.strided_slice(x, [0], [k + 0], [5])

    @R.function
    def tail(x: R.Tensor((5, 2), "float32")):
        k = T.int64()
        return R.strided_slice(x, [0], [k], [5])

    @R.function
    def given(x: R.Tensor(("n", 3), "float32"), i: R.Prim(value="k"), s: R.Shape(["m", 2])):
        n = T.int64()
        k = T.int64()
        m = T.int64()
        cls = Module
        a = cls.filled(x, R.prim_value(n * 2), R.shape([n, 3]))
        return cls.filled(a, i, R.shape([1, 3])), R.full(R.shape([m, k]), R.prim_value(T.float32(1.5))), s
"""


def run(function, *arrays, **options):
    module = pleat.script.from_source(SCRIPT)
    model = pleat.compile(module, func=function, quick=True, **options)
    result = model(*arrays)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def numbers(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("n", [1, 5])
def test_numbers_for_parameters_of_programs(n):
    x, s = numbers(n, 3), np.float32(3)
    (y,) = run("scaled", x, s, np.int64(11))
    np.testing.assert_allclose(y, x * s + 2 * n + x * 2.5 + 11, rtol=1e-5)


def test_programs_that_change_their_arguments():
    x = numbers(4, 3)
    grown = -x
    grown[:3] += grown[1:].copy()
    expected = -x
    for i in range(3):
        expected[i] = expected[i] + expected[i + 1]
    first, second, before = run("in_place", x)
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    np.testing.assert_allclose(first, grown, rtol=1e-6)
    np.testing.assert_allclose(second, expected * 2, rtol=1e-6)
    np.testing.assert_array_equal(before, -x)


def test_shapes_are_values():
    x = numbers(5, 3)
    t, z, f, number, size, shape, more = run("shapes", x, shapes={"k": 7})
    np.testing.assert_array_equal(t, [10, 3])
    np.testing.assert_array_equal(z, np.concatenate([x, x]))
    np.testing.assert_array_equal(f, np.full((7, 2), 1.5, "float32"))
    assert (number, size) == (8, 15)
    np.testing.assert_array_equal(shape, [7, 2])
    np.testing.assert_allclose(more, x + 5, rtol=1e-6)


def test_parameters_that_are_sizes():
    x = numbers(5, 3)
    module = pleat.script.from_source(SCRIPT[:SCRIPT.index("    @R.function\n    def unknown")] +
                                      SCRIPT[SCRIPT.index("    @R.function(private=True)"):])
    legal = pleat.relax.transform.LegalizeOps()(module)
    assert 's: R.Shape(["m", 2])' in legal.script()
    for form in (module, legal):
        model = pleat.compile(form, func="given", quick=True, cache=False)
        for k, m in ((3, 7), (4, 7), (3, 1), (3, 7)):
            y, f, s = model(x, k, (m, 2))
            np.testing.assert_array_equal(y, np.concatenate([x, np.full((5, 3), 10), np.full((1, 3), k)]))
            np.testing.assert_array_equal(f, np.full((m, k), 1.5, "float32"))
            np.testing.assert_array_equal(s, [m, 2])
    with pytest.raises(pleat.PleatError, match="element 1 of 's' is 2 and not 3"):
        model(x, 3, (7, 3))
    with pytest.raises(pleat.PleatError, match="size 'k' would be -3"):
        model(x, -3, (7, 2))
    fixed = pleat.compile(module, func="given", shapes={"n": 5, "k": 3}, quick=True, cache=False)
    np.testing.assert_array_equal(fixed(x, (4, 2))[1], np.full((4, 3), 1.5, "float32"))


def test_parameters_and_sizes_of_one_name():
    x = numbers(5, 2)
    np.testing.assert_array_equal(run("rest", x, 3)[0], x[3:])
    np.testing.assert_array_equal(run("rest", x, -2)[0], x[-2:])  # a size may be negative where it is no extent
    assert "def rest(x: R.Tensor((5, 2), dtype=\"float32\"), k: R.Prim(value=\"k\"))" in \
        pleat.script.from_source(SCRIPT)["rest"].script()


def test_sizes_that_only_operators_use():
    x = numbers(5, 2)
    np.testing.assert_array_equal(run("tail", x, shapes={"k": 3})[0], x[3:])


def test_operators_with_several_results():
    x = numbers(5, 7)
    *parts, largest, column = run("pieces", x)
    for part, expected in zip(parts, np.split(x, [2, 3], axis=1), strict=True):
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(largest, -np.sort(-x, axis=1)[:, :2])
    np.testing.assert_array_equal(column, x[:, 1:2])


def test_shapes_that_are_not_stated():
    x, y = numbers(5, 2), numbers(4, 3)
    for sizes in ({"y": (4, 3)}, {"y": (4, 3), "m": 4}, {"y": (4, 3), "x.0": 5, "x.1": 2}):
        found, flat = run("unknown", x, y, shapes=sizes)
        np.testing.assert_array_equal(found, np.maximum(x, 0))
        np.testing.assert_array_equal(flat, y.reshape(-1))
    with pytest.raises(pleat.PleatError, match="stated to be|fit"):
        run("unknown", x, y, shapes={"y": (4, 3), "m": 7})
