# A loop that would run very long ends where an access in it is out of bounds, on all targets; without a fault it runs
# all its iterations, and a loop that is left by break ends as well.
# RUN 1: pleat run %s --func constant --fill zero
# RUN 1: pleat run %s --func constant --fill zero --target c
# RUN 1: pleat run %s --func nested --fill zero
# RUN 1: pleat run %s --func left --fill zero
# RUN: pleat run %s --func found --fill zero | grep "^at"
# RUN: pleat run %s --func found --fill zero --target c | grep "^at"
# RUN: pleat verify %s --func all_of_it | grep -o "agrees with the interpreter"
from pleat.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def constant(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(T.int64(9223372036854775807)):
            B[A[0] - 1] = A[0]

    @T.prim_func
    def nested(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(T.int64(1000000000000)):
            for j in range(T.int64(1000000000000)):
                B[A[j % T.int64(16)] + 16] = A[0]

    @T.prim_func
    def left(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(T.int64(9223372036854775807)):
            if A[A[0] + 16] > 3:
                break
            B[A[0]] = A[0]

    @T.prim_func
    def found(A: T.Buffer((16,), "int32"), at: T.Buffer((1,), "int32")):
        for i in range(T.int64(9223372036854775807)):
            at[0] = T.Cast("int32", i)
            if A[A[0]] + at[0] > 6:
                break

    @T.prim_func
    def all_of_it(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in range(1100000):
            B[(A[i % 16] % 100) * (A[i % 16] % 100) % 4 * 8] = i  # 0 or 8
