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


# The number of the element has a name outside of the loop, and the sum has one inside.
@T.prim_func
def named(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        at: T.int32 = i
        for k in T.thread_binding(7, thread="threadIdx.x"):
            C[at] = C[at] + A[i, k]


@T.prim_func
def named_sum(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        for k in T.thread_binding(7, thread="threadIdx.x"):
            s: T.float32 = C[i] + A[i, k]
            C[i] = s


@T.prim_func
def named_value(A: T.Buffer((7,), "float32"), C: T.Buffer((7,), "float32")):
    for t in T.thread_binding(7, thread="threadIdx.x"):
        a: T.float32 = A[t]
        C[t // 2] = a


# Many loops stand before this one.
@T.prim_func
def late(A: T.Buffer((13,), "float32"), C: T.Buffer((7,), "float32")):
    for (
        a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19,
        a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37,
        a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55,
        a56, a57, a58, a59, a60, a61, a62, a63
    ) in T.grid(
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1
    ):
        C[0] = T.float32(0)
    for t in T.thread_binding(13, thread="threadIdx.x"):
        C[t // 2] = A[t]


@T.prim_func
def one(C: T.Buffer((1,), "float32")):
    for t in T.thread_binding(1, thread="threadIdx.x"):
        C[0] = C[0] + T.float32(1)
