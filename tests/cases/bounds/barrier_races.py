# Accesses in different phases between barriers do not race; a missing barrier is found, also one at the end of
# an iteration.
# RUN 1: pleat check %s
from pleat.script import tir as T


@T.prim_func
def right(A: T.Buffer(("m", 7), "int32"), B: T.Buffer((7,), "int32")):
    m = T.int32()
    for x in T.thread_binding(7, thread="threadIdx.x"):
        S = T.decl_buffer((7,), "int32", scope="shared")
        for i in range(m):
            S[x] = A[i, x]
            T.tvm_storage_sync("shared")
            B[x] = S[6 - x]
            T.tvm_storage_sync("shared")


@T.prim_func
def missing(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    for x in T.thread_binding(7, thread="threadIdx.x"):
        S = T.decl_buffer((7,), "int32", scope="shared")
        S[x] = A[x]
        B[x] = S[6 - x]
        T.tvm_storage_sync("shared")


@T.prim_func
def iterations(A: T.Buffer((5, 7), "int32"), B: T.Buffer((7,), "int32")):
    for x in T.thread_binding(7, thread="threadIdx.x"):
        S = T.decl_buffer((7,), "int32", scope="shared")
        for i in range(5):
            S[x] = A[i, x]
            T.tvm_storage_sync("shared")
            B[x] = S[6 - x]


@T.prim_func
def sometimes(A: T.Buffer((7,), "int32"), N: T.Buffer((1,), "int32"), B: T.Buffer((7,), "int32")):
    for x in T.thread_binding(7, thread="threadIdx.x"):
        S = T.decl_buffer((7,), "int32", scope="shared")
        S[x] = A[x]
        if N[0] > 0:
            T.tvm_storage_sync("shared")
            B[x] = S[x]


@T.prim_func
def virtual(A: T.Buffer((2, 7), "int32"), B: T.Buffer((2, 7), "int32")):
    for v in T.thread_binding(2, thread="vthread"):
        for x in T.thread_binding(7, thread="threadIdx.x"):
            S = T.decl_buffer((7,), "int32", scope="shared")
            S[x] = A[v, x]
            T.tvm_storage_sync("shared")
            B[v, x] = S[6 - x]
