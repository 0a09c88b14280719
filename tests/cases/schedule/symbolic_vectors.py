# A loop over a part of an axis whose size is a symbol is vectorized: its index is a sum of the loop and
# of terms that its iterations have in common. An offset in memory, which the iterations may change, is
# no such term.
# RUN: pleat opt %s --func halves --schedule symbolic_vectors.steps
# RUN: pleat opt %s --func halves --schedule symbolic_vectors.steps > %t/halves.py && pleat verify %t/halves.py --dim n=13
# RUN 1: pleat opt %s --func moving --schedule symbolic_moving.steps
from tvm.script import tir as T


@T.prim_func
def halves(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(0.5)


@T.prim_func
def moving(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    at = T.alloc_buffer((1,), "int32")
    for i in range(8):
        with T.block("at"):
            vi = T.axis.spatial(8, i)
            at[0] = 7 - vi
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], at[0])
            T.writes(B[at[0] + vi])
            B[at[0] + vi] = A[vi]
