# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((7, 9), "float32")):
    V = A.view(-4, layout=None)
    V[0] = 1.0
