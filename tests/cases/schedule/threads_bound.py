# The threads of a device run at once: a reduction that is bound to them is refused where a loop over the data is
# inside of theirs, since each thread would need partial results of all elements.
# RUN 1: pleat compile %s --target opencl -o bound.cl
from pleat.script import tir as T

@T.prim_func
def row_sums(A: T.Buffer((5, 13), "float32"), B: T.Buffer((5,), "float32")):
    for k in T.thread_binding(13, thread="threadIdx.x"):
        for i in range(5):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
