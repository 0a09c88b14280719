# RUN 2: pleat opt %s --print-ir-after flattn
# RUN 1: pleat opt %s --pass vectorise_loops
# RUN 1: pleat opt %s --pass vectorize_loops
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, 9), "float32")):
    with T.block("root"):
        for i in T.parallel(8):
            with T.block("row"):
                vi = T.axis.spatial(8, i)
                with T.block("inner"):
                    B = T.alloc_buffer((vi + 1,), "float32")
                    for j in range(vi + 1):
                        B[j] = T.float32(1)
                    A[vi, 0] = B[vi]
