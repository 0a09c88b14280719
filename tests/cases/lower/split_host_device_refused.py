# RUN 1: pleat opt %s --pass SplitHostDevice
from tvm.script import tir as T


@T.prim_func
def blocks(A: T.Buffer((16,), "float32")):
    for x in T.thread_binding(16, thread="threadIdx.x"):
        with T.block("b"):
            v = T.axis.spatial(16, x)
            A[v] = T.float32(v)
