# Only the last axis of a buffer with axis separators becomes a vector. A vector index into a buffer
# of vectors is refused.
# RUN: pleat opt %s --func last --pass convert_blocks,flatten_buffers,simplify_flat,vectorize_loops,simplify_vectors
# RUN: pleat verify %s --func last | sed 's/; at most.*//'
# RUN: pleat verify %s --func first | sed 's/; at most.*//'
# RUN 1: printf 'from pleat.script import tir as T\n@T.prim_func\ndef f(A: T.Buffer((16,), "float32x4")):\n    A[T.Ramp(0, 1, 4)] = A[T.Ramp(4, 1, 4)]\n' | pleat opt -
from pleat.script import tir as T


@T.prim_func
def last(A: T.Buffer((5, 3, 8), "float32", axis_separators=[1]),
         C: T.Buffer((5, 3, 16), "float32", axis_separators=[2])):
    for i, j in T.grid(5, 3):
        for k in T.vectorized(8):
            C[i, j, k * 2] = A[i, j, k] + A[i, j, 7 - k]
    for i, j in T.grid(5, 3):
        for k in T.vectorized(8):
            C[i, j, k * 2 + 1] = A[i, j, k]


@T.prim_func
def first(A: T.Buffer((4, 3), "float32", axis_separators=[1]),
          C: T.Buffer((4, 3), "float32", axis_separators=[1])):
    for j in range(3):
        for i in T.vectorized(4):
            C[i, j] = A[3 - i, j]
