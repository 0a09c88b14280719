# The logical accesses of conditions, extents, values with names, asserted conditions and calls.
# RUN: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 7), "int32"), B: T.Buffer((5, 7), "float32"), x: T.handle("float32")):
    for i in range(A[0, 1]):
        n: T.int32 = A[i, 2] + A[i, 3]
        if A[i, n] > 0:
            B[i, n] = T.float32(0)
        elif A[n, i] > 3:
            T.evaluate(T.call_extern("int32", "say \"hello\"", B[1, i]))
        assert A[4, 6] != 3, "no"
        while A[n, 0] < 3:
            A[n, 0] = A[n, 0] + 1
