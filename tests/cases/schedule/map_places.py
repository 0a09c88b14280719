# Mistakes in index maps and layouts of steps and passes are located within their text, also within a
# string. A string with escapes is a text of its own.
# RUN 1: printf 'sch.transform_layout("f", ("write", 0), "lambda i, j: [j, k]")\n' > %t/1.steps && pleat opt %s --func f --schedule %t/1.steps
# RUN 1: printf "sch.transform_layout('f', 'B', lambda i, j: [j, i // ])\n" > %t/2.steps && pleat opt %s --func f --schedule %t/2.steps
# RUN 1: printf 'sch.transform_layout("f", ("write", 0), """ABC""")\n' > %t/3.steps && pleat opt %s --func f --schedule %t/3.steps
# RUN 1: printf 'sch.transform_layout("f", ("write", 0), "lambda i, j: [j, \\x6b]")\n' > %t/4.steps && pleat opt %s --func f --schedule %t/4.steps
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
    for i, j in T.grid(5, 7):
        with T.block("f"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
