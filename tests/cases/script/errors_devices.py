# RUN 1: pleat opt %s
from tvm.script import tirx as T


@T.prim_func
def numbers(A: T.Buffer((8,), "float32")):
    x, y = T.cta_id([2, 3, 5])
    z, w = T.thread_id()
    A[x] = A[y]
    A[0] = T.ptx.neg(A[1])
    T.cuda.clock64(1)


@T.prim_func
def targets(A: T.Buffer((8,), "float32")):
    A[0], y = T.cta_id([2, 3])
    A[y] = 0.0
