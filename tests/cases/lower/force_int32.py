# Indices and sizes become int32 where all of them are proved to fit; otherwise the function is
# refused, and so is one whose buffers have int64 elements.
# RUN: for f in blocks threads; do pleat opt %s --func $f --pass force_int32 --verify-each | sed -n "/def $f/,/^$/p"; done
# RUN 1: pleat opt %s --func elements --pass force_int32
# RUN 1: pleat opt %s --func parameter --pass force_int32
# RUN 1: pleat opt %s --func large --pass force_int32
from tvm.script import tir as T


@T.prim_func
def blocks(A: T.Buffer((T.int64(128),), "float32"), B: T.Buffer((128,), "float32")):
    T.func_attr({"constants": {"A": A}})
    for i in T.serial(T.int64(16)):
        for j in T.serial(T.int64(8)):
            with T.block("B"):
                vi = T.axis.spatial(T.int64(128), i * T.int64(8) + j)
                B[vi] = A[vi] + T.float32(1)


@T.prim_func
def threads(A: T.Buffer((T.int64(64),), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    A[T.Cast("int64", bx) * T.int64(32) + T.Cast("int64", tx)] = T.float32(1)


@T.prim_func
def elements(A: T.Buffer((5,), "int64")):
    A[3] = T.int64(1)


@T.prim_func
def parameter(A: T.Buffer((5,), "float32"), n: T.int64):
    if n > T.int64(3):
        A[3] = T.float32(1)


@T.prim_func
def large(A: T.Buffer((T.int64(6442450944),), "int8")):
    for i in range(T.int64(3)):
        A[i * T.int64(2147483648)] = T.int8(1)
