# Unrolled loops are written out; one that would take too many statements, or has no constant
# extent, becomes serial with a hint for the target.
# RUN: pleat opt %s --pass unroll_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((17011,), "float32"), n: T.int32):
    for i in T.unroll(2, 5):
        x: T.float32 = A[i] * T.float32(2)
        A[i + 3] = x
    for i in T.unroll(17011):
        A[i] = T.float32(1)
    for i in T.unroll(T.min(n, 13)):
        A[i] = T.float32(2)


@T.prim_func
def empty(A: T.Buffer((8,), "float32"), n: T.int32):
    for i in T.unroll(3):
        if i > n:
            B = T.decl_buffer((i - 1,), "float32")
            for j in range(i - 1):
                B[j] = A[j]
                A[j] = B[j] + T.float32(1)
