# The worked examples of RFC 39: NHWC to NCHWc, its flat offset, and the two-dimensional texture.
# RUN: pleat opt %s --schedule rfc39_nchwc.steps
# RUN: pleat opt %s --schedule rfc39_nchwc.steps --pass convert_blocks,simplify_loops,flatten_buffers,simplify_flat
# RUN: pleat opt %s --schedule rfc39_texture.steps
# RUN: pleat opt %s --schedule rfc39_texture.steps --pass convert_blocks,simplify_loops,flatten_buffers,simplify_flat
# RUN 1: pleat opt %s --schedule rfc39_refused.steps
from pleat.script import tir as T

@T.prim_func
def copy(A: T.Buffer((2, 6, 5, 12), "float32"), B: T.Buffer((2, 6, 5, 12), "float32")):
    for n, h, w, c in T.grid(2, 6, 5, 12):
        with T.block("B"):
            vn, vh, vw, vc = T.axis.remap("SSSS", [n, h, w, c])
            B[vn, vh, vw, vc] = A[vn, vh, vw, vc]
