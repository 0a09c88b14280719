# A parameter that points to elements gets a buffer of as many elements as the caller's array has; other
# parameters stay as they are.
# RUN: pleat opt %s --pass bind_pointers
from pleat.script import ir as I
from pleat.script import tir as T


@I.ir_module
class Module:
    @T.prim_func
    def pointers(p: T.handle("float32"), q: T.handle("int8"), n: T.int32):
        A = T.decl_buffer((8,), "float32", data=p)
        B = T.decl_buffer((n,), "int8", data=q)
        for i in range(n):
            B[i] = T.cast(A[i % 8], "int8")

    @T.prim_func
    def buffers(x: T.handle, y: T.Buffer((3,), "float32")):
        X = T.match_buffer(x, (3,), "float32")
        for i in range(3):
            y[i] = X[i]
