# Texels of which lanes have conditions are computed in local memory, and written whole. Elements for
# which the condition does not hold are written too, so the loop stays where something else is stored
# to the texture, or several iterations may have the element.
# RUN: pleat opt %s --pass stage_texels --verify-each
from tvm.script import tir as T


@T.prim_func
def guarded(A: T.Buffer((5, 2, 7), "float32"), C: T.Buffer((5, 2, 7), "float32")):
    X = T.alloc_buffer((2, 2, 5, 4), "float32", scope="global.texture", axis_separators=[2])
    for f in T.thread_binding(4, "blockIdx.x"):
        for i in T.thread_binding(5, "threadIdx.x"):
            for c in T.vectorized(4):
                if f // 2 * 4 + c < 7 and i < 5 - A[0, 0, 0] * T.float32(0):
                    X[f // 2, f % 2, i, c] = A[i, f % 2, f // 2 * 4 + c]
    for i, j, c in T.grid(5, 2, 7):
        C[i, j, c] = X[c // 4, j, i, c % 4]


@T.prim_func
def chosen(A: T.Buffer((5, 3), "float16"), C: T.Buffer((5, 4), "float16")):
    X = T.alloc_buffer((5, 4), "float16", scope="global.texture", axis_separators=[1])
    for i in range(5):
        for c in T.vectorized(4):
            X[i, c] = T.if_then_else(c < 3, A[i, c], T.float16(-1))
    for i, c in T.grid(5, 4):
        C[i, c] = X[i, c]


@T.prim_func
def stored_before(A: T.Buffer((5, 3), "float32"), C: T.Buffer((5, 4), "float32")):
    X = T.alloc_buffer((5, 4), "float32", scope="global.texture", axis_separators=[1])
    for i in range(5):
        for c in T.vectorized(4):
            X[i, c] = T.float32(7)
    for i in range(5):
        for c in T.vectorized(4):
            if c < 3:
                X[i, c] = A[i, c]
    for i, c in T.grid(5, 4):
        C[i, c] = X[i, c]


@T.prim_func
def stored_in_turns(A: T.Buffer((2, 5, 4), "float32"), C: T.Buffer((5, 4), "float32")):
    X = T.alloc_buffer((5, 4), "float32", scope="global.texture", axis_separators=[1])
    for k in range(2):
        for i in range(5):
            for c in T.vectorized(4):
                if c // 2 == k:
                    X[i, c] = A[k, i, c]
    for i, c in T.grid(5, 4):
        C[i, c] = X[i, c]


@T.prim_func
def other_rows(A: T.Buffer((5, 3), "float32"), R: T.Buffer((5,), "int32"), C: T.Buffer((5, 4), "float32")):
    X = T.alloc_buffer((5, 4), "float32", scope="global.texture", axis_separators=[1])
    for i in range(5):
        for c in T.vectorized(4):
            if c < 3:
                X[R[i] % 5, c] = A[i, c]
    for i in range(5):
        C[i, 0] = T.float32(1)
