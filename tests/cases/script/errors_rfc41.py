# RUN 1: pleat opt %s
# RFC 41, "Reference-level explanation", as it stands: its bindings leave the domain of 512, since
# jo * 32 + ji reaches 1007 over the 32 times 16 grid.
from tvm.script import tir as T


@T.prim_func
def reference_level(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), C: T.Buffer((512, 512))):
    for i, jo, ji, k in T.grid(512, 32, 16, 512):
        with T.block("A"):
            vi = T.axis.S(512, i)
            vj = T.axis.S(512, jo * 32 + ji)
            vk = T.axis.R(512, k)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, jo, ji, k in T.grid(512, 32, 16, 512):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            vj = T.axis.S(512, jo * 32 + ji)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
