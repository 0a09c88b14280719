# RUN 1: pleat verify %s --func search
# Only the interpreter runs loops that are left early; compiled code refuses them.
from pleat.script import tir as T


@T.prim_func
def search(A: T.Buffer((17,), "float32"), B: T.Buffer((1,), "int32")):
    for i in range(17):
        if A[i] < T.float32(0):
            B[0] = i
            break
