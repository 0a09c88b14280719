# A reduction whose loops are bound to threads becomes a reduction over threads: each thread reduces its part, and
# the first one stores the result, combined with the first value. A block under a predicate, one behind a
# producer within the loop over threads, and one that stays: a loop over the data is inside of the threads' loop.
# RUN: pleat opt %s --pass reduce_over_threads --verify-each
# RUN: pleat opt %s --pass reduce_over_threads,lower > %t/lowered.py
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((6, 100), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "int32"), D: T.Buffer((4,), "float32")):
    P = T.alloc_buffer((8,), "int32", scope="local")
    for i_0 in range(2):
        for i_1 in T.thread_binding(4, thread="threadIdx.y"):
            for k_0 in range(4):
                for k_1 in T.thread_binding(32, thread="threadIdx.x"):
                    with T.block("B"):
                        vi = T.axis.spatial(6, i_0 * 4 + i_1)
                        vk = T.axis.reduce(100, k_0 * 32 + k_1)
                        T.where(i_0 * 4 + i_1 < 6 and k_0 * 32 + k_1 < 100)
                        with T.init():
                            B[vi] = T.float32(2)
                        B[vi] = T.max(B[vi], A[vi, vk])
    for i in range(6):
        for k in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("P"):
                vk = T.axis.spatial(8, k)
                P[vk] = vk * vk
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] - P[vk]
    for k in T.thread_binding(8, thread="threadIdx.x"):
        for i in range(4):
            with T.block("D"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    D[vi] = 0.0
                D[vi] = D[vi] + A[vi, vk]
