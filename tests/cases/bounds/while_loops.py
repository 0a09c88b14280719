# A while loop ends where an access of its condition is out of bounds, or one of its body that would
# have ended it, and the access is reported. Proved and guarded loops give the interpreter's results.
# RUN 1: pleat run %s --func search --fill zero
# RUN 1: pleat run %s --func search --fill zero --target c
# RUN 1: pleat run %s --func steps --fill random --seed 2
# RUN 1: pleat run %s --func steps --fill random --seed 2 --target c
# RUN 1: pleat run %s --func both --fill zero
# RUN: pleat run %s --func found --fill zero | grep "^at"
# RUN: pleat verify %s --func found | grep -o "agrees with the interpreter"
# RUN: pleat verify %s --func nested | grep -o "agrees with the interpreter"
from pleat.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def search(A: T.Buffer((16,), "int32"), at: T.Buffer((1,), "int32")):
        i = T.alloc_buffer((1,), "int32")
        i[0] = 0
        while A[i[0]] < 1:
            i[0] = i[0] + 1
        at[0] = i[0]

    @T.prim_func
    def steps(A: T.Buffer((16,), "int32"), at: T.Buffer((1,), "int32")):
        i = T.alloc_buffer((1,), "int32")
        i[0] = 0
        while i[0] < 100:
            i[0] = i[0] + T.max(A[i[0]], 1)
        at[0] = i[0]

    @T.prim_func
    def both(A: T.Buffer((16,), "int32"), at: T.Buffer((1,), "int32")):
        i = T.alloc_buffer((1,), "int32")
        i[0] = 0
        while A[i[0]] < 1:
            while A[i[0] + 3] < 1:
                i[0] = i[0] + 1
        at[0] = i[0]

    @T.prim_func
    def found(A: T.Buffer((16,), "int32"), at: T.Buffer((1,), "int32")):
        i = T.alloc_buffer((1,), "int32")
        i[0] = 0
        while A[i[0]] + i[0] < 7:
            i[0] = i[0] + 1
        at[0] = i[0]

    @T.prim_func
    def nested(A: T.Buffer((6, 16), "int32"), at: T.Buffer((6,), "int32")):
        for k in T.parallel(6):
            i = T.alloc_buffer((1,), "int32")
            i[0] = 0
            while A[k, i[0]] + i[0] * i[0] < 100:
                if A[k, i[0]] + i[0] == 9:
                    break
                i[0] = i[0] + 1
            at[k] = i[0]
