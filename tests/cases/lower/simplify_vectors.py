# Vectors that hold one value become broadcasts, and indices of the pieces are simplified.
# RUN: pleat opt %s --pass vectorize_loops
# RUN: pleat opt %s --pass vectorize_loops,simplify_vectors --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5,), "float32"), B: T.Buffer((65,), "float32")):
    for j in range(5):
        for i in T.vectorized(13):
            B[j * 13 + i] = A[(j * 13 + i) // 13] + T.float32(0)
