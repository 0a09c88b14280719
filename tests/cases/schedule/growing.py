# A value that its readers use eight times stands there as often: there is an end to that.
# RUN 1: pleat opt %s --schedule growing.steps
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
    X0 = T.alloc_buffer((13,))
    X1 = T.alloc_buffer((13,))
    X2 = T.alloc_buffer((13,))
    X3 = T.alloc_buffer((13,))
    X4 = T.alloc_buffer((13,))
    for i in range(13):
        with T.block("X0"):
            vi = T.axis.spatial(13, i)
            X0[vi] = A[vi] * A[vi] * A[vi] * A[vi] * A[vi] * A[vi] * A[vi] * A[vi]
    for i in range(13):
        with T.block("X1"):
            vi = T.axis.spatial(13, i)
            X1[vi] = X0[vi] * X0[vi] * X0[vi] * X0[vi] * X0[vi] * X0[vi] * X0[vi] * X0[vi]
    for i in range(13):
        with T.block("X2"):
            vi = T.axis.spatial(13, i)
            X2[vi] = X1[vi] * X1[vi] * X1[vi] * X1[vi] * X1[vi] * X1[vi] * X1[vi] * X1[vi]
    for i in range(13):
        with T.block("X3"):
            vi = T.axis.spatial(13, i)
            X3[vi] = X2[vi] * X2[vi] * X2[vi] * X2[vi] * X2[vi] * X2[vi] * X2[vi] * X2[vi]
    for i in range(13):
        with T.block("X4"):
            vi = T.axis.spatial(13, i)
            X4[vi] = X3[vi] * X3[vi] * X3[vi] * X3[vi] * X3[vi] * X3[vi] * X3[vi] * X3[vi]
    for i in range(13):
        with T.block("B"):
            vi = T.axis.spatial(13, i)
            B[vi] = X4[vi] * X4[vi] * X4[vi] * X4[vi] * X4[vi] * X4[vi] * X4[vi] * X4[vi]
