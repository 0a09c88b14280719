# The next panel of weights is prefetched in parts while the tiles of one panel are computed: 24 lines,
# two in each of the 12 steps. Flat, the address grows by the number of the part.
# RUN: pleat opt %s --schedule prefetch_in_parts.steps
# RUN: pleat opt %s --schedule prefetch_in_parts.steps --pass convert_blocks,simplify_loops,flatten_buffers,simplify_flat
from tvm.script import tir as T


@T.prim_func
def f(X: T.Buffer((12, 32), "float32"), W: T.Buffer((5, 32, 12), "float32"),
      Y: T.Buffer((5, 12, 12), "float32")):
    for p, t, k0, k1, r, j in T.grid(5, 3, 4, 8, 4, 12):
        with T.block("b"):
            vp, vj = T.axis.remap("SS", [p, j])
            vr = T.axis.spatial(12, t * 4 + r)
            vk = T.axis.reduce(32, k0 * 8 + k1)
            with T.init():
                Y[vp, vr, vj] = T.float32(0)
            Y[vp, vr, vj] = Y[vp, vr, vj] + X[vr, vk] * W[vp, vk, vj]
