# Sizes of 0: programs run on arrays without elements, and what a program reads of them is refused.
# RUN: pleat run %s --func fused --fill random --dim n=0 --dim m=5 | grep "^C"
# RUN: pleat run %s --func fused --fill random --dim n=5 --dim m=0 --target c | grep "^C"
# RUN: pleat verify %s --func fused --dim n=7 --dim m=0 | sed 's/,.*//'
# RUN: pleat run %s --func sums --fill random --dim n=0 | grep "^s"
# RUN 1: pleat run %s --func first --fill random --dim n=0
# RUN 1: pleat run %s --func fused --fill random --dim n=-1 --dim m=5
from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Sizes:
    @T.prim_func
    def fused(a: T.handle, b: T.handle, c: T.handle):
        n, m = T.int32(), T.int32()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.match_buffer(c, (m, n), "float32")
        for k in range(n * m):
            with T.block("b"):
                i = T.axis.spatial(n, k // m)
                j = T.axis.spatial(m, k % m)
                C[j, i] = A[i, j] + B[i] * T.Cast("float32", j // n) + A[n - 1 - i, m - 1 - j]

    @T.prim_func
    def first(a: T.handle, B: T.Buffer((16,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(16):
            with T.block("b"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[0]

    @R.function
    def sums(x: R.Tensor(("n", 5), "float32")):
        s = R.sum(x, axis=[0])
        return s
