# Each is refused by target cuda; cuda.py compiles them.
# RUN: pleat opt %s > /dev/null
from pleat.script import tir as T


@T.prim_func
def wide(C: T.Buffer((6, 1025), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        for t in T.thread_binding(1025, thread="threadIdx.x"):
            C[b, t] = 1.0


@T.prim_func
def deep(C: T.Buffer((6, 65), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        for t in T.thread_binding(65, thread="threadIdx.z"):
            C[b, t] = 1.0


@T.prim_func
def many(C: T.Buffer((41, 25), "float32")):
    for b in T.thread_binding(41, thread="threadIdx.x"):
        for t in T.thread_binding(25, thread="threadIdx.y"):
            C[b, t] = 1.0


@T.prim_func
def texture(A: T.Buffer((5, 8), "float32", scope="global.texture", axis_separators=[1]),
            C: T.Buffer((5, 8), "float32")):
    for i, j in T.grid(5, 8):
        C[i, j] = A[i, j]


@T.prim_func
def large(C: T.Buffer((6, 64), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        with T.sblock("block"):
            R = T.alloc_buffer((64, 100), "float32", scope="shared")
            S = T.alloc_buffer((64, 93), "float32", scope="shared")
            for t in T.thread_binding(64, thread="threadIdx.x"):
                for j in range(93):
                    R[t, j] = T.float32(1)
                    S[t, j] = T.float32(2)
            for t in T.thread_binding(64, thread="threadIdx.x"):
                C[b, t] = S[63 - t, t] + S[t, t + 29] + R[63 - t, t] + R[0, t + 36]


# Neighbours write one element.
@T.prim_func
def meet(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        C[t // 2] = A[t]


@T.prim_func
def tall(C: T.Buffer((65536, 6), "float32")):
    for b in T.thread_binding(65536, thread="blockIdx.z"):
        for t in T.thread_binding(6, thread="threadIdx.x"):
            C[b, t] = 1.0
