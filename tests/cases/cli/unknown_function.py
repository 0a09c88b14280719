# A call of a function that this process does not have is refused at its place; in a file, the call is
# for the linker.
# RUN 1: pleat run %s --fill random
# RUN 1: pleat verify %s --target c
# RUN: pleat compile %s -o %t/call.c | grep -c call
# RUN: pleat compile %s -o %t/linked.o | grep -c call
from pleat.script import tir as T


@T.prim_func
def call(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    for i in range(5):
        B[i] = T.call_extern("float32", "sqrtf", A[i]) + T.call_extern("float32", "no_such", A[i])
