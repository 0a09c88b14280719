# RUN 1: pleat check %s
# The offsets of all elements, in bytes, fit 64 bits.
from tvm.script import tir as T


@T.prim_func
def large(A: T.Buffer((288230376151711744, 16), "int32"), B: T.Buffer((9, 0, 4611686018427387904), "int32")):
    C = T.decl_buffer((4, 2), "int8", data=A.data, strides=(2305843009213693952, 1))
    D = T.decl_buffer((4611686018427387904,), "int8", data=A.data)
    A[0, 0] = T.Cast("int32", C[0, 0] + D[0])
