# Declarations and workspace come first, then regions: parallel loops from 0 and serial statements.
# A parallel loop inside another loop becomes serial; a buffer too large for the stack becomes
# workspace, once for each iteration of a parallel loop.
# RUN: pleat opt %s --pass flatten_buffers,form_parallel_regions --verify-each
# RUN: pleat opt %s --pass flatten_buffers,form_parallel_regions,form_parallel_regions --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((7, 20011), "float32"), B: T.Buffer((7, 5), "float32")):
    for i in T.parallel(2, 7):
        large = T.decl_buffer((20011,), "float32")
        for j in range(20011):
            large[j] = A[i, j]
        for j in T.parallel(5):
            B[i, j] = large[j * 4001]
    small = T.decl_buffer((3,), "float32")
    for j in range(3):
        small[j] = B[2, j]
    B[0, 0] = small[1]
    shared = T.decl_buffer((5,), "float32")
    for i in T.parallel(5):
        shared[i] = B[2, i]
    for i in T.parallel(7):
        B[i, 1] = shared[i % 5]
