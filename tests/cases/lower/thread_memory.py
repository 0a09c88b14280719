# Threads share memory that is allocated inside of the loop over them; a barrier is missing.
# RUN 1: pleat check %s
# RUN 1: pleat opt virtual_sync.py --pass ThreadSync
from tvm.script import tir as T


@T.prim_func
def mirrored(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for x in T.thread_binding(4, thread="threadIdx.x"):
        S = T.decl_buffer((4,), "int32", scope="shared")
        S[x] = A[x]
        B[x] = S[3 - x]
