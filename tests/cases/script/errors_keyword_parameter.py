# RUN 1: pleat opt %s
from pleat.script import tir as T

@T.prim_func
def f(while: T.Buffer((3,), "float32")):
    A[0] = 1.0
