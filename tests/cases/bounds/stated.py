# Buffers and elements that a block accesses and does not state are found, and steps do not rely
# on them.
# RUN 1: pleat check %s
# RUN: pleat opt %s --func f --schedule stated.steps
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    B = T.alloc_buffer((6, 7))
    for i, j in T.grid(6, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(6, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, 6 - vj] * A[vi, vj]


@T.prim_func
def g(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32"), D: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
            D[vi] = A[vi]
