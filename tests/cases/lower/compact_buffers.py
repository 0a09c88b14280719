# B shrinks to what one iteration of the loop around it accesses; C has a second name and stays.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops,compact_buffers --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((51, 7), "float32"), D: T.Buffer((51, 7), "float32")):
    with T.block("root"):
        for io in range(3):
            with T.block("tile"):
                vo = T.axis.spatial(3, io)
                B = T.alloc_buffer((51, 7), "float32")
                C = T.alloc_buffer((51, 7), "float32")
                flat = T.decl_buffer((357,), "float32", data=C.data)
                for i, j in T.grid(17, 7):
                    B[vo * 17 + i, j] = A[vo * 17 + i, j] * T.float32(2)
                    flat[vo * 119 + i * 7 + j] = A[vo * 17 + i, j]
                for i, j in T.grid(17, 7):
                    D[vo * 17 + i, j] = B[vo * 17 + i, 6 - j] + C[vo * 17 + i, j]
