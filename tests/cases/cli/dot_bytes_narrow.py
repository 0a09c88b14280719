# RUN 1: pleat check %s
# A sum of products of bytes takes numbers of 32 bits.
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((5,), "int16"), B: T.Buffer((5,), "int16")):
    for i in range(5):
        with T.block("f"):
            v = T.axis.spatial(5, i)
            B[v] = T.dot_bytes(A[v], B[v])
