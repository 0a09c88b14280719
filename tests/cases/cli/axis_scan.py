# RUN: pleat opt %s
# RUN: pleat verify %s
# RUN 1: pleat opt %s --schedule axis_scan.steps
# An axis whose iterations have an order, as TVM 0.27 prints it.
from tvm.script import tir as T


@T.prim_func
def running_sum(A: T.Buffer((5, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    for j in range(7):
        with T.block("start"):
            vj = T.axis.spatial(7, j)
            C[0, vj] = T.float32(0)
    for i, j in T.grid(5, 7):
        with T.block("sum"):
            vi = T.axis.scan(5, i)
            vj = T.axis.spatial(7, j)
            C[vi + 1, vj] = C[vi, vj] + A[vi, vj]
