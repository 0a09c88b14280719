# RUN: pleat verify %s --func first
# RUN: pleat compile %s --func first -o %t/value.c > /dev/null; grep "'result" %t/value.h
# RUN 1: pleat compile %s --func ends -o %t/value.c
# RUN 1: pleat run %s --func lanes
# RUN: pleat check %s
# A value that a program returns is the last one of its outputs.
from pleat.script import tir as T


@T.prim_func
def first(A: T.Buffer((17,), "float32"), result: T.Buffer((2,), "int32")) -> T.int32:
    for i in range(17):
        if A[i] < T.float32(0):
            result[1] = i
            return i
    return -1


@T.prim_func
def ends(A: T.Buffer((17,), "float32")) -> T.int32:
    for i in range(17):
        if A[i] < T.float32(0):
            return i


@T.prim_func
def lanes(A: T.Buffer((17,), "float32x4")) -> "float32x4":
    return A[0]
