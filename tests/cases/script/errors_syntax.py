# RUN 1: pleat opt %s
# Mistakes of syntax: each is told once, and reading goes on after it.
from pleat.script import tir as T


@T.prim_func
def a(A: T.Buffer((4,), "float32")):
    A[0] = 1 +
    A[1] = (2
    A[2] = A[0] A[1]
    for i in range(4)
        A[i] = 0
    for in range(4):
        A[0] = 1
    A[3] = 0 < A[0] < 1
    A[0] = [x for x in range(3)]
    if A[0] > 1:
    A[1] = 2
    A[2] = 12345678901234567890123
    A[2] = 0x
    A[2] = "text
    A[2] = 3 $ 4
    while A[0] > 0 pass
    A[0] = lambda 3: 4
    A[0] = {1: 2, 3}
    A[0] = A.
    A[0] = A[]
      A[0] = 1
    with T.block("x") as:
        pass
    A[0] =
    else:
        pass


@T.prim_func
def b(A: T.Buffer((4,), "float32"), 3):
    pass


@T.prim_func
def c(A T.Buffer((4,), "float32")):
    pass


@T.prim_func
x = 3


@T.prim_func
def (A):
    pass


@T.prim_func
def last(A: T.Buffer((4,), "float32")):
    A[0] = undefined_at_the_end
