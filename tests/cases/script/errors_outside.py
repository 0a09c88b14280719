# RUN 1: pleat opt %s
# Names that mean something else than a reader of Python expects, and numbers that their type does not hold.
from tvm.script import tir as T


@T.prim_func
def outside(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("binding"):
            vi = T.axis.spatial(16, i)
            vj = T.axis.spatial(16, vi)
            B[vj] = A[vi]
    for i in range(16):
        with T.block("where"):
            vi = T.axis.spatial(16, i)
            T.where(vi < 8)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("older") as [vi]:
            B[vi] = A[vi]


@T.prim_func
def endless(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    i = 0
    while i < 16:
        B[i] = A[i]
        i = i + 1


@T.prim_func
def hidden(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        B[i] = A[i]


@T.prim_func
def hidden_from_blocks(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi]


@T.prim_func
def empty(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):
    bits = A.view("void")


@T.prim_func
def infinite(A: T.Buffer((16,), "float16"), B: T.Buffer((16,), "float16")):
    for i in range(16):
        B[i] = A[i] * 100000.0 + T.float16(-65504)
