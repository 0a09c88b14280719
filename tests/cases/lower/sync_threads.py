# Barriers where threads may access one element of shared memory in another order than the program states.
# RUN: pleat opt %s --pass sync_threads
# RUN: pleat opt %s --pass ThreadSync -o %t/once.py && pleat opt %t/once.py --pass ThreadSync | diff %t/once.py -
from tvm.script import tir as T


@T.prim_func
def mirrored(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        S = T.decl_buffer((16,), scope="shared")
        for x in T.thread_binding(16, thread="threadIdx.x"):
            S[x] = A[b, x]
            B[b, x] = S[15 - x]


@T.prim_func
def cooperative(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        S = T.decl_buffer((16,), scope="shared")
        for x in T.thread_binding(16, thread="threadIdx.x"):
            for k in range(3):
                for y in T.thread_binding(16, thread="threadIdx.x"):
                    S[y] = A[b, y]
                B[b, x] = S[15 - x]


@T.prim_func
def own(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.decl_buffer((16,), scope="shared")
    for x in T.thread_binding(16, thread="threadIdx.x"):
        S[x] = A[x]
        for k in range(5):
            S[x] = S[x] * 2.0
        B[x] = S[x]

@T.prim_func
def two(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    S = T.decl_buffer((2, 8), scope="shared")
    for x in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(6):
            S[k % 2, x] = A[k, x]
            B[k, x] = S[k % 2, 7 - x]

@T.prim_func
def carried(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), n: T.int32):
    S = T.decl_buffer((17,), scope="shared")
    R = T.decl_buffer((17,), scope="shared")
    for x in T.thread_binding(16, thread="threadIdx.x"):
        S[x] = A[x]
        for k in range(n):
            R[x] = S[x + 1]
            S[x] = R[x]
        B[x] = S[x]

@T.prim_func
def rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    S = T.decl_buffer((4, 8), scope="shared")
    for y in T.thread_binding(4, thread="threadIdx.y"):
        for x in T.thread_binding(8, thread="threadIdx.x"):
            S[y, x] = A[y, x]
            B[y, x] = S[y, 7 - x]
            if y < 2:
                B[y, x] = B[y, x] + 1.0

@T.prim_func
def uniform(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    S = T.decl_buffer((8,), scope="shared")
    for x in T.thread_binding(8, thread="threadIdx.x"):
        if n > 3:
            S[x] = A[x]
            B[x] = S[7 - x]
        S[7 - x] = 3.0
        v: T.float32 = S[x]
        B[x] = B[x] + v

@T.prim_func
def dynamic(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    S = T.decl_buffer((8,), scope="shared.dyn")
    for x in T.thread_binding(8, thread="threadIdx.x"):
        S[x] = A[x]
        B[x] = S[7 - x]
