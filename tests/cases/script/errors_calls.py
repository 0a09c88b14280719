# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def helper(x: T.float32):
    T.evaluate(x)


@T.prim_func
def kernel(A: T.Buffer((8,), "float32")):
    helper(A.data)
    helper(3)
