# Loops of int16 need no guards where no operation wraps around; one of int8 that wraps keeps its guard.
# RUN: pleat check %s
# RUN: pleat compile %s --func mirror --lowered -o %t/l.py > %t/said && grep -c faults %t/l.py; true
# RUN: pleat compile %s --func wraps --lowered -o %t/l.py > %t/said && grep -c "else:" %t/l.py
# RUN: pleat verify %s --func mirror
# RUN 1: pleat verify %s --func wraps
from pleat.script import tir as T


@T.prim_func
def mirror(A: T.Buffer((300, 300), "float32"), B: T.Buffer((300, 300), "float32")):
    for i in range(T.int16(300)):
        for j in range(T.int16(300)):
            B[i, j] = A[i, T.int16(299) - j] + T.float32(1)


@T.prim_func
def wraps(A: T.Buffer((300,), "int32")):
    for i in range(T.int8(100)):
        A[i + T.int8(50)] = 1
