# A loop whose length is read from memory is not cut, since its later parts would read a length that
# earlier ones changed.
# RUN 1: pleat run %s --fill zero
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((6,), "int32")):
    A[0] = 2
    A[1] = 5
    A[2] = 4
    for i1 in range(A[2]):
        if A[0] == i1:
            A[A[i1] + i1] = A[0] - 1
        for i2 in range(A[2]):
            A[2 - i1] = A[A[1]] * i1
