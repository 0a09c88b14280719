# All passes twice over give what they give once, but for names.
# RUN: pleat opt %s --pass lower --verify-each
# RUN: pleat opt %s --pass lower,lower --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((13, 7), "float32"), B: T.Buffer((13, 7), "float32")):
    with T.block("root"):
        C = T.alloc_buffer((13, 7), "float32")
        for i in T.parallel(13):
            for j in T.vectorized(7):
                with T.block("c"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(13, 7):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = C[12 - vi, vj]
