# RUN: pleat opt %s
# RFC 63, "Generalizing buffer accesses": the first of the two functions of this name; access_types.py
# has the second one.
from tvm.script import tir as T


@T.prim_func
def vector_load_from_vector_buffer(A: T.Buffer[(16,), "float32x4"]):
    assert A[0].dtype == "float32x4"
