# Loops over threads run at once on a device, so two of their iterations that share an element are
# an error, as in parallel loops. Memory of a thread or a block is shared by no other one, and
# threads that wait for one another are not decided.
# RUN 1: pleat check %s
# RUN 1: pleat check --json thread_races_found.py
from pleat.script import tir as T


@T.prim_func
def neighbours(A: T.Buffer((13,), "float32"), C: T.Buffer((7,), "float32")):
    for t in T.thread_binding(13, thread="threadIdx.x"):
        C[t // 2] = A[t]


@T.prim_func
def sums(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5,), "float32")):
    for i in T.thread_binding(5, thread="blockIdx.x"):
        for k in T.thread_binding(7, thread="threadIdx.x"):
            C[i] = C[i] + A[i, k]


# The blocks of the device share global memory, and not what is shared in each of them.
@T.prim_func
def blocks(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5, 7), "float32")):
    S = T.alloc_buffer((7,), "float32", scope="shared")
    G = T.alloc_buffer((7,), "float32")
    for b in T.thread_binding(5, thread="blockIdx.x"):
        for t in T.thread_binding(7, thread="threadIdx.x"):
            S[t] = A[b, t]
        for t in T.thread_binding(7, thread="threadIdx.x"):
            G[t] = S[6 - t]
        for t in T.thread_binding(7, thread="threadIdx.x"):
            C[b, t] = G[t]


@T.prim_func
def own(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5, 7), "float32")):
    L = T.alloc_buffer((2,), "float32", scope="local")
    for b in T.thread_binding(5, thread="blockIdx.x"):
        for t in T.thread_binding(7, thread="threadIdx.x"):
            L[0] = A[b, t]
            C[b, t] = L[0]


@T.prim_func
def waits(A: T.Buffer((7,), "float32"), C: T.Buffer((7,), "float32")):
    S = T.alloc_buffer((7,), "float32", scope="shared")
    for t in T.thread_binding(7, thread="threadIdx.x"):
        S[t] = A[t]
        T.evaluate(T.tvm_storage_sync("shared"))
        C[t] = S[6 - t]


@T.prim_func
def with_size(a: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for b in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):
        for t in T.thread_binding(64, thread="threadIdx.x"):
            if b * 64 + t < n:
                C[b * 64 + t] = A[b * 64 + t]


@T.prim_func
def one(C: T.Buffer((1,), "float32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        C[0] = C[0] + T.float32(1)
