# T.bind names a value, T.call_intrin states the type of a call's result, and a loop of Python's range may
# have annotations.
# RUN: pleat opt %s
from tvm.script import tirx as T


@T.prim_func
def f(A: T.Buffer((7,), "int32"), n: T.int32):
    x = T.bind(n * 2)
    y = T.bind(3, T.int64)
    T.bind(x + 1, var=z)
    for i in range(7, annotations={"pragma_unroll": 4}):
        A[i] = x + z + T.Cast("int32", y) + T.call_intrin("int32", "tirx.popcount", n)
    T.evaluate(T.call_intrin("int32", "tirx.tvm_storage_sync", "shared"))
