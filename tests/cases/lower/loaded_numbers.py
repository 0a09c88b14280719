# Numbers in memory have any value: what is simplified must not overflow where these do not.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops --verify-each
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((13,), "int32"), C: T.Buffer((13,), "int32"), D: T.Buffer((13,), "int32"), E: T.Buffer((13,), "int32")):
    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = (A[vi] % 101) * (A[vi] % 101) % 101
    for i in range(13):
        with T.block("D"):
            vi = T.axis.spatial(13, i)
            D[vi] = (A[vi] * 65537 % 101 + A[vi]) % 101
    for i in range(13):
        with T.block("E"):
            vi = T.axis.spatial(13, i)
            E[vi] = (A[vi] * 4 + 3) // 4 + A[vi] % 8 // 2 + (A[vi] // 4 * 4 + A[vi] % 4)
