# RUN: pleat opt %s
# Divisions of two literals that round towards zero are computed as the program is read.
from tvm.script import tir as T


@T.prim_func
def divisions(A: T.Buffer((4,), "int32")):
    A[0] = T.truncdiv(5, 2)
    A[1] = T.truncdiv(-5, 2)
    A[2] = T.truncmod(-5, 2)
    A[3] = T.truncmod(5, -1)
