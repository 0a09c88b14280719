# A refused step names the step, what could not be proved, and a way out.
# RUN 1: pleat opt %s --schedule refusals_1.steps
# RUN 1: pleat opt %s --schedule refusals_2.steps
# RUN 1: pleat opt %s --schedule refusals_3.steps
# RUN 1: pleat opt %s --schedule refusals_4.steps
# RUN 1: pleat opt %s --schedule refusals_5.steps
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((13, 11), "float32"), b: T.Buffer((11, 6), "float32"),
      D: T.Buffer((13, 6), "float32")):
    C = T.alloc_buffer((13, 6))
    for i, j, k in T.grid(13, 6, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * b[vk, vj]
    for i, j in T.grid(13, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
