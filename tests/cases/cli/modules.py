# RUN: pleat opt %s:Second --pass lower --func double
# RUN: pleat inspect %s:First --aliases
# RUN 1: pleat check %s
# RUN: pleat check %s:First
# RUN 1: pleat opt %s
# RUN 1: pleat opt %s:Third
# RUN 1: pleat fmt %s:First
from pleat.script import ir as I, tir as T

N = 4


@I.ir_module
class First:
    @T.prim_func
    def main(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
        for i in range(N):
            B[i] = A[i] + T.float32(1)


@I.ir_module
class Second:
    @T.prim_func
    def main(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(3)

    @T.prim_func
    def double(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            B[i] = A[i] * T.float32(2)


@T.prim_func
def outside(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
    for i in range(N):
        B[i] = A[i + 1]
