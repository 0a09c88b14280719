# RUN: pleat fmt %s --upgrade --newer-names -o -
# Names of values stay what they are where the newer dialect would make variables of them.
from tvm.script import tir as T


@T.prim_func
def lets(A: T.Buffer((8,), "int32"), B: T.Buffer((1,), "int32")):
    x = A[0] + 1  # kept
    y: T.int32 = x * 2
    n = T.alloc_buffer((4,), "int32", scope="local")
    for i in range(4):
        x = x + 1
        if i > 2:
            z: T.float32 = T.float32(x)
            T.evaluate(z)
        n[i] = x + y
    B[0] = n[2] + x
