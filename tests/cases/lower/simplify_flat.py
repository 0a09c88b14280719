# The sum of a flat index is simplified: nested tiles count on in one sum.
# RUN: pleat opt %s --pass flatten_buffers,simplify_flat --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((6, 5, 7), "float32"), B: T.Buffer((30, 7), "float32")):
    for i, j, k in T.grid(30, 1, 7):
        B[i, k + j] = A[i // 5, i % 5, k * 1 + 0 * j]
