# An allocation whose size changes with a loop has no place in the workspace.
# RUN 1: pleat opt %s --pass form_parallel_regions
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((13,), "float32")):
    for i in T.parallel(13):
        B = T.decl_buffer((i + 1,), "float32")
        for j in range(i + 1):
            B[j] = T.float32(j)
        A[i] = B[i]
