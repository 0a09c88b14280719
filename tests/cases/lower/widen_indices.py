# Arithmetic on arguments and loaded numbers may overflow; on loops and sizes it is taken not to.
# A cast of an unsigned number to as many bits is computed as it is written.
# RUN: pleat opt %s --pass widen_indices
from pleat.script import tir as T


@T.prim_func
def arguments(A: T.Buffer((8, 5), "float32"), n: T.int32, m: T.int64):
    A[n * n, m + T.int64(1)] = 1.0
    for i in range(8):
        if i + n < 8 and n >= 0 and not n * 2 == i:
            A[i + n, n % 5] = T.if_then_else(n << 1 < 4, A[T.abs(n) % 8, 4], T.float32(0))


@T.prim_func
def let(A: T.Buffer((8,), "float32"), at: T.Buffer((8,), "int32"), small: T.Buffer((8,), "int8")):
    k: T.int32 = at[0] * at[1]
    s: T.int32 = T.Cast("int32", small[0]) * 3
    assert k % 3 == 0, "a multiple"
    A[k % 8] = A[s + 4] * T.Cast("float32", k)
    while at[k - 1] + 1 < 7:
        A[T.min(at[0], 7)] = 2.0
        A[T.Ramp(at[0] + 1, 2, 4)] = T.Broadcast(T.float32(3), 4)


@T.prim_func
def loops(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
    for i in T.serial(n, m):
        A[i] = 1.0
    for i in T.parallel(m):
        A[i] = A[i + 1]


# A product that leaves its type may wrap around to a count although it is negative.
@T.prim_func
def counts(A: T.Buffer((8,), "float32"), n: T.int32, m: T.int32):
    for i in T.parallel(T.max(n * m, 0)):
        if n * m < 8:
            A[i] = 1.0


@T.prim_func
def sizes(a: T.handle, by: T.Buffer((1,), "uint32")):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.decl_buffer((n * m,), "float32", data=A.data)
    for i, j in T.grid(n, m):
        B[i * m + j] = A[T.Cast("int32", by[0] * T.uint32(3)), j]


@T.prim_func
def bits(A: T.Buffer((1024,), "int32"), x: T.Buffer((64,), "int32"), n: T.int32):
    for i, j in T.grid(16, 64):
        A[i * 64 + (j ^ (i % 8))] = A[i * 64 + (j ^ (x[j] & 7))]
        if i * 64 + (j >> 2 | 8) < ((n * n) & 15) + (n & x[0]):
            A[i * 64 + (j + n) % 64] = A[(j ^ n) + ((x[j] * 5 + n) & 63) + (x[0] >> 1)]
