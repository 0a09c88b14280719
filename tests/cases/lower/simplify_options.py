# A store of the value that is there is left out, and T.likely of a condition that is known. Options
# that allow what is always done are accepted.
# RUN: pleat opt %s --pass "Simplify(transitively_prove_inequalities=True)" --verify-each
# RUN: pleat opt %s --pass "StmtSimplify(convert_boolean_to_and_of_ors=False)" --verify-each
# RUN 1: pleat opt %s --pass "RemoveNoOp(use_dataflow_analysis=True)"
# RUN 1: pleat opt %s --pass "LoopPartition(partition_const_loop=False)"
# RUN 1: pleat opt %s --pass "LoopPartition(True, True)"
# RUN: pleat opt %s --pass "RemoveNoOp(False, 7)" --func likely
from tvm.script import tir as T


@T.prim_func
def stores(A: T.Buffer((7, 5), "int32"), B: T.Buffer((7, 5), "int32"), n: T.int32):
    for i, j in T.grid(7, 5):
        A[i, j] = A[i, j] + (3 - 3)
        A[i, j] = B[i, j]
        A[i, j] = A[j, i % 5]
        B[i, T.min(j, 4)] = B[i, j]


@T.prim_func
def likely(A: T.Buffer((32,), "float32"), n: T.int32):
    for i in range(32):
        if T.likely(i < 32):
            if T.likely(i * 3 < n):
                if T.likely(i * 3 < n):
                    A[i] = T.float32(1)
                if i * 3 < n + 1:
                    A[i] = A[i] + T.float32(2)
