# RUN: pleat opt %s
# The conditions of T.all and T.any.
from pleat.script import tir as T
@T.prim_func
def f(A: T.Buffer((5,), "bool"), B: T.Buffer((5,), "int8")):
    for i in range(5):
        A[i] = T.all(A[i], B[i] > 0, i < 3)
        A[i] = T.any(A[i], B[i] > 0)
        A[i] = T.all(A[i])
