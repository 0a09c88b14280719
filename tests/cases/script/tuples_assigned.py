# RUN: pleat opt %s
# Assignments of several names: all values are computed before the first name is set, as in Python.
from pleat.script import tir as T, tirx

@T.prim_func
def blocks(A: T.Buffer((5, 5), "float32"), B: T.Buffer((5, 5), "float32")):
    n, m = A.shape
    for i, j in T.grid(n, m):
        with T.block("b"):
            x, y = T.axis.remap("SS", [i, j])
            x, y = y, x
            p, q = T.meta_var((2, 3))
            p, q = T.meta_var((q, p))
            B[x, y] = A[y, x] + T.float32(p - q)

@tirx.prim_func
def variables(A: T.Buffer((5, 5), "float32"), B: T.Buffer((5, 5), "float32")):
    for i, j in tirx.grid(5, 5):
        x, y = i, j
        x, y, z = y, x, x + y
        B[x, y] = A[y, x] * T.float32(z)
    B[0, 1], B[1, 0] = B[1, 0], B[0, 1]
