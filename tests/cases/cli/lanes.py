# RUN: pleat verify %s | grep -c agrees
# Three elements of a row are a vector of three lanes, which memory does not hold as one element.
from tvm.script import tir as T


@T.prim_func
def parts(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32"), V: T.Buffer((5,), "float32x4")):
    for i in range(5):
        B[i, 0:3] = A[i, 4:7] * T.Broadcast(T.float32(2), 3)
        B[i, 3:7] = V[i]
