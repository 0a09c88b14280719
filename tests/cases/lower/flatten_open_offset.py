# The offset of a parameter that states only what it is a multiple of is D.elem_offset in flat indices.
# RUN: pleat opt %s --pass flatten_buffers
from tvm.script import tir as T


@T.prim_func
def shifted(D: T.Buffer((8,), "float32", offset_factor=4)):
    for i in range(8):
        D[i] = D[i] + T.float32(1)
