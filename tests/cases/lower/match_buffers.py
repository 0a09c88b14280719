# Accesses of a view become accesses of its source, in the regions and views of blocks inside as
# well. Sizes and strides that the view names get their values.
# RUN: pleat opt %s --pass match_buffers --verify-each
# RUN: pleat opt %s --pass match_buffers -o %t/once.py && pleat opt %t/once.py --pass match_buffers | diff %t/once.py -
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((6, 10, 7), "float32"), B: T.Buffer((7,), "float32")):
    for i, j in T.grid(6, 5):
        with T.block("view"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[0:7])
            T.writes(A[vi, vj * 2:vj * 2 + 2, 0:7])
            s = T.int32()
            V = T.match_buffer(A[vi, vj * 2:vj * 2 + 2, 0:7], (2, 7), strides=(s, 1), offset_factor=1)
            for k in range(7):
                with T.block("row"):
                    vk = T.axis.spatial(7, k)
                    T.reads(B[vk])
                    T.writes(V[0:2, vk])
                    W = T.match_buffer(V[0:2, vk], (2, 1), strides=(7, 1), offset_factor=1)
                    W[0, 0] = B[vk]
                    W[1, 0] = B[vk] * T.Cast("float32", s)
