# Padding becomes loop bounds; a tail becomes a part of its own.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops,guard_products,hoist_conditions
# RUN: pleat opt %s --pass convert_blocks,simplify_loops,guard_products,hoist_conditions,partition_loops,tighten_loops
from tvm.script import tir as T


@T.prim_func
def window(A: T.Buffer((23,), "float32"), W: T.Buffer((3,), "float32"),
           B: T.Buffer((23,), "float32")):
    for i, k in T.grid(23, 3):
        with T.block("window"):
            vi, vk = T.axis.remap("SR", [i, k])
            B[vi] = B[vi] + T.if_then_else(vi + vk >= 1 and vi + vk < 24, A[vi + vk - 1],
                                           T.float32(0)) * W[vk]


@T.prim_func
def tail(A: T.Buffer((23,), "float32"), B: T.Buffer((23,), "float32")):
    for io in range(6):
        for ii in T.unroll(4):
            with T.block("tail"):
                vi = T.axis.spatial(23, io * 4 + ii)
                T.where(io * 4 + ii < 23)
                B[vi] = A[vi] + T.float32(1)
