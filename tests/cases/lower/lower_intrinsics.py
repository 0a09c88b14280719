# Intrinsics that are functions of their operands become operations that all targets have.
# RUN: pleat opt %s --pass lower_intrinsics --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "bool"), C: T.Buffer((13,), "float32"),
      D: T.Buffer((13,), "int32")):
    for i in range(13):
        B[i] = T.isfinite(A[i])
        C[i] = T.ldexp(A[i], 3)
        D[i] = T.clz(T.Cast("int32", i + 1))
