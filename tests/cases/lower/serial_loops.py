# Innermost serial loops of a schedule are computed in vectors where that changes no result: those of C, whose 40
# iterations are five vectors, and not those of a sum, of a column, and of an extent without whole vectors.
# RUN: pleat compile %s --func product --cpu avx2 --lowered -o %t/l.py > %t/said && grep -A90 T.prim_func %t/l.py
# RUN: pleat compile %s --func kept --cpu avx2 --lowered -o %t/l.py > %t/said && grep -A90 T.prim_func %t/l.py
# RUN: pleat verify %s --func product --cpu avx2 | tail -1
from tvm.script import tir as T


@T.prim_func
def product(A: T.Buffer((4, 64), "float32"), B: T.Buffer((64, 40), "float32"), C: T.Buffer((4, 40), "float32")):
    for i, j in T.grid(4, 40):
        with T.block("C_init"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for i, k_0, k_1, j in T.grid(4, 16, 4, 40):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            vk = T.axis.reduce(64, k_0 * 4 + k_1)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def kept(A: T.Buffer((8, 13), "float32"), B: T.Buffer((13, 8), "float32"), C: T.Buffer((8,), "float32")):
    for j_0, j_1, i in T.grid(1, 13, 8):
        with T.block("columns"):
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(13, j_0 * 13 + j_1)
            B[vj, vi] = A[vi, vj]
    for i_0, i_1, j in T.grid(2, 4, 13):
        with T.block("sum"):
            vi = T.axis.spatial(8, i_0 * 4 + i_1)
            vj = T.axis.reduce(13, j)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vj]
