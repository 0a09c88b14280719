# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def f(n: T.int32):
    T.bind(n + 1)
    T.evaluate(T.call_intrin("int32"))
    T.evaluate(T.call_intrin("int32", "tir.nothing"))
    x = T.bind(n, "int64")
