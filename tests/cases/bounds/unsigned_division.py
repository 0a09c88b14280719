# A division of unsigned integers by 0 ends a process like one of signed ones, so it is checked.
# RUN 1: pleat run %s --func f --fill zero
# RUN 1: pleat run %s --func g --fill zero
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "uint32"), D: T.Buffer((8,), "uint32"), B: T.Buffer((8,), "uint32")):
    for i in range(8):
        B[i] = A[i] // D[i]


@T.prim_func
def g(A: T.Buffer((8,), "uint8"), D: T.Buffer((8,), "uint8"), B: T.Buffer((8,), "uint8")):
    for i in T.vectorized(8):
        B[i] = A[i] % (D[i] * D[i])
