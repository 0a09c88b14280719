# RUN 1: pleat opt %s
# Assignments of several names that have too many values or too few, or need tuples apart.
from pleat.script import tir as T

@T.prim_func
def uneven(A: T.Buffer((5,), "float32")):
    p, q = 1, 2, 3
    A[p] = T.float32(q)

@T.prim_func
def nested(A: T.Buffer((5,), "float32")):
    a, b = 1, 2
    b, (c, a) = a, (b, 1)
    A[a] = T.float32(b)

@T.prim_func
def few(A: T.Buffer((5,), "float32")):
    p, q = (1,)
    a, *b = 1, 2
    r, s = 1
    A[0], A[1] = A[1]
