# RUN: pleat opt %s --pass share_subexpressions
# A variable of T.iter_var with two attributes is defined twice, so that nothing of it is shared
# around both. Threads that attributes start have a variable for each of them.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((13,), "int32")):
    v = T.var("int32")
    with T.attr(T.iter_var(v, T.Range(0, 4), "DataPar", ""), "pragma_hint", 4):
        A[v * 3 + 1] = v
    with T.attr(T.iter_var(v, T.Range(0, 4), "DataPar", ""), "pragma_hint", 4):
        A[v * 3] = A[v * 3] + v


@T.prim_func
def threads(A: T.Buffer((13,), "int32")):
    v = T.var("int32")
    with T.attr(T.iter_var(v, T.Range(0, 4), "ThreadIndex", "threadIdx.x"), "thread_extent", 4):
        A[v * 3 + 1] = v
    with T.attr(T.iter_var(v, T.Range(0, 4), "ThreadIndex", "threadIdx.x"), "thread_extent", 4):
        A[v * 3] = A[v * 3] + v
