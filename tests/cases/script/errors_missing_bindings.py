# RUN 1: pleat opt %s
# A block variable whose call has the domain alone: the error shows the binding to write.
from pleat.script import tir as T

N = 16


@T.prim_func
def missing(A: T.Buffer((8, 16, 5), "float32")):
    for i, j, k in T.grid(8, 16, 5):
        with T.block("A"):
            vi = T.axis.spatial(8)
            vj = T.axis.S((0, N))
            vk = T.axis.R(3)
            A[vi, vj, vk] = T.float32(0)


@T.prim_func
def square(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in range(8):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(dom=8)
                A[vi, vj] = T.float32(0)


@T.prim_func
def second(A: T.Buffer((8, N), "float32")):
    for i in range(8):
        for j in range(N):
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                vj = T.axis.spatial(N)
                A[vi, vj] = T.float32(0)


@T.prim_func
def no_binding_is_missing(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(i)
            vj = T.axis.spatial(binding=3)
            A[vi, vj] = T.float32(0)
