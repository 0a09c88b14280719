# RUN 1: pleat opt %s
# One name for two things at one place, and one name for several loops that is used as a number.
from tvm.script import tir as T


@T.prim_func
def twice(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("one"):
            vi = T.axis.spatial(16, i)
            vi = T.axis.spatial(16, j)
            B[vi, vi] = A[vi, vi]
    for i, j in T.grid(16, 16):
        with T.block("remap"):
            vi, vi = T.axis.remap("SS", [i, j])
            B[vi, vi] = A[vi, vi]
    for i, j in T.grid(16, 16):
        with T.block("memory"):
            vi, vj = T.axis.remap("SS", [i, j])
            C = T.alloc_buffer((1,), "float32")
            C = T.match_buffer(A[vi, vj], (1,), "float32")
            vj = T.alloc_buffer((1,), "float32")
            B[vi, i] = C[0]
    for i, i in T.grid(16, 16):
        B[i, i] = A[i, i]
    for _, _ in T.grid(16, 16):
        B[0, 0] = A[0, 0]
    for both in T.grid(16, 16):
        with T.block("both"):
            vi = T.axis.spatial(16, both)
            B[vi, both[1]] = A[vi, both[0]]
    for i, j in T.grid(16, 16):
        with T.block("pair"):
            v = T.axis.remap("SS", [i, j])
            B[v] = A[v[1], v + 1]
