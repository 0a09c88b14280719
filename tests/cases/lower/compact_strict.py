# B has 9 elements, and 16 are written: with is_strict=False it gets them.
# RUN: pleat opt %s --pass CompactBufferAllocation
# RUN: pleat opt %s --pass 'CompactBufferAllocation(is_strict=False)'
# RUN 1: pleat opt %s --pass 'CompactBufferAllocation(is_strict=3)'
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((127,), "float32"), C: T.Buffer((127,), "float32")):
    B = T.alloc_buffer((9,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi]
    for i in range(9):
        with T.block("C"):
            vi = T.axis.spatial(9, i)
            C[vi] = B[vi]
