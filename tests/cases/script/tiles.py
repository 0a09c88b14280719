# RUN: pleat opt %s
# Regions and layouts of tiles are kept as they are written.
from tvm.script import ir as I
from tvm.script import tirx as T


@T.prim_func
def tiles(A: T.Buffer((16, 12), "float32", layout=None), n: T.int32):
    B = T.alloc_shared((16, 12), "float32", layout=T.TileLayout(T.S[(2, 8, 12):(96, 12, 1)]))
    C = T.alloc_local((8,), "float32", layout=T.TileLayout(T.S[8:4 @ Axis.laneid] + T.R[4:1 @ Axis.laneid]))
    D = T.alloc_buffer((7,), "float32", layout=T.TileLayout(T.S[7:n] + (1 @ Axis.laneid + 64)), allocated_addr=96)
    E = T.alloc_shared((8, 64), "float16", layout=T.ComposeLayout(3, 3, 3, T.TileLayout(T.S[512:1])))
    F = C.view(2, 4, layout=T.TileLayout(T.S[(2, 4):(1, 2)]))
    for i in range(4):
        T.tile.copy(B[i * 4:i * 4 + 4, 0:12], A[i * 4:i * 4 + 4, 0:12], cache="nc", workspace={"smem": D})
    T.tile.select(B[0, 0:12], A[1, 0:12], T.float32(1), lambda i, j: i < j)
    T.tile.select(B[0, 0:12], A[1, 0:1], T.float32(1), lambda i, j: i < j)
    T.tile.unary_reduce(C, D[0:7], I.Op("tirx.tile.sum"), None, selector=[[n < 4, E]])
    T.cta.fill(F, T.float32(0))
    T.evaluate(T.buffer_offset(A[3, 2]))
