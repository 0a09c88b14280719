# Each is refused by target opencl; opencl.py compiles them.
# RUN: pleat opt %s > /dev/null
from pleat.script import tir as T


# Memory of a thread that another thread would read.
@T.prim_func
def outside(C: T.Buffer((6, 7), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        with T.sblock("block"):
            L = T.alloc_buffer((7,), "float32", scope="local")
            for t in T.thread_binding(7, thread="threadIdx.x"):
                L[t] = 1.0
            for t in T.thread_binding(7, thread="threadIdx.x"):
                C[b, t] = L[6 - t]


@T.prim_func
def rows(A: T.Buffer((5, 6), "float32", scope="global.texture", axis_separators=[1]),
         C: T.Buffer((5, 6), "float32")):
    for i, j in T.grid(5, 6):
        C[i, j] = A[i, j]


@T.prim_func
def one_element(A: T.Buffer((5, 8), "float32"),
                C: T.Buffer((5, 8), "float32", scope="global.texture", axis_separators=[1])):
    for i, j in T.grid(5, 8):
        C[i, j] = A[i, j]


@T.prim_func
def both(C: T.Buffer((5, 8), "float32", scope="global.texture", axis_separators=[1])):
    for i in T.parallel(5):
        for k in T.vectorized(4):
            C[i, k] = C[i, k + 4]


# The host starts kernels, but does not read the tensor that says which.
@T.prim_func
def inside(A: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    for i in range(3):
        if A[i] > 0.0:
            for b in T.thread_binding(2, thread="blockIdx.x"):
                C[i * 2 + b] = A[b]


# A loop over threads under a condition that differs between them.
@T.prim_func
def waits(A: T.Buffer((8,), "float32"), C: T.Buffer((8, 4), "float32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        if A[t] > 0.0:
            for u in T.thread_binding(4, "threadIdx.y"):
                C[t, u] = A[u]


# Each thread outside fills the shared memory with a value of its own.
@T.prim_func
def own(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((4,), "int32", scope="shared")
            for u in range(4):
                S[T.max(T.min(A[t], 3), u)] = A[t] + A[u]
            C[t] = S[0] + S[1]


@T.prim_func
def flat(A: T.Buffer((5, 8), "float32", scope="global.texture"), C: T.Buffer((5, 8), "float32")):
    for i, j in T.grid(5, 8):
        C[i, j] = A[i, j]


@T.prim_func
def serial(A: T.Buffer((5, 8), "float32"), C: T.Buffer((5, 8), "float32")):
    B = T.alloc_buffer((5, 8), "float32", scope="global.texture", axis_separators=[1])
    for i in range(5):
        for j in T.vectorized(8):
            B[i, j] = A[i, j]
    for i, j in T.grid(5, 8):
        C[i, j] = B[4 - i, j]


# Each step of the outer loop writes every element.
@T.prim_func
def twice(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        for u in T.thread_binding(8, "threadIdx.x"):
            C[u] = A[u] * 2.0


# Neighbours write one element.
@T.prim_func
def meet(A: T.Buffer((8,), "float32"), C: T.Buffer((4,), "float32")):
    for t in T.thread_binding(8, "threadIdx.x"):
        C[t // 2] = A[t]


# A sum over threads needs another form on a device.
@T.prim_func
def add(A: T.Buffer((8, 5), "float32"), C: T.Buffer((8,), "float32")):
    for b in T.thread_binding(8, "blockIdx.x"):
        for t in T.thread_binding(5, "threadIdx.x"):
            C[b] = C[b] + A[b, t]


# The same in code whose addresses are computed outside of the loop over threads.
@T.prim_func
def add_rows(A: T.Buffer((5, 3, 7), "float32"), C: T.Buffer((2, 5), "float64")):
    for i, j in T.grid(5, 3):
        for t in T.thread_binding(7, "threadIdx.x"):
            C[j % 2, i] = T.Cast("float64", T.Cast("float32", C[j % 2, i]) + A[i, j, t])


# A host program is written for one size.
@T.prim_func
def sized(a: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            if b * 64 + t < n:
                C[b * 64 + t] = A[b * 64 + t]
