# Conditions move outward as far as they are decided, and become loop bounds where they are linear.
# RUN: pleat opt %s --pass hoist_conditions --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((11, 5), "float32"), K: T.Buffer((1,), "int32"),
      B: T.Buffer((11, 5), "float32"), n: T.int32):
    for h in range(11):
        for kh in range(3):
            for c in range(5):
                if 0 <= h + kh - 1 and h + kh - 1 < 11 and n > 2:
                    B[h, c] = B[h, c] + A[h + kh - 1, c]
    for i in T.parallel(7):
        if i < 5:
            B[i, 0] = T.float32(1)
    for i in T.vectorized(5):
        if i * 2 < 7:
            B[0, i] = T.float32(2)
    for i in range(11):
        if K[0] < 3:
            B[i, 1] = T.float32(3)
    for i in range(5):
        if i != 2:
            B[1, i] = T.float32(4)
            B[2, i] = T.float32(5)
    for i in range(11):
        if 1 < (i + 1) // 3 and i // 4 <= 1:
            B[i, 2] = T.float32(6)
