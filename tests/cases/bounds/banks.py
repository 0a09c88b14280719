# Bank conflicts of shared memory, before and after the step that permutes it.
# RUN: pleat check %s
# RUN: pleat opt %s --func transpose --schedule banks.steps
# RUN: pleat opt %s --func transpose --schedule banks.steps -o %t/swizzled.py > /dev/null; pleat check %t/swizzled.py
# RUN 1: pleat opt %s --func partly --schedule banks.steps
from pleat.script import tir as T


@T.prim_func
def transpose(A: T.Buffer((32, 64), "float16"), C: T.Buffer((64, 32), "float16")):
    S = T.alloc_buffer((32, 64), "float16", scope="shared")
    for b in T.thread_binding(1, "blockIdx.x"):
        for i in range(32):
            for j in T.thread_binding(32, "threadIdx.x"):
                for v in T.vectorized(2):
                    with T.block("fill"):
                        vi = T.axis.spatial(32, i)
                        vj = T.axis.spatial(64, j * 2 + v)
                        S[vi, vj] = A[vi, vj]
        for i in range(64):
            for j in T.thread_binding(32, "threadIdx.x"):
                with T.block("use"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = S[vj, vi]


# A quarter of the threads of each warp reads it.
@T.prim_func
def partly(A: T.Buffer((4, 16), "float32"), C: T.Buffer((16, 4), "float32")):
    S = T.alloc_buffer((4, 16), "float32", scope="shared")
    for b in T.thread_binding(1, "blockIdx.x"):
        for i in T.thread_binding(4, "threadIdx.y"):
            for j in T.thread_binding(16, "threadIdx.x"):
                with T.block("fill"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    S[vi, vj] = A[vi, vj]
        for i in T.thread_binding(16, "threadIdx.y"):
            for j in T.thread_binding(4, "threadIdx.x"):
                with T.block("use"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = S[vj, vi]


@T.prim_func
def declared(A: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    for b in T.thread_binding(1, "blockIdx.x"):
        S = T.decl_buffer((32, 32), "float32", scope="shared")
        F = T.decl_buffer((1024,), "float32", data=S.data, scope="shared")
        for i in T.thread_binding(32, "threadIdx.y"):
            for j in T.thread_binding(32, "threadIdx.x"):
                S[i, j] = A[i, j]
        for i in T.thread_binding(32, "threadIdx.y"):
            for j in T.thread_binding(32, "threadIdx.x"):
                C[i, j] = S[j, i] + F[i * 32 + j]
