# T.assume is left out, with what is then empty.
# RUN: pleat opt %s --pass remove_assumptions
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((7,), "float32"), n: T.int32):
    T.evaluate(T.assume(n < 7))
    for i in range(7):
        T.evaluate(T.assume(n <= i or A[i] == T.float32(0)))
    for i in range(7):
        if i < n:
            T.evaluate(T.assume(A[i] > T.float32(0)))
        A[i] = A[i] + T.float32(1)
