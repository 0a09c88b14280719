# RUN 1: pleat opt %s
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), at: T.Buffer((1,), "int32")):
    B = T.decl_buffer((4,), "int8", data=T.address_of(A[4]))
    C = T.decl_buffer((4,), "float32", data=T.address_of(A[at[0]]))
    D = T.decl_buffer((4,), "float32", data=A[0])
