# As hoist_branches, for conditions on threads too. They leave loops, and not the loops over threads.
# RUN: pleat opt %s --pass "HoistIfThenElse(support_block_scope_hoisting=True)"
from tvm.script import tir as T


@T.prim_func
def threads(A: T.Buffer((5, 7), "float32"), n: T.int32):
    for tx in T.thread_binding(5, thread="threadIdx.x"):
        for j in range(7):
            if tx + n < 3:
                A[tx, j] = T.float32(1)
            else:
                A[tx, j] = T.float32(2)
        for j in range(7):
            if n < 3:
                A[tx, j] = T.float32(3)
