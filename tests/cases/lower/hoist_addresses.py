# Parts of indices are computed in the outermost loop where they do not change, once for all accesses
# that share them; constants and the last loop's variable stay at the access.
# RUN: pleat opt %s --pass flatten_buffers,form_parallel_regions,hoist_addresses --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((3, 5, 7, 4), "float32"), B: T.Buffer((5, 7, 11), "float32")):
    for i in T.parallel(5):
        for j in range(7):
            for k in range(11):
                B[i, j, k] = A[1, i, j, 0] + A[2, i, j, 3]
        for j in range(7):
            B[i, j, 10] = B[i, j, 9] + A[0, i, 6 - j, 2]
