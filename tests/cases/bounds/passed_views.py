# Views whose data variable, which is that of their source, is passed on.
# RUN: pleat check %s
from pleat.script import tir as T


@T.prim_func
def views(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i in range(2):
        with T.block("outer"):
            vi = T.axis.spatial(2, i)
            T.reads(B[vi * 4:vi * 4 + 4, 0:8])
            T.writes(A[vi * 4:vi * 4 + 4, 0:8])
            X = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:8], (4, 8))
            Y = T.match_buffer(B[vi * 4:vi * 4 + 4, 0:8], (4, 8), offset_factor=1)
            for j, k in T.grid(4, 8):
                with T.block("inner"):
                    vj, vk = T.axis.remap("SS", [j, k])
                    T.reads()
                    T.writes(X[vj, vk])
                    Z = T.match_buffer(X[vj, vk], ())
                    Z[()] = T.float32(1)
            T.evaluate(Y.data)
