# RUN: pleat opt %s
# RUN: pleat opt %s --newer-names | pleat opt -
# RUN: pleat opt %s --pass lower
# RUN: pleat verify %s --func realized
# Directives that do not change a program: T.hint of TVM since 2026, T.realize of classic TVM.
from tvm.script import tir as T


@T.prim_func
def hinted(A: T.Buffer((4, 7), "float32")):
    T.hint("copy through shared memory", stages=2, names=["a", "b"])
    for i in range(4):
        with T.hint():
            for j in range(7):
                with T.hint(unroll=True):
                    A[i, j] = T.float32(1)
        A[i, 0] = T.float32(2)


@T.prim_func
def realized(A: T.Buffer((4, 7), "float32")):
    T.realize(A[0:4, 0:7], "global")
    for i in range(4):
        with T.realize(A[i, 0:3]):
            A[i, 1] = T.float32(1)
        for j in range(7):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.Cast("float32", vj)
