# Each definition of a variable gets a variable of its own. Reading a script does so already; passes
# that copy statements may repeat them.
# RUN: pleat opt %s --pass convert_blocks,partition_loops,rename_repeated --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((37,), "float32"), B: T.Buffer((37,), "float32")):
    for i in range(5):
        for k in range(8):
            if i * 8 + k < 37:
                x: T.float32 = A[i * 8 + k]
                B[i * 8 + k] = x * x
