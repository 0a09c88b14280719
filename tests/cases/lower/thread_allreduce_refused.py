# RUN 1: pleat opt %s --pass thread_allreduce
from tvm.script import tir as T


@T.prim_func
def alone(A: T.Buffer((5,), "int32"), x: T.int32):
    T.tvm_thread_allreduce(T.uint32(1), A[x], T.bool(True), A[0], x)
    with T.attr(T.comm_reducer(lambda a, b: a + b, [T.int32(0)]), "reduce_scope", 0):
        T.tvm_thread_allreduce(T.uint32(1), A[x], T.bool(True), A[0], x)
        T.tvm_thread_allreduce(T.uint32(2), A[x], A[x], T.bool(True), A[0], A[1], x)
        T.tvm_thread_allreduce(T.uint32(1), A[x], T.bool(True), x, x)
