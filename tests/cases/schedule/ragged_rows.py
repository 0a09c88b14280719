# Two rows of 7 run as one loop of 14, in tiles of 4. A row after the last one of a pair belongs to
# the next pair: 'B' must not be computed there, or pairs could not run in parallel.
# RUN: pleat opt %s --schedule ragged_rows.steps --verify-each --pass simplify_loops
from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((6, 7, 3), "float32"), C: T.Buffer((6, 7, 3), "float32")):
    B = T.alloc_buffer((42, 3), "float32")
    for i, c in T.grid(42, 3):
        with T.block("B"):
            vi, vc = T.axis.remap("SS", [i, c])
            B[vi, vc] = A[vi // 7, vi % 7, vc] * T.float32(3.0)
    for i, j, c in T.grid(6, 7, 3):
        with T.block("C"):
            vi, vj, vc = T.axis.remap("SSS", [i, j, c])
            C[vi, vj, vc] = B[vi * 7 + vj, vc] + T.float32(1.0)
