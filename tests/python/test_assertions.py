# SPDX-License-Identifier: Apache-2.0
"""Assertions of tensor programs are checked by compiled code, and what follows a failed one does not run,
since passes rely on its condition."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import from_source, tir as T  # noqa: E402


@T.prim_func
def fill(A: T.Buffer((16,), "int32"), n: T.int32):
    assert n <= 16, "n is too large"
    for i in range(n):
        A[i] = i + 1


@T.prim_func
def parallel(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
    assert 0 <= n, ("ValueError", ["n is ", "negative"])
    T.evaluate(0)
    assert n <= 16, ("TypeError", ["n is ", n])
    for i in T.parallel(16):
        A[i] = 0
        for j in range(n):
            A[i] = A[i] + j
    for i in T.parallel(16):
        B[i] = A[15 - i]


@T.prim_func
def inside(A: T.Buffer((16,), "int32"), at: T.Buffer((16,), "int32")):
    for i in range(16):
        assert at[i] >= 0 and at[i] < 16, ("IndexError", ["bad place"])
        A[at[i]] = i
        at[i] = -1
    assert at[0] == -1
    assert 1 < 2, "always"


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_failed_assertions(target):
    run = pleat.build(pleat.IRModule({"fill": fill, "parallel": parallel, "inside": inside}), target=target,
                      cache=False)
    a, b = np.zeros(16, "int32"), np.zeros(16, "int32")
    run["fill"](a, 16)
    assert a.tolist() == list(range(1, 17))
    for n in (17, 1 << 30):
        with pytest.raises(pleat.PleatError, match="error: assertion failed: n is too large"):
            run["fill"](a, n)
    run["parallel"](a, b, 3)
    assert (a == 3).all() and (b == 3).all()
    for n, kind, text in ((-1, ValueError, "ValueError: n is negative"), (17, TypeError, "TypeError: n is n")):
        with pytest.raises(kind, match=text) as caught:
            run["parallel"](a, b, n)
        assert isinstance(caught.value, pleat.PleatError)
    assert (a == 3).all() and (b == 3).all()  # nothing was computed
    at = np.arange(16, dtype="int32")[::-1].copy()
    run["inside"](a, at)
    assert a.tolist() == list(range(16))[::-1]
    with pytest.raises(IndexError, match="bad place"):
        run["inside"](a, np.array([0, 16] + [3] * 14, "int32"))


def test_they_are_proofs_of_bounds():
    for flag in (False, True):
        run = pleat.build(fill, cache=False, unchecked=flag)
        a = np.zeros(16, "int32")
        run(a, 5)
        assert a[:6].tolist() == [1, 2, 3, 4, 5, 0]


def test_many_assertions():
    lines = "".join(f"    assert n != {i}, 'is {i}'\n" for i in range(3, 400))
    function = from_source(f"@T.prim_func\ndef f(A: T.Buffer((1,), 'int32'), n: T.int32):\n{lines}    A[0] = n\n")
    run, a = pleat.build(function, cache=False), np.zeros(1, "int32")
    run(a, 1000)
    assert a[0] == 1000
    with pytest.raises(pleat.PleatError, match="assertion failed: is 399"):
        run(a, 399)


@T.prim_func
def sole(x: T.int32):
    assert x > 0, ("ValueError", ["x is not positive"])


@T.prim_func
def one_access(A: T.Buffer((4,), "int32"), at: T.Buffer((1,), "int32"), x: T.int32):
    if x == 0:
        if A[3] == 0:
            A[at[0]] = 1


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_programs_that_are_one_condition(target):
    """The condition must not move out of the memory in which faults are noted."""
    run = pleat.build(sole, target=target, cache=False)
    run(1)
    with pytest.raises(ValueError, match="x is not positive"):
        run(0)
    with pytest.raises(pleat.PleatError, match="x is not positive"):
        pleat.compile(sole, target=target, cache=False)(0)
    run, a = pleat.build(one_access, target=target, cache=False), np.zeros(4, "int32")
    for x in (1, 0):
        run(a, np.array([2 + x * 100], "int32"), x)
    assert a.tolist() == [0, 0, 1, 0]
    with pytest.raises(pleat.PleatError, match="index 100 of axis 0 is outside of"):
        run(a, np.array([100], "int32"), 0)
