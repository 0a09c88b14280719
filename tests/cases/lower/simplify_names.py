# A variable that a condition says to equal something keeps its name, and the condition is known
# inside. Sizes of parameters are not negative. Bits that leave an int32 at its end are lost.
# RUN: pleat opt %s --pass simplify_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def equal(A: T.Buffer((16, 16), "float32"), n: T.int32):
    for i, j in T.grid(16, 16):
        if i == 5:
            if i < 7:
                A[i, j] = T.float32(1)
        if i == n and j == i + 2:
            if j > n:
                A[i, j - 2] = T.float32(2)


@T.prim_func
def sizes(a: T.handle, n: T.int64):
    A = T.match_buffer(a, (n * 32 + 1 - 2,), "float32")
    A[T.min(T.int64(1), n)] = T.float32(0)


@T.prim_func
def shifts(A: T.Buffer((32,), "int32")):
    for i in range(16):
        if T.shift_left(31, i) <= 1015808:
            A[i] = 1
    for i in range(32):
        if T.shift_left(1, i) > 0:
            A[i] = 2


@T.prim_func
def named_conditions(A: T.Buffer((9,), "int32"), B: T.Buffer((9, 4), "int32"), n: T.int32):
    for i in range(9):
        c: T.bool = i < n
        if c or i >= n:
            A[i] = 1
        if c:
            if i < n + 2:
                B[i, 0] = 2
            if not c:
                B[i, 1] = 3
        else:
            B[i, 2] = T.if_then_else(n <= i, 4, 5)
        d: T.bool = i < A[i]
        if d or i >= A[i]:
            B[i, 3] = 6
