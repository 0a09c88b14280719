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
