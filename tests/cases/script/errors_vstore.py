# RUN 1: pleat opt %s
from pleat.script import tir as T


@T.prim_func
def lanes(A: T.Buffer((8,), "float32")):
    A.vstore([0], A.vload([0], "float32x4"), predicate=T.Ramp(0, 1, 8) < T.Broadcast(7, 8))


@T.prim_func
def indices(A: T.Buffer((8, 2), "float32")):
    A.vstore([0], T.Broadcast(T.float32(1), 4))
    A.vstore([0, 0], T.Broadcast(1, 2))
    A.vstore([0, 0])


@T.prim_func
def shuffled(A: T.Buffer((8,), "float32")):
    A.vstore([0], T.Shuffle([A[0:4]], [3, 2, 1, 0]), predicate=T.Ramp(0, 1, 4) < T.Broadcast(3, 4))
