# RUN 1: pleat opt %s
from pleat.script import tir as T

@T.prim_func
def with(A: T.Buffer((3,), "float32")):
    A[0] = 1.0
