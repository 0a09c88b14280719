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


# The memory of an allocated buffer, too.
@T.prim_func
def temporary(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (5, 3), "float32")
    B = T.match_buffer(b, (5, 3), "float32")
    C = T.alloc_buffer((5, 3), "float32")
    for i, j in T.grid(5, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.store(C.data, vi * 3 + vj, T.load("float32", A.data, vi * 3 + vj) + 1.0)
    for i, j in T.grid(5, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.load("float32", C.data, vi * 3 + vj) * 2.0
