# Blocks become loops: bindings, predicates, inits, views; allocations go to the innermost loop.
# RUN: pleat opt %s --pass convert_blocks --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((30, 7), "float32"), C: T.Buffer((30,), "float32")):
    with T.block("root"):
        B = T.alloc_buffer((30,), "float32")
        for io, ii in T.grid(4, 8):
            for k in range(7):
                with T.block("sum"):
                    vi = T.axis.spatial(30, io * 8 + ii)
                    vk = T.axis.reduce(7, k)
                    T.where(io * 8 + ii < 30)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            with T.block("out"):
                vi = T.axis.spatial(30, io * 8 + ii)
                T.where(io * 8 + ii < 30)
                row = T.match_buffer(A[vi, 0:7], (7,), "float32")
                C[vi] = B[vi] * row[3]
