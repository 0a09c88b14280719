# Vectors that are chosen lane by lane, but not stored so, and before they are split.
# RUN 1: pleat opt %s --pass split_lanes
# RUN 1: pleat opt %s --pass form_parallel_regions
# RUN 1: pleat opt %s --pass guard_accesses
from pleat.script import tir as T


@T.prim_func
def rows(A: T.Buffer((8,), "float32"), B: T.Buffer((2,), "float32")):
    B[0] = T.vector_sum(T.if_then_else(T.Ramp(0, 1, 8) < T.Broadcast(7, 8), A[0:8], T.Broadcast(T.float32(2), 8)))
