# RUN: pleat opt %s --schedule constants.steps
# The data of a constant change with its layout, and its padding holds the content that is stated.
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((3, 2), "int32"), C: T.Buffer((3, 2), "int32")):
    K = T.allocate_const([1, 2, 3, 4, 5, 6], "int32", [3, 2])
    L = T.decl_buffer((3, 2), "int32", data=K)
    M = T.allocate_const([1.5, 2.5, 3.5], "float32", [3])
    for i, j in T.grid(3, 2):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * L[vi, vj] + T.Cast("int32", M[vi])
