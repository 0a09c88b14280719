# RUN: pleat opt %s
# A name that is assigned is a variable in the dialect of TVM since 2026, a buffer of one element.
from tvm.script import tirx as T


@T.prim_func
def sums(A: T.Buffer((7,), "int32"), B: T.Buffer((3,), "int32"), last: T.Buffer((1,), "int32")):
    total: T.int32 = 0
    first = A[0]
    fixed: T.let = A[1]
    typed: T.let[T.int32] = first + 1
    count: T.int32
    count = 0
    for i in range(7):
        total = total + A[i]
        first += 2
        if A[i] > 3:
            count += 1
    B[0] = total + fixed
    B[1] = first * typed
    B[2] = count
    last = last + total
    T.evaluate(T.address_of(total))
    last.source[0] = last + 1
