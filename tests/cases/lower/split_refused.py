# A barrier that not all threads reach is refused, and memory of which it is not known whether threads share it.
# RUN 1: pleat opt %s --pass split_at_barriers -o %t/out.py
# RUN 1: pleat verify %s --func divergent
# RUN 1: pleat verify %s --func ranges
# RUN 1: pleat verify %s --func outside
# RUN 1: for f in everywhere chosen wide masked alone; do pleat verify %s --func $f; done
from pleat.script import tir as T


@T.prim_func
def divergent(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        S = T.decl_buffer((8,), scope="shared")
        S[x] = A[x]
        if A[x] + T.float32(x) > T.float32(1):
            T.tvm_storage_sync("shared")
        B[x] = S[7 - x]


@T.prim_func
def ranges(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        n: T.int32 = x // 2
        for i in range(n + 1):
            T.tvm_storage_sync("shared")
            B[x] = A[i]


@T.prim_func
def outside(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    R = T.decl_buffer((1,), scope="local")
    for x in T.thread_binding(8, thread="threadIdx.x"):
        R[0] = A[x]
        T.tvm_storage_sync("shared")
        B[x] = R[0]


@T.prim_func
def everywhere(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        R = T.decl_buffer((1,), scope="global")
        R[0] = A[x]
        T.tvm_storage_sync("shared")
        B[x] = R[0]


@T.prim_func
def chosen(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        B[x] = A[x] if x < 3 else T.tvm_warp_shuffle_up(T.uint32(255), A[x], 1, 8, 32)


@T.prim_func
def wide(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        B[x] = T.tvm_warp_shuffle_up(T.uint32(255), A[x], 1, 6, 32)


@T.prim_func
def masked(B: T.Buffer((8,), "uint32")):
    for x in T.thread_binding(8, thread="threadIdx.x"):
        if x < 3:
            B[x] = T.tvm_warp_activemask()


@T.prim_func
def alone(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for x in range(8):
        B[x] = T.tvm_warp_shuffle_up(T.uint32(255), A[x], 1, 8, 32)
