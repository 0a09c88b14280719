# A buffer over the memory of another one, from the address of an element on.
# RUN: pleat opt %s
# RUN: for f in parts rows; do pleat verify %s --func $f | grep -o "agrees with the interpreter"; done
# RUN 1: pleat run %s --func beyond --fill random
from pleat.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def parts(A: T.Buffer((8,), "float32")):
        B = T.decl_buffer((4,), "float32", data=T.address_of(A[4]))
        for i in range(4):
            B[i] = A[i] + B[i]

    @T.prim_func
    def rows(A: T.Buffer((3, 5), "int32"), C: T.Buffer((5,), "int32")):
        for k in range(3):
            row = T.Buffer((5,), "int32", data=T.address_of(A[k, 0]))
            for i in range(5):
                C[i] = T.if_then_else(k == 0, 0, C[i]) + row[i]

    @T.prim_func
    def beyond(A: T.Buffer((8,), "float32")):
        B = T.decl_buffer((4,), "float32", data=T.address_of(A[5]))
        for i in range(4):
            B[i] = T.float32(1)
