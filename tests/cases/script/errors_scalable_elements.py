# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def kernel(S: T.Buffer((8,), "float32xvscalex4")):
    S[0] = S[1]
