# RUN 1: pleat opt %s
# Two functions of one name, an extent in quotes that is none.
from pleat.script import relax as R, tir as T


@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    pass


@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    pass


@R.function
def g(x: R.Tensor(("n +", 3), "float32"), y: R.Tensor(("n", "n and m"), "float32")):
    return x
