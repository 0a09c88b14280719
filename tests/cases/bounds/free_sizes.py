# RUN 1: pleat check %s
# Accesses that are out of bounds for some sizes are found, with such sizes; a run checks them.
from pleat.script import tir as T


@T.prim_func
def beyond(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        B[i] = A[i + 1]


@T.prim_func
def shorter(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int64()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n - 1, m), "float32")
    for i in range(n):
        for j in range(m):
            B[i, j] = A[i, j]


@T.prim_func
def only_one(a: T.handle, B: T.Buffer((1,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B[0] = A[1]


@T.prim_func
def inside(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for io, ii in T.grid((n + 3) // 4, 4):
        with T.block("B"):
            vi = T.axis.spatial(n, io * 4 + ii)
            T.where(io * 4 + ii < n)
            B[vi] = A[n - 1 - vi]


@T.prim_func
def by_table(a: T.handle, rows: T.Buffer((5,), "int32"), B: T.Buffer((5,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    for i in range(5):
        B[i] = A[rows[i]]


@T.prim_func
def in_condition(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
    for io, ii in T.grid(4, 4):
        with T.block("B"):
            vi = T.axis.spatial(13, io * 4 + ii)
            T.where(A[io * 4 + ii] > T.float32(0) and io * 4 + ii < 13)
            B[vi] = A[12 - vi]
