# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def kernel(a: T.handle, n: T.int32, C: T.Buffer((12,), "float32")):
    A = T.match_buffer(a, (3, 4), "float32")
    A[0, 0] = T.load("int32", A.data, 0)
    A[0, 1] = T.load("float32", n, 0)
    A[0, 2] = T.load("float32x4", A.data, 0)
    T.store(A.data, T.float32(0), 1)
    T.store(A.data, 0, 1, n > 3)
    T.store(A.data, 0, T.int8(1))
    T.preflattened_buffer(n, [3])
    T.preflattened_buffer(A.data, [3])
