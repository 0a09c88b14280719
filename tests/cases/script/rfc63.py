# RUN: pleat opt %s
# RFC 63, "Declaration of buffers" and "Removing pre-flattened buffer".
from tvm.script import tir as T


@T.prim_func
def buffer_alias(A: T.Buffer[(16,), "float"]):
    A_vector = T.buffer_decl([4], "float32x4", data=A.data)
    A_vector[1] = A_vector[0]


@T.prim_func
def fn(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.buffer_decl(X.data, [6], "float32")
    for i in T.grid(6):
        X_flattened[i] = T.float32(i)


@T.prim_func
def memory_last(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.decl_buffer([6], "float32", X.data)
    X_flattened[5] = T.float32(1)
