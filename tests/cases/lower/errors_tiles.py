# Regions and layouts of tiles speak of the axes of their buffers, which flattening removes.
# RUN 1: pleat opt %s --pass flatten_buffers
from tvm.script import tirx as T


@T.prim_func
def regions(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    T.tile.copy(A[0:4, 0:4], B[4:8, 0:4])


@T.prim_func
def layouts(A: T.Buffer((8, 4), "float32", layout=T.TileLayout(T.S[(8, 4):(1, 8)]))):
    A[3, 1] = T.float32(7)
