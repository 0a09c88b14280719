# A schedule in a file of its own, then passes.
# RUN: pleat opt %s --schedule opt_schedule.steps
# RUN: pleat opt %s -s opt_schedule.steps --pass lower --stop-after unroll_loops --verify-each
# RUN 1: pleat opt %s --schedule opt_schedule_refused.steps
# RUN 1: pleat opt %s --schedule nothing.steps
from pleat.script import tir as T

@T.prim_func
def matmul(A: T.Buffer((6, 5), "float32"), B: T.Buffer((5, 32), "float32"), C: T.Buffer((6, 32), "float32")):
    for i, j, k in T.grid(6, 32, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
