# RUN 1: pleat opt %s --pass sync_threads
from tvm.script import tir as T


@T.prim_func
def some_threads(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    S = T.decl_buffer((16,), scope="shared")
    for x in T.thread_binding(16, thread="threadIdx.x"):
        if x < 8:
            S[x] = A[x]
            B[x] = S[7 - x]
