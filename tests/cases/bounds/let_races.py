# The index of an access may bind variables. Races are looked for with their values in place, and
# the access is printed with these.
# RUN: pleat check %s
from pleat.script import tir as T


@T.prim_func
def apart(A: T.Buffer((21,), "int32")):
    for i in T.parallel(7):
        A[T.Let(x + x // 7, where={x: i * 3})] = i


@T.prim_func
def same(A: T.Buffer((21,), "int32")):
    for i in T.parallel(7):
        A[T.Let(x // 2, where={x: i + 3})] = i


@T.prim_func
def unknown(A: T.Buffer((64,), "int32"), m: T.int32):
    for i in T.parallel(7):
        A[T.Let(T.Let(T.bitwise_xor(y, m) + x % 7, where={y: x // 7}), where={x: i * 3 + m})] = i
