# A view may drop axes of extent 1 only.
# RUN 1: pleat opt %s --pass convert_blocks
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 7), "float32")):
    for i in range(5):
        with T.block("b"):
            vi = T.axis.spatial(5, i)
            V = T.match_buffer(A[0:3, 0:7], (7,), "float32")
            V[vi] = T.float32(0)
