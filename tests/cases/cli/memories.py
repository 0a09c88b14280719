# Each target says which memories it has; a buffer in another one is refused by its name, rank and
# scope. Processors run the threads of a block one after the other, so they have shared memory.
# RUN 1: for f in texture unknown fragment warp; do pleat run %s --func $f --fill zero; done; false
# RUN 1: pleat compile %s --func texture --target c -o %t/texture.c
# RUN 1: pleat compile %s --func parameter -o %t/parameter.o
# RUN 1: pleat compile %s -o %t/all.c
# RUN: pleat verify %s --func threads | sed 's/; at most.*//'
from pleat.script import tir as T


@T.prim_func
def texture(A: T.Buffer((5, 3, 4), "float32"), C: T.Buffer((5, 3, 4), "float32")):
    B = T.alloc_buffer((5, 3, 4), "float32", scope="global.texture", axis_separators=[1])
    for i, j, k in T.grid(5, 3, 4):
        B[i, j, k] = A[i, j, k] + 1.0
    for i, j, k in T.grid(5, 3, 4):
        C[i, j, k] = B[4 - i, j, k]


@T.prim_func
def unknown(A: T.Buffer((7,), "float32"), C: T.Buffer((7,), "float32")):
    B = T.alloc_buffer((7,), "float32", scope="global.vtcm")
    for i in range(7):
        B[i] = A[i] + 1.0
    for i in range(7):
        C[i] = B[6 - i]


@T.prim_func
def fragment(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16), "float32", scope="wmma.accumulator")
    for i, j in T.grid(16, 16):
        B[i, j] = A[i, j] * 2.0
    for i, j in T.grid(16, 16):
        C[i, j] = B[j, i]


@T.prim_func
def warp(A: T.Buffer((7,), "float32"), C: T.Buffer((7,), "float32")):
    B = T.alloc_buffer((7,), "float32", scope="warp")
    for i in range(7):
        B[i] = A[i] + 1.0
    for i in range(7):
        C[i] = B[6 - i]


@T.prim_func
def parameter(A: T.Buffer((5, 4), "float32", scope="global.texture", axis_separators=[1]),
              C: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(5, 4):
        C[i, j] = A[i, j]


@T.prim_func
def threads(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((7,), "float32", scope="shared")
            L = T.alloc_buffer((1,), "float32", scope="local")
            for t in T.thread_binding(7, thread="threadIdx.x"):
                S[t] = A[b, t]
            for t in T.thread_binding(7, thread="threadIdx.x"):
                L[0] = S[6 - t] + 1.0
                C[b, t] = L[0] * 2.0
