# RUN 1: pleat opt %s
# Names that are not defined, and names that are something else.
from tvm.script import tir as TT


@TT.prim_func
def names(input: TT.Buffer((4, 5), "float32"), n: TT.int32, n: TT.int32):
    for i in range(4):
        input[i, 0] = inptu[i, 1]
        input[i, 0] = TT.exq(input[i, 1])
        input[i, 0] = TT.flot32(1)
        input[i, 0] = T.float32(1)
        input[i, 0] = foo(input[i, 1])
        n[0] = 1
        input[i, 0] = input
        input[i] = 1
        input[i, 0] = input[0, 1, 2]
        input.shape = 3
        input[i, 0] = input.shapes
        input[i, 0] = input.shape[7]
        twice = twise + twise
        input[i, 0] = twice
    for i in TT.parallell(4):
        input[i, 0] = 1
    for i, j in TT.grid(4):
        input[i, j] = 1
    for i in foo(4):
        input[i, 0] = 1
    with TT.blok("x"):
        input[0, 0] = 1
    with open("x") as f:
        input[0, 0] = f
    input[0, 0] = i
    unknown[0] = 1
    TT.unknown(3)


@TT.prim_func
def names(A: TT.Buffer((4, 5), "float32")):
    pass


@X.prim_func
def other(A: TT.Buffer((4, 5), "float32")):
    pass


@T.prim_func
def fields(A: T.Buffer((4,), "int32"), n: T.int32):
    A[n.q] = 1
    A[0] = n.q + missing.q + missing.r
    with T.block("b"):
        v = T.axis.S(4, n)
        T.reads(A[v.q])
    w = T.allocate([4, -2], "int32")
