# Loops over threads inside of loops over the same threads: they run where each iteration of the outer one
# computes the same.
# RUN: pleat opt %s --pass lower --func fill > %t/fill.py
# RUN 1: pleat check %s
# RUN 1: pleat run %s --func grid --fill random
from tvm.script import tir as T


@T.prim_func
def fill(A: T.Buffer((6, 4), "float32"), B: T.Buffer((6, 4), "float32")):
    for b in T.thread_binding(6, "blockIdx.x"):
        for t in T.thread_binding(4, "threadIdx.x"):
            with T.block("outer"):
                vb, vt = T.axis.remap("SS", [b, t])
                S = T.alloc_buffer((4,), "float32", scope="shared")
                for u in T.thread_binding(4, "threadIdx.x"):
                    with T.block("S"):
                        vu = T.axis.spatial(4, u)
                        S[vu] = A[vb, vu]
                with T.block("B"):
                    B[vb, vt] = S[3 - vt]


@T.prim_func
def grid(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        for u in T.thread_binding(4, "threadIdx.x"):
            B[t, u] = A[t, u] + 1.0


@T.prim_func
def through(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        L = T.decl_buffer((1,), "int32", scope="local")
        n: T.int32 = A[t]
        L[0] = n
        if n > 2:
            for u in T.thread_binding(4, "threadIdx.x"):
                B[u] = L[0]


@T.prim_func
def count(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        for u in T.thread_binding(4, "threadIdx.x"):
            B[u] = B[u] + A[u]


@T.prim_func
def both(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        for u in T.thread_binding(4, "threadIdx.x"):
            B[u] = A[u]
        B[t] = 0


@T.prim_func
def calls(A: T.Buffer((4,), "int32")):
    for t in T.thread_binding(4, "threadIdx.x"):
        for u in T.thread_binding(4, "threadIdx.x"):
            T.evaluate(T.call_extern("int32", "f", t, u))
