# SPDX-License-Identifier: Apache-2.0
"""R.emit_te in graph functions: calls of tensor programs that functions of te.Tensors make."""
from typing import TypeVar

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import relax, te, topi  # noqa: E402
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402


ROWS = TypeVar("ROWS")


def numbers(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype("float32")


def scaled(a, by):
    return te.compute(a.shape, lambda *at: a(*at) * te.const(by, "float32"), name="scaled")


def row(a, i):
    return te.compute([a.shape[1]], lambda j: a[i, j], name="row")


def plus_and_minus(pair, *, sign=1.0):
    a, b = pair
    return [te.compute(a.shape, lambda i, j: a[i, j] + b[i, j] * te.const(s, "float32"))
            for s in (sign, -sign)]


@I.ir_module
class Module:
    @T.prim_func
    def multiply1(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            with T.block("B"):
                vi = T.axis.spatial(2, i)
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor((7, 5), "float32")) -> R.Tensor((7, 5), "float32"):
        a = R.emit_te(topi.add, x, x)
        b = R.emit_te(topi.multiply, a, a)
        c = R.emit_te(topi.multiply, b, x, primfunc_name_hint="multiply",
                      primfunc_attrs={"kept": 3})
        d = R.nn.relu(R.add(c, x))
        return R.emit_te(scaled, d, by=2.5)

    @R.function
    def pairs(x: R.Tensor(("n", 5), "float32"), y: R.Tensor(("n", 5), "float32")):
        both = R.emit_te(plus_and_minus, (x, y), sign=2.0)
        return R.multiply(both[0], both[1])

    @R.function
    def rows(x: R.Tensor(("n", 5), "float32"), i: R.Prim("int64")):
        n = T.int64()
        first = R.emit_te(row, x, i)
        more = R.emit_te(lambda a, by: te.compute(a.shape, lambda k: a[k] * by.astype("float32")), first, n)
        return R.add(first, R.emit_te(lambda a: te.compute(a.shape, lambda k: a[k] + 1.0), more))


def test_programs_have_names_of_their_own_and_print():
    assert set(Module.keys()) == {"multiply1", "add", "multiply", "multiply2", "scaled", "main", "pairs",
                                  "plus_and_minus", "rows", "row", "te_func", "te_func1"}
    assert Module["multiply2"].attrs["kept"] == 3
    pleat.ir.assert_structural_equal(pleat.script.from_source(Module.script()), Module)


def test_it_is_what_the_block_builder_makes():
    x = relax.Var("x", R.Tensor((10, 20), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit_te(topi.add, x, x, primfunc_attrs={"kept": True})
        bb.emit_func_output(bb.emit_te(topi.nn.relu, y))

    @I.ir_module
    class Same:
        @R.function
        def main(x: R.Tensor((10, 20), "float32")):
            y = R.emit_te(topi.add, x, x, primfunc_attrs={"kept": True})
            z = R.emit_te(topi.nn.relu, y)
            return z
    pleat.ir.assert_structural_equal(bb.get(), Same)


def test_the_block_builder_takes_numbers():
    x, i = relax.Var("x", R.Tensor((7, 5), "float32")), relax.Var("i", R.Prim("int64"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, i]):
        bb.emit_func_output(bb.emit_te(row, x, i))
    data = numbers(7, 5)
    assert np.array_equal(pleat.compile(bb.get(), cache=False)(data, np.int64(4)), data[4])


def test_runs_give_what_numpy_gives():
    x, y = numbers(7, 5), numbers(7, 5)[::-1].copy()
    want = 2.5 * np.maximum((2 * x) ** 2 * x + x, 0)
    assert np.allclose(pleat.compile(Module, func="main", cache=False)(x), want, rtol=1e-5)
    got = pleat.compile(Module, func="pairs", cache=False)(x, y)
    assert np.allclose(got, (x + 2 * y) * (x - 2 * y), atol=1e-5)
    got = pleat.compile(Module, func="rows", cache=False)(x, np.int64(3))
    assert np.allclose(got, x[3] + x[3] * 7 + 1, atol=1e-5)
    assert pleat.verify(Module, func="main")


def test_programs_are_fused_with_operators():
    assert pleat.plan(Module, func="main")["kernels"] == 1


def test_constants_and_sizes_that_are_used_again():
    @I.ir_module
    class Square:
        @R.function
        def main(x: R.Tensor((ROWS, "ROWS"), "float32")):
            ROWS = T.int64()
            a = R.emit_te(topi.add, x, R.const(1, "float32"))
            b = R.emit_te(topi.multiply, a, R.const([[2.0]], "float32"))
            return R.add(b, R.emit_te(topi.full, [ROWS, ROWS], "float32", 4.0))
    x = numbers(3, 3)
    got = pleat.compile(Square, cache=False)(x)
    assert np.allclose(got, (x + 1) * 2 + 4, atol=1e-5)


def test_a_single_function():
    @R.function
    def single(x: R.Tensor((3, 4), "float32")):
        y = R.emit_te(topi.nn.relu, x)
        return y
    text = single.script()
    assert "R.call_tir(" in text


def test_numbers_that_a_type_states():
    """A number without a type is int64, as where the function is compiled."""
    text = pleat.script.from_source(
        "from pleat.script import relax as R\n@R.function\ndef f(x: R.Tensor((2, 3), 'float32'), "
        "i: R.Prim(value=1)):\n    y = R.emit_te(row, x, i)\n    return y\n", {"row": row}).script()
    assert "R.call_tir(" in text and "T.int64" in text


def refused(text, **names):
    with pytest.raises(pleat.PleatError) as error:
        pleat.script.from_source(
            "from pleat.script import relax as R, tir as T\n@R.function\ndef f(x: R.Tensor((2, 3), 'float32'), "
            f"o: R.Object, u: R.Tensor(ndim=2)):\n    y = {text}\n    return y\n", {"topi": topi, **names})
    return str(error.value)


def test_mistakes_are_reported_where_they_are():
    assert "the type of 'u' is not known here" in refused("R.emit_te(topi.nn.relu, u)")
    assert "the type of 'o' is not known here" in refused("R.emit_te(topi.nn.relu, o)")
    assert "ZeroDivisionError" in refused("R.emit_te(f, x)", f=lambda x: 1 / 0)
    assert "takes names of tensors" in refused("R.emit_te(topi.nn.relu, R.add(x, x))")
    assert "name 'missing' is not defined" in refused("R.emit_te(missing, x)")
    assert "4:33: error" in refused("R.emit_te(topi.nn.relu, u)")
    assert "there is no function" not in refused("R.emit_te(topi.nn.relu, u)")
