# SPDX-License-Identifier: Apache-2.0
"""Values that tensor programs return are given back to callers in Python, on each target, by modules
that were loaded, and by functions of the packed convention."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import ir as I, tir as T  # noqa: E402


@I.ir_module
class Values:
    @T.prim_func
    def total(a: T.handle) -> T.int64:
        n = T.int32()
        A = T.match_buffer(a, (n,), "int64")
        s = T.alloc_buffer((1,), "int64")
        s[0] = T.int64(0)
        for i in range(n):
            s[0] = s[0] + A[i]
        return s[0]

    @T.prim_func
    def twice(x: T.float32) -> T.float32:
        T.evaluate(T.ret(x * T.float32(2)))

    @T.prim_func
    def any_above(A: T.Buffer((3, 5), "int32"), result: T.Buffer((2,), "int32"), least: T.int32) -> T.bool:
        for i, j in T.grid(3, 5):
            if A[i, j] > least:
                result[0] = i
                result[1] = j
                return T.bool(True)
        return T.bool(False)

    @T.prim_func
    def blocks(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")) -> T.int32:
        for i in range(7):
            with T.block("B"):
                vi = T.axis.spatial(7, i)
                B[vi] = A[vi] + T.float32(1)
        return 7


def check(run):
    assert run["total"](np.arange(6, dtype="int64")) == 15
    assert run["total"](np.zeros(0, "int64")) == 0
    value = run["twice"](1.25)
    assert value == 2.5 and isinstance(value, float)
    a, at = np.arange(15, dtype="int32").reshape(3, 5), np.full(2, -1, "int32")
    assert run["any_above"](a, at, 14) is False and at.tolist() == [-1, -1]
    assert run["any_above"](a, at, 7) is True and at.tolist() == [1, 3]
    b = np.zeros(7, "float32")
    assert run["blocks"](np.arange(7, dtype="float32"), b) == 7 and b.tolist() == list(range(1, 8))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_values(target, tmp_path):
    run = pleat.build(Values, target=target, cache=False)
    check(run)
    assert repr(run["twice"]) == "Function(twice: x float32 -> float32)"
    run.export_library(tmp_path / "values.pleat")
    check(pleat.load_module(tmp_path / "values.pleat"))


def test_calls_after_the_first_one():
    run = pleat.build(Values, cache=False)
    for n in (2, 3, 2):
        assert [run["total"](np.full(n, value)) for value in (5, -1, 7)] == [5 * n, -n, 7 * n]
    assert [run["twice"](value) for value in (1.5, -2.0, np.float32(4), 3)] == [3, -4, 8, 6]
    with pytest.raises(TypeError, match="takes 1 arguments"):
        run["twice"](1.5, 2.5)


def test_packed_functions():
    known = pleat.IRModule({name: Values[name] for name in ("twice", "any_above")})
    run = pleat.build(pleat.tir.transform.MakePackedAPI()(known), cache=False)
    assert run["twice"](1.25) == 2.5
    a, at = np.arange(15, dtype="int32").reshape(3, 5), np.zeros(2, "int32")
    assert run["any_above"](a, at, 7) == 1 and at.tolist() == [1, 3]
    assert run["any_above"](a, at, 99) == 0


def test_measured():
    times = pleat.build(Values, cache=False).time_evaluator("twice", number=3)(1.5)
    assert times.mean > 0


def test_a_path_without_a_value_is_refused():
    @T.prim_func
    def some(x: T.int32) -> T.int32:
        if x > 0:
            return x
    with pytest.raises(pleat.PleatError, match="may end without one"):
        pleat.build(some, cache=False)
