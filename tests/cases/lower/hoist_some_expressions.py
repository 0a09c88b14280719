# Flags of hoist_expressions: no parts of conjunctions (4), nothing on threads (8), and no lets.
# RUN: pleat opt %s --pass 'HoistExpression(hoisted_conditionals=3, hoisted_let_bindings=0)' --verify-each
from tvm.script import tir as T


@T.prim_func
def whole(A: T.Buffer((5, 7, 3), "float32"), n: T.int32):
    for i, j, k in T.grid(5, 7, 3):
        if j < 6 and i < 2:
            A[i, j, k] = T.if_then_else(n > 3, T.float32(1), T.float32(2))


@T.prim_func
def lets(A: T.Buffer((5, 7), "int32")):
    for i in range(5):
        for j in range(7):
            x: T.int32 = i * 3
            if x < 8:
                A[i, j] = x


@T.prim_func
def threads(A: T.Buffer((8, 7), "float32"), n: T.int32):
    for t in T.thread_binding(8, "threadIdx.x"):
        for j in range(7):
            if t < 3:
                if n > 2:
                    A[t, j] = T.float32(1)
