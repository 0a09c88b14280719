# A region's loop that was moved to begin at 0, and the workspace of each iteration, have indices to
# simplify.
# RUN: pleat opt %s --pass flatten_buffers,form_parallel_regions,simplify_regions --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((11, 17011), "float32")):
    for i in T.parallel(3, 7):
        large = T.decl_buffer((17011,), "float32")
        for j in range(17011):
            large[j] = A[i - 3, j]
        for j in range(17011):
            A[i, j] = large[17010 - j]
