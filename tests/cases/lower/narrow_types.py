# int64 variables of loops and blocks become int32 where their values fit, with the arithmetic on them.
# A variable whose index leaves int32 stays, and so do those of unknown range. Values that are stored
# keep their type.
# RUN: for f in blocks values threads vectors; do pleat opt %s --func $f --pass narrow_types --verify-each > %t/$f.py || exit 1; done
# RUN: pleat opt %s --pass narrow_types
# RUN: pleat opt %s --pass narrow_types -o %t/once.py && pleat opt %t/once.py --pass narrow_types | diff %t/once.py -
from tvm.script import tir as T


@T.prim_func
def blocks(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
    for i in T.serial(T.int64(0), T.int64(16)):
        for j in T.serial(T.int64(0), T.int64(8)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(128), i * T.int64(8) + j)
                B[vi] = A[vi] + T.float32(1)


@T.prim_func
def values(A: T.Buffer((16,), "int64"), B: T.Buffer((15, 3), "int64")):
    for i in range(T.int64(15)):
        A[i + T.int64(1)] = A[i] + T.int64(1)
        for j in range(i % T.int64(3) + T.int64(1)):
            B[i, j] = i * T.int64(2) + j
            if i * T.int64(65) + j >= T.int64(31):
                B[i, j] = T.if_then_else(j < A[i], i, T.max(j, T.int64(2)) // T.int64(2))


@T.prim_func
def large(A: T.Buffer((T.int64(6442450944),), "int8"), B: T.Buffer((5,), "int8"), n: T.int64):
    for i, j in T.grid(T.int64(3), T.int64(5)):
        B[j] = A[i * T.int64(2**31) + j]
    for k in range(T.min(T.max(n, T.int64(0)), T.int64(5))):
        B[k] = T.int8(3)
    for l in range(n):
        if l < T.int64(5):
            B[l] = T.int8(4)


@T.prim_func
def threads(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for x in T.thread_binding(2, thread="blockIdx.x"):
        for y in T.thread_binding(T.int64(32), thread="threadIdx.x"):
            B[T.Cast("int64", x) * T.int64(32) + y] = A[T.Cast("int64", x) * T.int64(32) + y]


@T.prim_func
def vectors(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(T.int64(8)):
        B[T.Ramp(i * T.int64(8), T.int64(1), 8)] = A[T.Ramp(i * T.int64(8) + T.int64(7), T.int64(-1), 8)]
