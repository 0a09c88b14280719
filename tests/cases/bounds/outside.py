# Accesses that leave their buffers are found without a run, each with an iteration that does.
# RUN 1: pleat check %s
# RUN 1: pleat run %s --func shifted --fill zero
# RUN: pleat opt %s --func shifted --pass convert_blocks > /dev/null
from pleat.script import tir as T


@T.prim_func
def shifted(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")):
    for i in range(30):
        with T.block("B"):
            vi = T.axis.spatial(30, i)
            B[vi] = A[vi + 1] - A[vi]


# Only an odd iteration leaves the buffer, and only under the condition.
@T.prim_func
def sometimes(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        if i % 2 == 1 and j > 5:
            B[i, j + 2 - i % 2] = A[i, j]


@T.prim_func
def vectors(A: T.Buffer((30,), "float32"), B: T.Buffer((32,), "float32")):
    for i in range(8):
        B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4]


# These stay inside.
@T.prim_func
def inside(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")):
    for i in range(30):
        B[i] = T.if_then_else(i < 29, A[i + 1], A[29 - i])
    for i in range(0):
        B[i + 100] = T.float32(0)
    for i in range(30):
        if i + 5 < 30:
            B[i + 5] = A[T.min(i * 2, 29)]
