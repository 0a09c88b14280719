# RUN 1: pleat check %s
# Intrinsics that are read and printed, but have no code on any target, are reported before a run.
from pleat.script import tir as T


@T.prim_func
def waits(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
    for i in range(13):
        B[i] = A[i]
        T.evaluate(T.ptx_wait_group(0))


@T.prim_func
def registered(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
    for i in range(13):
        B[i] = T.Call("float32", tvm.ir.Op.get("tir.test_blur"), [A[i]])
        if B[i] > T.float32(3):
            break


@T.prim_func
def barrier(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        A[i] = A[i] + T.float32(1)
        T.evaluate(T.tvm_storage_sync("shared"))
        B[i] = A[7 - i]
