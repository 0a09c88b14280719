# RUN: pleat fmt %s --upgrade -o -
# RUN: pleat fmt %s --upgrade --newer-names -o -
# RFC 63: "Declaration of buffer", "Generalizing buffer accesses", "Removing pre-flattened buffer".
from tvm.script import tir as T


@T.prim_func
def buffer_alias(A: T.Buffer[(16,), "float"]):
    A_vector = T.buffer_decl([4], "float32x4", data=A.data)


@T.prim_func
def vector_load_from_vector_buffer(A: T.Buffer[(16,), "float32x4"]):
    A_vector_2 = T.buffer_decl([32], "float32x2", data=A.data)
    assert A[0].dtype == "float32x4"
    assert A_vector_2[0].dtype == "float32x2"


@T.prim_func
def nd_scalar_load_from_scalar_buffer(A: T.Buffer[(64, 64,), "float32"]):
    assert A[0, 0].dtype == "float32"


@T.prim_func
def fn(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.buffer_decl(X.data, [6], "float32")
    X_vector = T.buffer_decl(X.data, (3,), dtype="float32x2")  # vectors
    X_whole = T.decl_buffer(
        X.data,  # the memory
        (6,))
    for i in T.grid(6):
        X_flattened[i] = X_whole[i]
