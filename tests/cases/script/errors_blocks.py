# RUN 1: pleat opt %s
# Blocks: what stands where it may not, and bindings that cannot be.
from pleat.script import tir as T


@T.prim_func
def blocks(a: T.handle, A: T.Buffer((4, 5), "float32"), B: T.Buffer((4, 5), "float32")):
    vq = T.axis.spatial(4, 0)
    T.where(True)
    for i, j in T.grid(4, 5):
        with T.block("first"):
            vi, vj = T.axis.remap("SSS", [i, j])
            vi, vj = T.axis.remap("SX", [i, j])
            vi, vj = T.axis.remap("SS", [i, i + 1])
            vi, vj = T.axis.remap("SS", [i, z])
            vk = T.axis.reduce((0, 1, 2), i)
            vl = T.axis.spatial(4, A[0, 0])
            A[0, 0], vm = T.axis.remap("SS", [i, j])
            T.where(i < 3)
            T.where(i < 2)
            T.where(i)
            T.reads(A[vi])
            T.writes(A[vi, vj], 3)
            T.block_attr(3)
            with T.init():
                B[vi, vj] = 0
            with T.init():
                B[vi, vj] = 0
            for k in range(3):
                T.reads(A[0, 0])
                vn = T.axis.spatial(3, k)
                C = T.alloc_buffer((3,), "float32")
            M = T.match_buffer(A[0:2, 0:2], (2, 2), "float32")
            N = T.match_buffer(i, (2, 2), "float32")
            O = T.match_buffer(O[0:2, 0:2], (2, 2), "float32")
            B[vi, vj] = vn + C[0]
        with T.block(3):
            pass
    D = T.match_buffer(a, (4,), "float32", "x")
    E = T.match_buffer(b, (4,), "float32")
    D[0] = E[0]
