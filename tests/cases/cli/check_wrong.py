from pleat.script import tir as T

@T.prim_func
def f(A: T.Buffer((4,), "float33"), B: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        B[i] = A[i]

@T.prim_func
def g(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        B[i] = A[j]
