# The init of a block becomes an if on the first iteration of its reduction variables, before the
# body. A reduction over one element has no condition, and a domain may begin above 0.
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
