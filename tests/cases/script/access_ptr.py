# RUN: pleat opt %s 2>/dev/null
# Addresses of the elements of buffers, and vectors of them.
from tvm.script import tir as T


@T.prim_func
def pointers(A: T.Buffer((3, 4), "float16"), n: T.int32, b: T.handle):
    m = T.int32()
    B = T.match_buffer(b, (n, 4), "int8", strides=(m, 1), offset_factor=8)
    T.call_extern("int32", "read", A.access_ptr("r"), A.access_ptr("w", offset=n))
    T.call_extern("int32", "both", A.access_ptr("rw", extent=n), B.access_ptr(3, offset=4, extent=8))
    T.call_extern("int32", "all", B.access_ptr("r"))
    T.evaluate(T.vector_sum(A.vload([n, 0], "float16x4")) + A.vload([n, 1]))
