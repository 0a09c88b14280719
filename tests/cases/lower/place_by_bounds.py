# Row r of C is phase r % 2 of row r // 2 of B. That an iteration of p reads only what it wrote
# follows from p // 5 < 2, so B is allocated inside of that loop.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops,compact_buffers --verify-each
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((5, 2, 3), "float32"), C: T.Buffer((10, 3), "float32")):
    with T.block("root"):
        B = T.alloc_buffer((5, 2, 3), "float32")
        for p in range(10):
            for j in range(3):
                with T.block("B"):
                    vr = T.axis.spatial(5, p % 5)
                    vp = T.axis.spatial(2, p // 5)
                    vj = T.axis.spatial(3, j)
                    B[vr, vp, vj] = A[vr, vp, vj] * T.float32(3.0)
            for j in range(3):
                with T.block("C"):
                    vr = T.axis.spatial(10, p % 5 * 2 + p // 5)
                    vj = T.axis.spatial(3, j)
                    C[vr, vj] = B[vr // 2, vr % 2, vj] + T.float32(1.0)
