# Pointers that count elements of memory become addresses of elements.
# RUN: pleat opt %s --pass lower_intrinsics
from tvm.script import tir as T


@T.prim_func
def pointers(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32", strides=(9, 1)),
             p: T.handle, n: T.int32):
    D = T.match_buffer(p, (8,), "float32", offset_factor=1)
    for i in range(4):
        T.evaluate(T.call_extern("int32", "f", A.access_ptr("r", offset=i * 8 + 3), B.access_ptr("w")))
        T.evaluate(T.call_extern("int32", "f", D.access_ptr("r", offset=i), B.access_ptr("w", offset=n)))
        T.evaluate(T.call_extern("int32", "f", T.tvm_access_ptr(T.type_annotation("int8"), A.data, 0, 8, 1)))
