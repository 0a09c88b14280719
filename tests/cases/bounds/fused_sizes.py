# The index of a fused loop is proved to stay in the tensor for all sizes, so that the program is
# read back, and runs without guards.
# RUN: pleat opt %s --schedule fused_sizes.steps
# RUN: pleat opt %s --schedule fused_sizes.steps --pass lower
from pleat.script import tir as T


@T.prim_func
def double(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, 3, m), "float32")
    B = T.match_buffer(b, (n, 3, m), "float32")
    for i, j, k in T.grid(n, 3, m):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj, vk] * T.float32(2)
