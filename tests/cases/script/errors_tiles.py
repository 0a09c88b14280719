# RUN 1: pleat opt %s
from tvm.script import tirx as T


@T.prim_func
def tiles(A: T.Buffer((16, 12), "float32")):
    B = T.alloc_shared((16, 12), "float32", layout=T.TileLayout(T.S[1:2:3]))
    C = T.alloc_shared((16, 12), "float32", layout=T.TileLayout(T.Q[1:2]))
    D = T.alloc_shared((16, 12), "float32", layout=T.TileLayout(T.S[4:1] * 2))
    E = T.alloc_shared((16, 12), "float32", layout="row")
    T.tile.copy(A[0:4], A[0:4, 0:4])
    for i in T.serial(3, unroll="yes"):
        A[i, 0] = 1
    x: T.int32 = 1.5
    y = 2
    y = T.float32(1)
    z += 1


@T.prim_func
def text_in_a_layout(A: T.Buffer((8, 4), "float32", layout=T.TileLayout(T.S[("float32", 4):(1, 8)]))):
    A[3, 1] = T.float32(7)
