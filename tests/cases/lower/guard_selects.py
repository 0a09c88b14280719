# A choice whose values may fail computes only the chosen one; a value behind a condition of its own may not, and a
# choice for each lane of a vector stays.
# RUN: pleat opt %s --pass RewriteUnsafeSelect,RewriteUnsafeSelect
from tvm.script import tir as T


@T.prim_func
def reads(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(9):
        B[i] = T.Select(i > 0, A[i - 1], T.float32(1))


@T.prim_func
def divides(A: T.Buffer((9,), "int32"), n: T.int32):
    for i in range(9):
        A[i] = T.Select(n != 0, i // n, 3) + T.Select(i < 4, i // 4, i - 2)


@T.prim_func
def calls(A: T.Buffer((9,), "float32")):
    for i in range(9):
        A[i] = T.Select(i > 3, T.call_pure_extern("float32", "f", i), T.float32(0))


@T.prim_func
def nested(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
    for i in range(9):
        B[i] = T.Select(i < 5, T.Select(i > 1, A[i - 1], T.float32(1)),
                        T.Select(T.Select(i > 1, A[i - 1], T.float32(1)) > T.float32(0), A[i], T.float32(0)))


@T.prim_func
def addresses(A: T.Buffer((9,), "float32"), n: T.int32):
    T.evaluate(T.Select(n > 0, T.isnullptr(T.address_of(A[n])), T.bool(False)))


@T.prim_func
def lanes(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    B[0:8] = T.Select(A[0:8] > T.Broadcast(T.float32(0), 8), A[0:8], T.Broadcast(T.float32(1), 8))
