# Loops of which one has no iterations are fused without a division by 0, also after another one.
# RUN: pleat opt %s --schedule fuse_without_iterations.steps
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((0, 4, 3), "float32"), C: T.Buffer((0, 4, 3), "float32")):
    for i, j, k in T.grid(4, 0, 3):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSS", [j, i, k])
            C[vi, vj, vk] = A[vi, vj, vk] + T.float32(1.0)
