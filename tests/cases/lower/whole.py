# From blocks to regions: a tile with accumulators in registers, tails, two regions, workspace.
# RUN: pleat opt %s --pass lower --verify-each
from tvm.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((7, 5), "float32"), B: T.Buffer((5, 11), "float32"),
           C: T.Buffer((7, 11), "float32")):
    with T.block("root"):
        P = T.alloc_buffer((5, 12), "float32")
        acc = T.alloc_buffer((7, 12), "float32", scope="local")
        for k in T.parallel(5):
            for j in T.vectorized(12):
                with T.block("pad"):
                    vk, vj = T.axis.remap("SS", [k, j])
                    P[vk, vj] = T.if_then_else(vj < 11, B[vk, vj], T.float32(0))
        for i in T.parallel(7):
            for jo in range(3):
                for ji in T.vectorized(4):
                    with T.block("init"):
                        vi = T.axis.spatial(7, i)
                        vj = T.axis.spatial(12, jo * 4 + ji)
                        acc[vi, vj] = T.float32(0)
                for k in range(5):
                    for ji in T.vectorized(4):
                        with T.block("update"):
                            vi = T.axis.spatial(7, i)
                            vj = T.axis.spatial(12, jo * 4 + ji)
                            vk = T.axis.reduce(5, k)
                            acc[vi, vj] = acc[vi, vj] + A[vi, vk] * P[vk, vj]
                for ji in T.vectorized(4):
                    with T.block("store"):
                        vi = T.axis.spatial(7, i)
                        vj = T.axis.spatial(12, jo * 4 + ji)
                        T.where(jo * 4 + ji < 11)
                        C[vi, vj] = acc[vi, vj]
