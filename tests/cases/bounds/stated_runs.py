# Regions that do not cover the accesses of their block are a warning where the program runs, since
# code follows the accesses; --unchecked leaves it out.
# RUN: pleat run %s --fill zero | grep "^B"
# RUN: pleat verify %s --threads 1 | cut -d, -f1
# RUN: pleat compile %s -o %t/shift.c | grep -c "shift "
# RUN: pleat run %s --fill zero --unchecked | grep "^B"
from pleat.script import tir as T


@T.prim_func
def shift(A: T.Buffer((7,), "int32"), B: T.Buffer((6,), "int32")):
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] + A[vi + 1]
