# RUN: pleat verify %s | grep -c "agrees with the interpreter"
# The sum of the products of two signed numbers of 16 bits.
from tvm.script import tir as T
@T.prim_func
def f(A: T.Buffer((37,), "int32"), B: T.Buffer((37,), "int32"), C: T.Buffer((37,), "int32")):
    for i in range(37):
        with T.block("f"):
            v = T.axis.spatial(37, i)
            C[v] = A[v] + T.dot_words(A[v] * 498825649, B[v] * 498825649)
