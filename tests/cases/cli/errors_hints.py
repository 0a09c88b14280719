# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((4, 7), "float32"), n: T.int32):
    T.hint(n)
    T.hint("first", "second")
    T.realize(A[0:4], "global")
    T.realize(n)
    T.realize(A, "global", A[0, 0] > T.float32(0))
