# RUN: pleat opt %s --pass lower
# RUN: pleat opt %s --pass convert_blocks -o %t/loops.py && pleat opt %t/loops.py --pass compact_buffers
# The local buffer has another extent in the last iteration, which is apart from the others: the pointer of
# the first one may not have the name of the second one, since a name with indices is a buffer.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5,), "float32"), S: T.Buffer((5,), "float32")):
    L = T.alloc_buffer((5,), "float32", scope="local")
    for i in range(3):
        for j in T.vectorized(2):
            with T.block("L"):
                v = T.axis.spatial(5, i * 2 + j)
                T.where(i * 2 + j < 5)
                T.block_attr({"buffer_dim_align": [[0, 0, 7, 3]]})
                L[v] = A[v] * 2.0
        for j in T.vectorized(2):
            with T.block("S"):
                v = T.axis.spatial(5, i * 2 + j)
                T.where(i * 2 + j < 5)
                S[v] = L[v]
