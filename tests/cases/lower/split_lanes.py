# A condition of several lanes decides for each lane whether memory is accessed: predicated loads and
# stores, and T.if_then_else of vectors, become vectorised loops. Lanes that read what others store are
# computed first.
# RUN: pleat opt %s --pass split_lanes
# RUN: for f in copy shifted names chosen mask; do pleat verify %s --func $f | grep -o "agrees with the interpreter"; pleat verify %s --func $f --target c | grep -o "agrees with the interpreter"; done
# RUN 1: pleat run %s --func outside --fill random
from pleat.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def copy(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i in range(3):
            B.vstore([T.Ramp(i * 4, 1, 4)],
                     A.vload([T.Ramp(i * 4, 1, 4)], predicate=T.Ramp(i * 4, 1, 4) < T.Broadcast(10, 4)),
                     predicate=T.get_active_lane_mask("uint1x4", i * 4, 10))

    @T.prim_func
    def shifted(A: T.Buffer((10,), "int32")):
        A.vstore([T.Ramp(1, 1, 4)], A.vload([0], "int32x4") + T.Broadcast(1, 4),
                 predicate=T.Ramp(0, 1, 4) != T.Broadcast(2, 4))

    @T.prim_func
    def names(A: T.Buffer((3, 10), "int32"), B: T.Buffer((3, 10), "int32"), at: T.int32):
        for k in range(3):
            for i in T.parallel(5):
                B[k, i * 2:i * 2 + 2] = T.Select(A[k, i * 2:i * 2 + 2] < T.Broadcast(3, 2), T.Ramp(at, 2, 2),
                                                 T.Cast("int32x2", T.Cast("float32x2", A[k, i * 2:i * 2 + 2])))

    @T.prim_func
    def chosen(A: T.Buffer((7,), "float32"), B: T.Buffer((8,), "float32")):
        B[0:8] = T.if_then_else(T.Ramp(0, 1, 8) < T.Broadcast(7, 8), T.exp(A[0:8]), T.Broadcast(T.float32(2), 8))

    @T.prim_func
    def mask(A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "int32")):
        B.vstore([0], T.Ramp(0, 1, 8), predicate=A[0:8])

    @T.prim_func
    def outside(A: T.Buffer((10,), "float32"), B: T.Buffer((12,), "float32"), n: T.Buffer((1,), "int32")):
        for i in range(3):
            B[i * 4:i * 4 + 4] = A.vload([i * 4], "float32x4", predicate=T.get_active_lane_mask("uint1x4", i * 4, 11))
