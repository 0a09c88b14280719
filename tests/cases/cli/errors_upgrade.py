# RUN 1: pleat fmt %s --upgrade -o -
# RUN 1: pleat opt %s
# RUN 2: pleat fmt %s --newer-names
# RUN 2: pleat fmt %s %s -o x.py
from tvm.script import tir as T

@T.prim_func
def names(A: T.Buffer[(4, 4), "float32"]):
    with T.block([4, 4], "x") as [vi]:
        A[vi, 0] = 1.0

@T.prim_func
def loops(A: T.Buffer[(4, 4), "float32"]):
    for i, j, k in T.grid(4, 2, 2):
        with T.block([4, 4], "x") as [vi, vj]:
            A[vi, vj] = 1.0

@T.prim_func
def some(A: T.Buffer[(4, 4), "float32"]):
    for i, j in T.grid(4, 4):
        with T.block([4, 4], "x") as [vi, vj]:
            T.bind(vi, i)
            A[vi, vj] = 1.0

@T.prim_func
def twice(A: T.Buffer[(4, 4), "float32"]):
    for i, j in T.grid(4, 4):
        with T.block([4, 4], "x") as [vi, vj]:
            T.bind(vi, i)
            T.bind(vi, j)
            T.bind(i, j)
            A[vi, vj] = 1.0

@T.prim_func
def one_line(A: T.Buffer[(4,), "float32"]):
    with T.block([4], "x") as [vi]: A[vi] = 1.0
