# Floored division becomes a shift or a mask by a power of two, and a truncated one where both
# operands are known to be without a sign; otherwise it stays for the target.
# RUN: pleat opt %s --pass lower_divisions --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((91,), "int32"), B: T.Buffer((91,), "int32")):
    for i in range(91):
        B[i] = A[i % 13 * 7 + i // 13] // 8 + A[i] % 16
    for i in range(91):
        B[i] = A[i] // 7 + (A[i] + 3) % 5
