# The threads of a device run at once: a reduction that is only bound to them is refused.
# RUN 1: pleat compile %s --target opencl -o bound.cl
from pleat.script import tir as T

@T.prim_func
def row_sums(A: T.Buffer((5, 13), "float32"), B: T.Buffer((5,), "float32")):
    for i in T.thread_binding(5, thread="blockIdx.x"):
        for k in T.thread_binding(13, thread="threadIdx.x"):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
