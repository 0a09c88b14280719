# RUN: pleat compile %s -o %t/k.c > /dev/null && grep -F "A[4]" %t/k.c
# RFC 63, "Generalizing buffer accesses": a load of a vector from memory of scalars, in C.
from tvm.script import tir as T


@T.prim_func
def load(A: T.Buffer((16,), dtype='float'), B: T.Buffer[(1,), "float32x4"]):
    B[0] = T.load("float32x4", A.data, T.ramp(4, 1, 4))
