# RUN 1: pleat check %s
# RUN 1: pleat run %s --func three --fill random
# RUN 1: pleat compile %s --func three -o %t/out.c
# Vectors in memory have a power of two of lanes.
from tvm.script import tir as T


@T.prim_func
def three(A: T.Buffer((16,), "float32x3"), b: T.handle):
    B = T.match_buffer(b, (16,), "int8x6")
    C = T.alloc_buffer((16,), "float32x12")
    for i in range(16):
        C[i] = C[15 - i]
