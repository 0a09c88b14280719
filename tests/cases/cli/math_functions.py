# RUN: pleat verify %s
# Functions of two numbers, of bits and of powers of ten: code and interpreter agree.
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((37,), "float32"), B: T.Buffer((37,), "float32"), N: T.Buffer((37,), "int16"), C: T.Buffer((8, 37), "float32"), D: T.Buffer((37,), "int16"), E: T.Buffer((37,), "float64")):
    for i in range(37):
        with T.block("f"):
            v = T.axis.spatial(37, i)
            C[0, v] = T.fmod(A[v], B[v])
            C[1, v] = T.atan2(A[v], B[v])
            C[2, v] = T.hypot(A[v], B[v])
            C[3, v] = T.copysign(A[v], B[v])
            C[4, v] = T.nextafter(A[v], B[v])
            C[5, v] = T.round(A[v] * T.float32(8))
            C[6, v] = T.exp10(A[v])
            C[7, v] = T.if_then_else(T.likely(v < 30), A[v], B[v])
            D[v] = T.popcount(N[v])
            E[v] = T.atan2(T.Cast("float64", A[v]), T.Cast("float64", B[v])) + T.round(T.Cast("float64", A[v]))
