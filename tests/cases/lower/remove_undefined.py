# A store of T.undef, or of a value computed from it, is left out. T.undef decides nothing else.
# RUN: pleat opt %s --func f --pass remove_undefined --verify-each | sed -n "/def f/,/^$/p"
# RUN 1: pleat opt %s --func g --pass remove_undefined
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    for i in range(7):
        A[i] = T.undef(dtype="int32")
    for i in range(7):
        B[i] = A[i] + T.undef(dtype="int32") * 2
        A[i] = i
        x: T.int32 = T.undef(dtype="int32") + i
        A[i] = x * 2


@T.prim_func
def g(A: T.Buffer((7,), "int32")):
    A[T.undef(dtype="int32")] = 1
    if T.undef(dtype="int32") > 0:
        A[1] = 2
    A[2] = A[T.undef(dtype="int32")]
    y: T.int32 = T.undef(dtype="int32")
    A[y] = 3
