# Conditions and values that do not change in a loop leave it, wherever they stand in it. One that reads memory,
# may divide by 0, or uses what the loop defines stays.
# RUN: pleat opt %s --pass HoistExpression,HoistExpression --verify-each
from tvm.script import tir as T


@T.prim_func
def conjuncts(A: T.Buffer((5, 7, 3), "float32")):
    for i, j, k in T.grid(5, 7, 3):
        if j < 6 and i < 2 and k > 0:
            A[i, j, k] = T.float32(1)


@T.prim_func
def choices(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
    for i, j in T.grid(5, 7):
        B[i, j] = A[i, j]
        if i < 2:
            A[i, j] = T.if_then_else(i < 2, A[i, j], T.float32(2))
        else:
            A[i, j] = T.Select(i < 2, T.float32(3), T.float32(4))
        B[i, j] = B[i, j] + T.if_then_else(i < 3, T.float32(5), T.float32(6))


@T.prim_func
def different(A: T.Buffer((5, 7, 3), "float32")):
    for i, j, k in T.grid(5, 7, 3):
        if j < 3:
            if i < 2:
                A[i, j, k] = T.float32(0)
            else:
                A[i, j, k] = T.float32(1)
        else:
            if i < 1:
                A[i, j, k] = T.float32(2)
            else:
                A[i, j, k] = T.float32(3)


@T.prim_func
def lets(A: T.Buffer((5, 7), "int32"), n: T.int32):
    for i in range(5):
        for j in range(7):
            x: T.int32 = i * 3
            y: T.int32 = n + 1
            if x < 8 and j < y:
                A[i, j] = x


@T.prim_func
def stays(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5,), "int32"), n: T.int32):
    for i in range(5):
        for j in range(7):
            if n != 0 and i // n < 2 or B[i] < 2:
                A[i, j] = T.float32(1)
        for j in range(7):
            x: T.int32 = B[i]
            if x + i < 3:
                A[i, j] = T.float32(2)
        for j in range(7):
            for k in range(2):
                if j + k < 3:
                    A[i, j] = T.float32(3)


@T.prim_func
def threads(A: T.Buffer((8, 7), "float32"), n: T.int32):
    for t in T.thread_binding(8, "threadIdx.x"):
        for j in range(7):
            if t < 3 and n > 2:
                A[t, j] = T.float32(1)


@T.prim_func
def functions(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32")):
    for i in T.thread_binding(32, "threadIdx.x"):
        with T.attr(T.comm_reducer(lambda x, y: T.if_then_else(x < y, y, x), [T.float32(0)]), "reduce_scope", 0):
            A[i] = B[0]
