# Expressions that occur several times are computed once, before their first use, in the innermost
# statement that holds all of them. Loads, comparisons and divisions by a number that may be 0 stay.
# RUN: pleat opt %s --func f --pass share_subexpressions --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --func g --pass share_subexpressions | sed -n "/def g/,\$p"
# RUN: pleat opt %s --func f --pass share_subexpressions -o %t/once.py && pleat opt %t/once.py --pass share_subexpressions --func f | diff %t/once.py -
# RUN: pleat opt %s --func f --pass lower,share_subexpressions --verify-each | sed -n "/def f/,/^$/p"
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((36,), "float32"), B: T.Buffer((36,), "int32"), n: T.int32):
    for i, j in T.grid(5, 7):
        if n > 3:
            B[i * 7 + j] = (i * 7 + j) * n + (i * 7 + j)
        else:
            A[i * 7 + j] = T.Cast("float32", (i * 7 + j) * n)
        B[i] = B[i] + i * 7 + n * 3
    for k in range(3):
        B[n * 3 % 36] = (k + n) * (k + n)


@T.prim_func
def g(B: T.Buffer((9,), "int32"), x: T.int32, n: T.int32):
    B[0] = T.if_then_else(n != 0, x // n, 0) + T.if_then_else(n > 2, x // n, 1)
    B[1] = B[x % 9] + B[x % 9]
