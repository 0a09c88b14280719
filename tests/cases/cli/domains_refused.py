# RUN 1: pleat opt %s
# RUN 1: pleat check %s
# RUN 1: pleat run %s --fill random
# RUN 1: pleat verify %s
# RUN 1: pleat compile %s -o %t/out.c
# Bindings that leave the domains of their block variables, or are not proved to stay inside.
from tvm.script import tir as T


@T.prim_func
def leaves(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32"), n: T.int32):
    for i, jo, ji in T.grid(4, 4, 16):
        with T.block("above"):
            vi = T.axis.S(4, i)
            vj = T.axis.S(64, jo * 32 + ji)
            B[vi, vj] = A[vi, vj] * T.float32(2)
        with T.block("below"):
            vi = T.axis.S(4, i - 1)
            vj = T.axis.S((1, 64), jo * 16 + ji)
            B[vi, vj] = A[vi, vj] * T.float32(2)
        with T.block("remainder"):
            vj = T.axis.S(5, ji % 7)
            B[i, vj] = A[i, vj]
        with T.block("guarded too late"):
            vj = T.axis.S(64, jo * 32 + ji)
            T.where(jo * 32 + ji < 65)
            B[i, vj] = A[i, vj]
    for i in range(n):
        with T.block("symbolic"):
            vi = T.axis.S(4, i)
            vn = T.axis.S(n, i + 1)
            B[vi, vn] = T.float32(0)


@T.prim_func
def fused_with_free_sizes(a: T.handle, b: T.handle, m: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (5, n), "float32")
    B = T.match_buffer(b, (5, n), "float32")
    for fused in range(n * 5 + 1):
        with T.block("one iteration too many"):
            vi = T.axis.spatial(5, fused // n)
            vj = T.axis.spatial(n, fused % n)
            B[vi, vj] = A[vi, vj]
    for fused in range(m * 5):
        with T.block("another divisor"):
            vi = T.axis.spatial(5, fused // n)
            B[vi, 0] = A[vi, 0]


@T.prim_func
def floors(A: T.Buffer((127, 128), "float32"), B: T.Buffer((127, 128), "float32")):
    for i in range(4):
        for fused in range(T.min(31, 126 - i * 32) * 128 + 129):
            with T.block("one iteration too many"):
                vi = T.axis.spatial(127, i * 32 + fused // 128)
                vj = T.axis.spatial(128, fused % 128)
                B[vi, vj] = A[vi, vj]
