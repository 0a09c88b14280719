# Kernels for an OpenCL device: threads, shared memory with barriers, textures, parallel loops. What a
# device cannot run is refused at its place.
# RUN: for f in shared tiles tex par table lanes nested; do pleat compile %s --func $f --target opencl -o %t/$f.cl > /dev/null; sed '/^#pragma/,/^#endif$/d; /^typedef [a-z]* u*int/d; /^#define [IU_]/d; /^#if _/,/^#endif$/d' %t/$f.cl; done
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func outside
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func rows
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func one_element
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func both
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func inside
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func waits
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func own
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func flat
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func serial
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func twice
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func meet
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func add
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.cl --func add_rows
# RUN 1: pleat compile %s --target opencl -o %t/x.c
# RUN 1: pleat compile opencl_refused.py --target opencl -o %t/x.c --func sized
# RUN 1: pleat compile %s --target opencl -o %t/x.c --func par --openmp
# RUN 2: pleat run opencl_refused.py --target opengl --func flat
from pleat.script import tir as T


@T.prim_func
def shared(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    for b in T.thread_binding(6, thread="blockIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((7,), "float32", scope="shared")
            for t in T.thread_binding(7, thread="threadIdx.x"):
                S[t] = A[b, t]
            for t in T.thread_binding(7, thread="threadIdx.x"):
                with T.sblock("inner"):
                    L = T.alloc_buffer((2,), "float32", scope="local")
                    L[0] = S[6 - t] + 1.0
                    L[1] = L[0] * S[t]
                    C[b, t] = L[0] * 2.0 + L[1]


# The shared rows are filled anew in each step of a serial loop, by fewer threads than the block has.
@T.prim_func
def tiles(A: T.Buffer((3, 5, 4), "float32"), C: T.Buffer((3, 7), "float32")):
    for b in T.thread_binding(3, thread="blockIdx.y"):
        for t in T.thread_binding(7, thread="threadIdx.x"):
            with T.sblock("block"):
                S = T.alloc_buffer((4,), "float32", scope="shared")
                C[b, t] = 0.0
                for k in range(5):
                    for u in T.thread_binding(4, thread="threadIdx.x"):
                        S[u] = A[b, k, u]
                    C[b, t] = C[b, t] + S[t % 4] * S[0]


@T.prim_func
def tex(A: T.Buffer((5, 3, 4), "float32"), C: T.Buffer((5, 3, 4), "float32")):
    B = T.alloc_buffer((5, 3, 4), "float32", scope="global.texture", axis_separators=[1])
    for i in T.thread_binding(5, "blockIdx.x"):
        for j in T.thread_binding(3, "threadIdx.x"):
            for k in T.vectorized(4):
                B[i, j, k] = A[i, j, k] + 1.0
    for i in T.thread_binding(5, "blockIdx.x"):
        for j in T.thread_binding(3, "threadIdx.x"):
            for k in T.vectorized(4):
                C[i, j, k] = B[4 - i, j, k] + B[i, j, 0]


@T.prim_func
def par(A: T.Buffer((6, 17), "float32"), C: T.Buffer((6, 17), "int8")):
    for b in T.parallel(6):
        for t in T.vectorized(16):
            C[b, t] = T.cast(A[b, t] * 100.0, "int8")
        C[b, 16] = T.int8(1)

# An array of constants has the words of its device.
@T.prim_func
def table(A: T.Buffer((5,), "int32"), C: T.Buffer((5,), "float32")):
    K = T.allocate_const([1.5, 2.0, 3.0], "float32", (3,))
    B = T.Buffer((3,), "float32", data=K)
    for i in T.thread_binding(5, "threadIdx.x"):
        C[i] = B[A[i] % 3] * 2.0


# A device has vectors of up to 16 lanes.
@T.prim_func
def lanes(A: T.Buffer((5, 32), "float32"), C: T.Buffer((5, 32), "float32")):
    for i in T.parallel(5):
        for j in T.vectorized(32):
            C[i, j] = A[i, j] + 1.0


# Loops and conditions around loops over blocks run on the host, which starts several kernels. B is
# used by two of them.
@T.prim_func
def nested(A: T.Buffer((4, 30), "float32"), n: T.int32, C: T.Buffer((4, 30), "float32")):
    for s in range(4):
        B = T.alloc_buffer((30,), "float32")
        for b in T.thread_binding(6, "blockIdx.x"):
            for t in T.thread_binding(5, "threadIdx.x"):
                B[b * 5 + t] = A[s, b * 5 + t] * T.float32(2)
        for b in T.thread_binding(30 - s, "blockIdx.x"):
            C[s, b] = B[29 - b]
        for k in range(s):
            C[s, 29 - k] = T.Cast("float32", k)
            if n > 2:
                for b in T.thread_binding(3, "blockIdx.y"):
                    C[s, b] = C[s, b] + T.float32(1)
            else:
                for b in T.thread_binding(n, "blockIdx.y"):
                    C[s, b] = C[s, b] - T.float32(1)
