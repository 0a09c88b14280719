# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def other(A: T.Buffer((8,), "float32")) -> T.int32:
    return A[0]


@T.prim_func
def outside(A: T.Buffer((8,), "float32")):
    break


@T.prim_func
def parallel(A: T.Buffer((8,), "float32")):
    for i in range(8):
        for j in T.parallel(8):
            if A[j] > T.float32(0):
                continue


@T.prim_func
def early(A: T.Buffer((8,), "float32")):
    if A[0] > T.float32(2):
        return
    A[1] = T.float32(0)
    return
