# The init of a block becomes an if on the first iteration of its reduction variables, before the
# body. A reduction over one element has no condition, and a domain may begin above 0. Where a loop
# may have no iterations, a condition before it stores the init.
# RUN: pleat opt %s --pass init_blocks --verify-each
# RUN: pleat opt %s --pass init_blocks -o %t/once.py && pleat opt %t/once.py --pass init_blocks | diff %t/once.py -
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 9, 1), "float32"), B: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    for i, j, k in T.grid(5, 7, 1):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            vj = T.axis.reduce((2, 9), j + 2)
            with T.init():
                B[vi] = T.float32(0)
                with T.block("inner"):
                    C[vi] = T.float32(1)
            B[vi] = B[vi] + A[vi, vj, vk]
    for i, k in T.grid(5, 1):
        with T.block("one"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(3)
            C[vi] = C[vi] * A[vi, 0, vk]


@T.prim_func
def g(a: T.handle, L: T.Buffer((7,), "int32"), B: T.Buffer((3,), "float32"), C: T.Buffer((2,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (8, 7, n), "float32")
    for k_0, i in T.grid(n, 3):
        if i < 2:
            for k_1 in range(4):
                with T.block("sum"):
                    vi = T.axis.spatial(3, i)
                    vk = T.axis.reduce(8, k_1 * 2 + k_0)
                    T.where(k_1 * 2 + k_0 < 8 and i > 0)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vk, vi, 0]
    for j, i, k in T.grid(7, 2, T.min(L[3], 3)):
        with T.block("ragged"):
            vj = T.axis.reduce(7, j)
            vi = T.axis.spatial(2, i)
            vk = T.axis.reduce(3, k)
            with T.init():
                C[vi] = T.float32(1)
            C[vi] = C[vi] + A[vi, vj, vk]
    for i, k in T.grid(2, 0):
        with T.block("none"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(9)
            C[vi] = C[vi] * A[vi, 0, vk]
