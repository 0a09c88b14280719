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


@T.prim_func
def pragmas(A: T.Buffer((8, 4), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        for i in T.serial(4, annotations={"pragma_b": 1, "other": 2, "pragma_a": "text"}):
            with T.block("one"):
                vx, vi = T.axis.remap("SS", [x, i])
                T.block_attr({"pragma_c": 2.5, "dropped": 4})
                A[vx, vi] = T.float32(1)
