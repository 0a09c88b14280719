# RFC 63, "Generalizing buffer accesses": the combinations of buffers and indices, and the types of
# the accesses.
# RUN: pleat opt %s
from pleat.script import tir as T


@T.prim_func
def scalar_load_from_scalar_buffer(A: T.Buffer[(64,), "float32"]):
    assert A[0].dtype == "float32"


@T.prim_func
def vector_load_from_vector_buffer(A: T.Buffer[(16,), "float32x4"]):
    A_vector_2 = T.buffer_decl([32], "float32x2", data=A.data)
    assert A[0].dtype == "float32x4"
    assert A_vector_2[0].dtype == "float32x2"


@T.prim_func
def vector_load_from_scalar_buffer_option1(A: T.Buffer[(64,), "float32"]):
    assert A[T.ramp(0, 1, 4)].dtype == "float32x4"


@T.prim_func
def vector_load_from_scalar_buffer_option2(A: T.Buffer[(64,), "float32"]):
    A_vector = T.buffer_decl([16], "float32x4", data=A.data)
    assert A_vector[0].dtype == "float32x4"


@T.prim_func
def scalar_load_from_vector_buffer(A: T.Buffer[(16,), "float32x4"]):
    A_scalar = T.buffer_decl([64], "float32", data=A.data)
    assert A_scalar[0].dtype == "float32"


@T.prim_func
def nd_scalar_load_from_scalar_buffer(A: T.Buffer[(64, 64,), "float32"]):
    assert A[0, 0].dtype == "float32"
    A[0, 1] = T.cast(A[1, 0] * 2, A[0, 0].dtype)


@T.prim_func
def nd_vector_load_from_scalar_buffer(A: T.Buffer[(64, 64), "float32"]):
    assert A[0, T.ramp(0, 1, 4)].dtype == "float32x4"
    assert "float32" != A[0, T.ramp(0, 1, 4)].dtype
