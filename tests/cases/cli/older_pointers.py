# RUN: pleat opt %s
# RUN: pleat verify %s
# Accesses of pointers, and buffers that were flattened before, as older programs write them.
from tvm.script import tir as T


@T.prim_func
def sums(a: T.handle, b: T.handle, C: T.Buffer((12,), "float32")):
    A = T.match_buffer(a, (3, 4), "float32")
    B = T.match_buffer(b, (12,), "float32")
    T.preflattened_buffer(C, [3, 4], dtype="float32", data=C.data)
    w = T.allocate([2, 2], "float32", "global")
    k = T.allocate_const([1.5, 2.5, 3.5], "float32", [3])
    for i in range(3):
        w[0] = T.load("float32", A.data, i * 4)
        T.store(w, 1, T.load("float32", A.data, i * 4 + 1, True) * T.load("float32", k, i))
        B.data[i * 4] = T.load("float32", w, 0) + T.load("float32", w, 1)
        T.store(B.data, i * 4 + 1, T.float32(7))
        T.store(B.data, T.ramp(i * 4 + 2, 1, 2), T.load("float32x2", A.data, T.ramp(i * 4 + 2, 1, 2)))
        for j in range(4):
            C[i * 4 + j] = B[i * 4 + j] * T.float32(2)
