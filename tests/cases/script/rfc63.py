# RUN: pleat opt %s
# RFC 63, "Declaration of buffer", "Generalizing buffer accesses" and "Removing pre-flattened
# buffer". errors_rfc63.py has what cannot be read as it stands there.
from tvm.script import tir as T


@T.prim_func
def buffer_alias(A: T.Buffer[(16,), "float"]):
    A_vector = T.buffer_decl([4], "float32x4", data=A.data)


@T.prim_func
def buffer_alias_used(A: T.Buffer[(16,), "float"]):
    A_vector = T.buffer_decl([4], "float32x4", data=A.data)
    A_vector[1] = A_vector[0]


@T.prim_func
def load_and_store(A: T.Buffer[(16,), "float"]):
    T.store(A.data, T.ramp(0, 1, 4), T.load("float32x4", A.data, T.ramp(4, 1, 4)), True)


@T.prim_func
def fn(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.buffer_decl(X.data, [6], "float32")
    for i in T.grid(6):
        X_flattened[i] = T.float32(i)


@T.prim_func
def memory_last(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.decl_buffer([6], "float32", X.data)
    X_flattened[5] = T.float32(1)
