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


# "Future possibilities": domains that are not those of affine bindings.
@T.prim_func
def domains_left_out(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), idx: T.Buffer((7,), "int32"),
                     n: T.int32):
    for i, j, k in T.grid(4, 8, n):
        with T.block("gaps"):
            vi = T.axis.S(i * 32 + j)
            B[vi, 0] = A[vi, 0]
        with T.block("loaded"):
            vi = T.axis.S(idx[i])
            B[vi, 0] = A[vi, 0]
        with T.block("products"):
            vi = T.axis.S(i * i)
            vj = T.axis.R(k * n)
            B[vi, vj] = A[vi, vj]
        with T.block("one loop twice"):
            vi = T.axis.S(i * 4 + i)
            vj = T.axis.R(j + j // 2)
            B[vi, vj] = A[vi, vj]
        with T.block("no binding"):
            vi = T.axis.S(dom=4)
            vj = T.axis.R()
            vk = T.axis.R(T.float32(2))
            B[vi, vj] = A[vi, vj]
        with T.block("residues"):
            vi = T.axis.S((j + 4) % 9)
            vj = T.axis.S(k % 3)
            vk = T.axis.S(j % n)
            B[vi, vj] = A[vi, vk]
