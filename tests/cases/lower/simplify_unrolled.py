# In the copies of an unrolled loop, indices become constants and conditions are decided.
# RUN: pleat opt %s --pass unroll_loops,simplify_unrolled --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((35,), "float32"), B: T.Buffer((35,), "float32")):
    for j in range(7):
        for i in T.unroll(5):
            if i % 2 == 0:
                B[i * 7 + j] = A[j * 5 + (4 - i)]
