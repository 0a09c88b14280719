# RUN 1: pleat opt %s
# Where the loop of a reduction has no iterations, the init still runs, so its bindings must stay in their domains.
from tvm.script import tir as T


@T.prim_func
def empty(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i, k in T.grid(6, 0):
        with T.block("init_runs"):
            vi = T.axis.spatial(5, i)
            vk = T.axis.reduce(0, k)
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi]
    for i, k in T.grid(0, 6):
        with T.block("nothing_runs"):
            vi = T.axis.spatial(5, i + 9)
            vk = T.axis.reduce(4, k)
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi]
