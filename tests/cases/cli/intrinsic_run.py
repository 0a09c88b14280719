# RUN 1: pleat compile %s -o %t/kernel.c --func barrier
# RUN 1: pleat verify %s --func barrier
# Intrinsics are read and printed, but have no code; messages locate them.
from pleat.script import tir as T


@T.prim_func
def barrier(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        T.tvm_global_barrier_kinit()
        B[i] = A[i] + T.float32(1)
