# RUN: pleat opt %s
# RUN: pleat opt %s --newer-names | pleat opt -
# RUN: pleat verify %s
# The floats of TVM 0.27 with fewer bits: powers of two (the scales of OCP's MX formats), 6 and 4 bits.
from tvm.script import tir as T


@T.prim_func
def scaled(A: T.Buffer((7, 3), "float4_e2m1fn"), S: T.Buffer((7,), "float8_e8m0fnu"),
           B: T.Buffer((7, 3), "float6_e2m3fn"), C: T.Buffer((7, 3), "float6_e3m2fn"),
           D: T.Buffer((7, 3), "float32"), E: T.Buffer((7,), "float8_e8m0fnu")):
    for i in range(7):
        E[i] = S[i] * T.float8_e8m0fnu(0.5)
        for j in range(3):
            D[i, j] = T.Cast("float32", A[i, j]) * T.Cast("float32", S[i]) + T.Cast("float32", B[i, j])
            C[i, j] = T.Cast("float6_e3m2fn", D[i, j])
