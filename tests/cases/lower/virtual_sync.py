# Virtual threads have memory of their own, also where threads wait for one another.
# RUN: pleat opt %s --pass split_at_barriers --verify-each
from tvm.script import tir as T


@T.prim_func
def turned(A: T.Buffer((2, 4), "int32"), B: T.Buffer((2, 4), "int32")):
    for v in T.thread_binding(2, thread="vthread"):
        for x in T.thread_binding(4, thread="threadIdx.x"):
            S = T.decl_buffer((4,), "int32", scope="shared")
            S[x] = A[v, x]
            T.tvm_storage_sync("shared")
            B[v, x] = S[3 - x]
