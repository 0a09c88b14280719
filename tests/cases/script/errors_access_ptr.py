# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def pointers(A: T.Buffer((3, 4), "float16"), n: T.int32):
    T.call_extern("int32", "read", A.access_ptr("x"))
    T.call_extern("int32", "read", A.access_ptr("r", content_lanes=4))
    T.call_extern("int32", "read", A.access_ptr("r", length=4))
    T.call_extern("int32", "read", n.access_ptr("r"))
    T.call_extern("int32", "read", A.pointer("r"))
    T.evaluate(A.vload([0], "float16x4"))
    T.evaluate(A.vload([0, 0], "float32x4"))
