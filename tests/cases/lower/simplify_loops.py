# Indices and conditions are simplified with what the loops around them say of their variables.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 7), "float32"), B: T.Buffer((35,), "float32")):
    for io, ii in T.grid(5, 7):
        with T.block("copy"):
            v = T.axis.spatial(35, io * 7 + ii)
            T.where(io * 7 + ii < 35)
            B[v] = A[v // 7, v % 7] + T.if_then_else(v < 0, T.float32(1), T.float32(2))


@T.prim_func
def known_choice(A: T.Buffer((2, 8), "int32"), B: T.Buffer((2, 8), "int32")):
    for i, j in T.grid(2, 8):
        B[i, j] = T.if_then_else(i == 1 and 6 <= j, 0, T.max(T.if_then_else(i == 1 and 6 <= j, 0, A[i, j]), 3))
        if T.Cast("int32", T.ceil(T.log2(T.Cast("float64", i + 1025)))) == 11:
            A[i, j] = T.Cast("int32", T.ceil(T.log2(T.float64(14))))
