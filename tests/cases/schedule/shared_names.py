# Blocks that share a name are numbered; the name alone means none of them.
# RUN: pleat opt %s --schedule shared_names.steps
# RUN 1: pleat opt %s --schedule shared_names_refused.steps
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 6), "float32"), B: T.Buffer((5, 6), "float32")):
    for i, j in T.grid(5, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i in range(5):
        with T.block("B_1"):
            vi = T.axis.spatial(5, i)
            B[vi, 0] = 0.0
    for i, j in T.grid(5, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = B[vi, vj] * 2.0
