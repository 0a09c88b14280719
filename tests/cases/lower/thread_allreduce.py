# A reduction over threads becomes a tree over shared memory. Threads that do not take part have a row of
# it each; values that are reduced together are all computed before one is stored. Threads of a target with
# warps exchange values.
# RUN: pleat opt %s --pass thread_allreduce --verify-each
# RUN: pleat opt %s --pass thread_allreduce -o %t/once.py && pleat opt %t/once.py --pass thread_allreduce | diff %t/once.py -
from tvm.script import tir as T

@T.prim_func
def rows(A: T.Buffer((4, 96), "float32"), B: T.Buffer((4,), "float32")):
    for y in T.thread_binding(4, thread="threadIdx.y"):
        for x in T.thread_binding(96, thread="threadIdx.x"):
            R = T.decl_buffer((1,), scope="local")
            with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), "reduce_scope", T.int32(0)):
                T.tvm_thread_allreduce(T.uint32(1), A[y, x], T.bool(True), R[0], x)
            if x == 0:
                B[y] = R[0]

@T.prim_func
def arg(A: T.Buffer((5,), "float32"), B: T.Buffer((1,), "float32"), I: T.Buffer((1,), "int32")):
    for x in T.thread_binding(5, thread="threadIdx.x"):
        R = T.decl_buffer((1,), scope="local")
        S = T.decl_buffer((1,), "int32", scope="local")
        with T.attr(T.comm_reducer(lambda a, i, b, j: (T.Select(a >= b, a, b), T.Select(a >= b, i, j)), [T.float32(-1), T.int32(-1)]), "reduce_scope", 0):
            T.tvm_thread_allreduce(T.uint32(2), A[x], x, x < 3, R[0], S[0], x)
        if x == 0:
            B[0] = R[0]
            I[0] = S[0]

@T.prim_func
def in_warps(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2,), "float32")):
    T.func_attr({"target": T.target("cuda")})
    for y in T.thread_binding(2, thread="threadIdx.y"):
        for x in T.thread_binding(64, thread="threadIdx.x"):
            R = T.decl_buffer((1,), scope="local")
            with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), "reduce_scope", T.int32(0)):
                T.tvm_thread_allreduce(T.uint32(1), A[y, x], T.bool(True), R[0], x)
            B[y] = R[0]

@T.prim_func
def arg_in_a_warp(A: T.Buffer((4,), "float32"), I: T.Buffer((1,), "int32")):
    T.func_attr({"target": T.target("webgpu -supports_subgroups=1")})
    for x in T.thread_binding(4, thread="threadIdx.x"):
        R = T.decl_buffer((1,), scope="local")
        S = T.decl_buffer((1,), "int32", scope="local")
        with T.attr(T.comm_reducer(lambda a, i, b, j: (T.Select(a >= b, a, b), T.Select(a >= b, i, j)), [T.float32(-1), T.int32(-1)]), "reduce_scope", 0):
            T.tvm_thread_allreduce(T.uint32(2), A[x], x, True, R[0], S[0], x)
        I[0] = S[0]
