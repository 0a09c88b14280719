# Iterations of parallel and vectorised loops that share an element are found, with two of them.
# RUN 1: pleat check %s
# RUN 1: pleat run %s --func pairs --fill zero
# RUN: pleat run %s --func sums --fill zero | tail -1
from pleat.script import tir as T


@T.prim_func
def pairs(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        C[i // 2] = A[i]


@T.prim_func
def neighbours(A: T.Buffer((9, 3), "float32")):
    for i in T.parallel(8):
        for j in range(3):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi + 1, vj] * T.float32(2)


@T.prim_func
def total(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    for i in T.parallel(8):
        C[0] = C[0] + A[i]


@T.prim_func
def lanes(A: T.Buffer((9,), "float32")):
    for i in T.vectorized(8):
        A[i + 1] = A[i]


# These have none: the lanes of a vector may add up, a buffer may be of one iteration, and a
# condition may keep iterations apart.
@T.prim_func
def sums(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        row = T.decl_buffer((4,), "float32")
        for k in range(4):
            row[k] = A[i, k]
        for k in T.vectorized(4):
            C[i] = C[i] + row[k]
    for i in T.parallel(8):
        if i % 2 == 0:
            C[i // 2 * 2 + 1] = T.float32(0)
    for i in T.parallel(4):
        for k in range(3):
            C[i + k] = A[i + k, 1]
