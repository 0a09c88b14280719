# RUN: pleat opt %s
# RUN: pleat verify %s --func guarded | grep -c agrees
# Bindings that stay in the domains of their block variables by loops, conditions and predicates.
from tvm.script import tir as T


@T.prim_func
def guarded(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4, 64), "float32")):
    for i, jo, ji in T.grid(4, 4, 16):
        with T.block("predicate"):
            vi = T.axis.S(4, i)
            vj = T.axis.S(64, jo * 32 + ji)
            T.where(jo * 32 + ji < 64)
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, jo, ji in T.grid(4, 4, 16):
        if jo < 2:
            with T.block("branch"):
                vj = T.axis.S(64, jo * 32 + 16 + ji)
                B[i, vj] = A[i, vj] * T.float32(3)
        else:
            with T.block("else"):
                vj = T.axis.S((64, 128), jo * 32 + ji)
                B[i, vj - 64] = B[i, vj - 64] + T.float32(1)
    for i, j in T.grid(4, 0):
        with T.block("never"):
            vj = T.axis.S(64, j + 100)
            B[i, vj] = T.float32(0)


@T.prim_func
def symbolic(a: T.handle, rows: T.Buffer((8,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for io, ii in T.grid((n + 31) // 32, 32):
        with T.block("split"):
            vi = T.axis.S(n, io * 32 + ii)
            T.where(io * 32 + ii < n)
            A[vi] = T.float32(1)
    for i in range(8):
        with T.block("gathered"):
            vi = T.axis.S(n, rows[i])
            T.where(0 <= rows[i] and rows[i] < n)
            A[vi] = T.float32(2)


@T.prim_func
def fused_with_free_sizes(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (5, 7, n), "float32")
    B = T.match_buffer(b, (5, 7, n), "float32")
    for fused in range(n * 35):
        with T.block("B"):
            vi = T.axis.spatial(5, fused // (n * 7))
            vj = T.axis.spatial(7, fused % (n * 7) // n)
            vk = T.axis.spatial(n, fused % n)
            B[vi, vj, vk] = A[vi, vj, vk] * T.float32(2)


@T.prim_func
def split_into_free_parts(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i, j in T.grid(10, (n + 9) // 10):
        with T.block("B"):
            T.where(i * ((n + 9) // 10) + j < n)
            vi = T.axis.spatial(n, i * ((n + 9) // 10) + j)
            B[vi] = A[vi] * T.float32(2)


@T.prim_func
def floors(A: T.Buffer((127, 128), "float32"), B: T.Buffer((127, 128), "float32"),
           C: T.Buffer((29, 13), "float32")):
    for i in range(4):
        for fused in range(T.min(31, 126 - i * 32) * 128 + 128):
            with T.block("B"):
                vi = T.axis.spatial(127, i * 32 + fused // 128)
                vj = T.axis.spatial(128, fused % 128)
                B[vi, vj] = A[vi, vj]
    for i, j, k in T.grid(3, 11, 16):
        with T.block("C"):
            vi = T.axis.spatial(29, ((i * 11 + j) * 16 + k) % 377 // 13)
            vj = T.axis.spatial(13, ((i * 11 + j) * 16 + k) % 377 % 13)
            T.where((i * 11 + j) * 16 + k < 377)
            C[vi, vj] = T.float32(1)
