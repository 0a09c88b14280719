# Buffers of several axes become vectors along their last axis before they are flattened; along another
# axis the loop stays scalar. An extent of T.vscale() becomes one vector of scalable length, or a
# scalar loop where that is not possible.
# RUN: pleat opt %s --func axes --pass vectorize_loops --verify-each
# RUN: pleat opt %s --func axes --pass vectorize_loops,flatten_buffers --verify-each | sed -n "/def axes/,\$p"
# RUN: pleat opt %s --func scalable --pass vectorize_loops
from tvm.script import tir as T


@T.prim_func
def axes(A: T.Buffer((3, 8), "float32"), B: T.Buffer((3, 1, 8), "float32"),
         C: T.Buffer((8, 3), "float32")):
    for i in range(3):
        for j in T.vectorized(8):
            B[i, 0, j] = A[i, 7 - j] + T.Mul(T.float32(2), A[i, j])
        for j in T.vectorized(8):
            C[j, i] = A[i, j]


@T.prim_func
def scalable(A: T.Buffer((99,), "float32"), B: T.Buffer((99,), "float32"), n: T.int32):
    for j in T.vectorized(T.vscale() * 4):
        B[j] = A[j] + T.float32(1)
    for j in T.vectorized(T.vscale() * 4):
        if j < n:
            B[j] = A[j]
    for j in T.vectorized(T.vscale() * 2):
        B[0] = B[0] + A[j]
