# A condition that is left after partitioning becomes a bound of the inner loop.
# RUN: pleat opt %s --pass partition_loops
# RUN: pleat opt %s --pass partition_loops,tighten_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((23,), "float32"), B: T.Buffer((23,), "float32")):
    for io in range(4):
        for ii in T.unroll(7):
            if io * 7 + ii < 23:
                B[io * 7 + ii] = A[io * 7 + ii]
