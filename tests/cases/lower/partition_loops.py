# Loops are cut where their conditions become constant: borders, a tail of 3 iterations, and two
# versions of a body for a parallel loop.
# RUN: pleat opt %s --pass partition_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def borders(A: T.Buffer((7,), "float32"), B: T.Buffer((11,), "float32")):
    for i in range(11):
        B[i] = T.if_then_else(i >= 2 and i < 9, A[i - 2], T.float32(0))


@T.prim_func
def tail(A: T.Buffer((23,), "float32"), B: T.Buffer((23,), "float32")):
    for io in range(5):
        for ii in T.vectorized(5):
            if io * 5 + ii < 23:
                B[io * 5 + ii] = A[io * 5 + ii]


@T.prim_func
def versions(A: T.Buffer((23,), "float32"), B: T.Buffer((23,), "float32")):
    for io in T.parallel(5):
        for ii in T.vectorized(5):
            if io * 5 + ii < 23:
                B[io * 5 + ii] = A[io * 5 + ii]
