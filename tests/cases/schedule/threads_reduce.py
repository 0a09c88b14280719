# A loop of a reduction for the threads of a block, which processors run one after the other. Padding
# has a nest of its own where its writer iterates over tiles.
# RUN: pleat opt %s --schedule threads_reduce.steps
from pleat.script import tir as T

@T.prim_func
def row_sums(A: T.Buffer((5, 13), "float32"), B: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    for i, k in T.grid(5, 13):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = B[vi] * T.float32(2)
