# RUN 1: pleat compile %s -o value.c
# RUN: pleat check %s
# A value that compiled code would have to give its caller is refused.
from pleat.script import tir as T


@T.prim_func
def first(A: T.Buffer((17,), "float32")) -> T.int32:
    for i in range(17):
        if A[i] < T.float32(0):
            return i
    return -1
