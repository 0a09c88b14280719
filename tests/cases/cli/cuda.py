# Kernels in CUDA C++: threads, shared memory with barriers, vectors that are read as one where their
# address is known to be aligned, parallel loops. What a device cannot run is refused at its place.
# RUN: for f in shared lanes par table; do pleat compile %s --func $f --target cuda -o %t/$f.cu > /dev/null; sed '/^#ifdef __CUDACC/,/^} .. namespace/d' %t/$f.cu; done
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func wide
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func deep
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func many
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func tall
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func texture
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func large
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cu --func meet
# RUN 1: pleat compile cuda_refused.py --target cuda -o %t/x.cl --func meet
from pleat.script import tir as T


@T.prim_func
def shared(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((7,), "float32", scope="shared")
            for t in T.thread_binding(7, thread="threadIdx.x"):
                S[t] = A[b, t]
            for t in T.thread_binding(5, thread="threadIdx.x"):
                C[b, t] = S[6 - t] + 1.0


@T.prim_func
def lanes(A: T.Buffer((6, 8), "float32"), n: T.int32, C: T.Buffer((6, 8), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.y"):
        for t in T.thread_binding(2, thread="threadIdx.x"):
            for v in T.vectorized(4):
                C[b, t * 4 + v] = T.max(A[b, (t * 4 + v + n) % 8], 0.0)
    for b in T.thread_binding(3, thread="blockIdx.x"):
        for t in T.thread_binding(3, thread="threadIdx.z"):
            for v in T.vectorized(2):
                C[b + 1, t * 2 + 1 + v] = A[b, t * 2 + v]


@T.prim_func
def par(A: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32")):
    for i in T.parallel(9):
        C[i] = T.if_then_else(A[i] > 0.0, A[i], T.float32("inf"))

# An array of constants has the words of its device.
@T.prim_func
def table(A: T.Buffer((5,), "int32"), C: T.Buffer((5,), "float32")):
    K = T.allocate_const([1.5, 2.0, 3.0], "float32", (3,))
    B = T.Buffer((3,), "float32", data=K)
    for i in T.thread_binding(5, "threadIdx.x"):
        C[i] = B[A[i] % 3] * 2.0
