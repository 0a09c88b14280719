# Aliases with elements before the beginning of the memory.
# RUN 1: pleat check %s
from pleat.script import tir as T


@T.prim_func
def before(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    X = T.decl_buffer((24,), "int32", data=A.data, strides=[-1], elem_offset=22)
    for i in range(24):
        B[i] = X[i]


@T.prim_func
def offset(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    X = T.decl_buffer((24,), "int32", data=A.data, elem_offset=-3)
    for i in range(24):
        B[i] = X[i]


@T.prim_func
def rows(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    X = T.decl_buffer((4, 6), "int32", data=A.data, strides=[6, -1], elem_offset=4)
    for i, j in T.grid(4, 6):
        B[i * 6 + j] = X[i, j]


@T.prim_func
def own(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    X = T.alloc_buffer((24,), "int32", strides=[-1])
    for i in range(24):
        X[i] = A[i]
    for i in range(24):
        B[i] = X[i]


# From the last element to the first.
@T.prim_func
def inside(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    X = T.decl_buffer((4, 6), "int32", data=A.data, strides=[6, -1], elem_offset=5)
    for i, j in T.grid(4, 6):
        B[i * 6 + j] = X[i, j]
