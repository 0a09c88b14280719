# An if with its else leaves the loops whose variables it does not use; one on threads
# stays, as in hoist_thread_branches.py. A condition that reads memory or may divide by 0 stays, and so does one beside
# another statement.
# RUN: pleat opt %s --pass hoist_branches --verify-each
from tvm.script import tir as T


@T.prim_func
def nest(A: T.Buffer((5, 7, 3), "float32"), n: T.int32):
    for i, j, k in T.grid(5, 7, 3):
        if i < 2:
            if n > j:
                A[i, j, k] = T.float32(1)
        else:
            A[i, j, k] = T.float32(2)


@T.prim_func
def stays(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5,), "int32"), n: T.int32):
    for i in range(5):
        for j in range(7):
            if B[i] < 2:
                A[i, j] = T.float32(1)
            else:
                A[i, j] = T.float32(2)
        for j in range(7):
            if i // n < 2:
                A[i, j] = A[i, j] + T.float32(1)
        for j in range(7):
            if i < 3:
                A[i, j] = A[i, j] + T.float32(1)
            A[i, 0] = T.float32(5)


@T.prim_func
def threads(A: T.Buffer((5, 7), "float32"), n: T.int32):
    for tx in T.thread_binding(5, thread="threadIdx.x"):
        for j in range(7):
            if tx + n < 3:
                A[tx, j] = T.float32(1)
            else:
                A[tx, j] = T.float32(2)
        for j in range(7):
            if n < 3:
                A[tx, j] = T.float32(3)
