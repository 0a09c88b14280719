# RUN: pleat opt %s
# Regions that are not stated are found; what is stated stays as it is.
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def found(A: T.Buffer((13, 7), "float32"), B: T.Buffer((11, 7), "float32"),
          C: T.Buffer((13, 11), "float32")):
    for i, j, k in T.grid(13, 11, 7):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] += A[vi, vk] * B[vj, vk]


@T.prim_func
def half(A: T.Buffer((13, 7), "float32"), B: T.Buffer((13, 7), "float32"),
         C: T.Buffer((13, 7), "float32")):
    for i in range(13):
        with T.block("reads"):
            vi = T.axis.spatial(13, i)
            T.reads(A[vi, :], B)
            for j in range(7):
                B[vi, j] = A[vi, j]
    for i in range(13):
        with T.block("writes"):
            vi = T.axis.spatial(13, i)
            T.writes([C[vi, 0:7]])
            for j in range(1, 6):
                C[vi, j] = A[vi, j - 1] + A[vi, j + 1]


# A read through a view is a read of its source; a buffer that a block allocates is not in its regions.
@T.prim_func
def view(A: T.Buffer((7, 5), "float32"), B: T.Buffer((7, 5), "float32")):
    for i in range(7):
        with T.block("rows"):
            vi = T.axis.spatial(7, i)
            row = T.match_buffer(A[vi, 0:5], (5,), "float32")
            own = T.alloc_buffer((5,), "float32")
            for j in range(5):
                own[j] = row[4 - j]
            for j in range(5):
                B[vi, j] = own[j]
