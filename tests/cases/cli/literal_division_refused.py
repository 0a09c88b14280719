# RUN 1: pleat opt %s
# Divisions of two literals that have no value.
from tvm.script import tir as T


@T.prim_func
def divisions(A: T.Buffer((4,), "int32")):
    A[0] = T.truncdiv(5, 0)
    A[1] = T.truncmod(5, 0)
    A[2] = T.truncdiv(-9223372036854775808, -1)
