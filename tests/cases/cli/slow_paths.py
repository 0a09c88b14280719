# Accesses along vectorized loops that are not contiguous, with their strides and two elements.
# RUN: for f in gather rows; do pleat compile %s --func $f --target c --cpu avx2 -o %t/$f.c | tail -n +3; done
from tvm.script import tir as T


@T.prim_func
def gather(A: T.Buffer((13, 16), "float32"), B: T.Buffer((16, 13), "float32")):
    for i in range(16):
        for j in T.vectorized(13):
            B[i, j] = A[j, i] * T.float32(2)


@T.prim_func
def rows(A: T.Buffer((16, 13), "float32"), B: T.Buffer((16, 13), "float32", axis_separators=[1])):
    for j in range(13):
        for i in T.vectorized(16):
            B[i, j] = A[i, j] * T.float32(2)
