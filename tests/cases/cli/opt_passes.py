# Passes by name, 'lower' for all of them, and where they stop.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops
# RUN: pleat opt %s --pass lower --stop-after vectorize_loops --func scale
# RUN: pleat opt - --pass convert_blocks < %s
# RUN: pleat opt %s --pass lower --verify-each -o %t/lowered.py | cat
# RUN: pleat opt %t/lowered.py > %t/again.py && cmp %t/lowered.py %t/again.py
from pleat.script import tir as T

@T.prim_func
def scale(A: T.Buffer((7, 16), "float32"), B: T.Buffer((7, 16), "float32")):
    for i in T.parallel(7):
        for j in T.vectorized(16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2.0)
