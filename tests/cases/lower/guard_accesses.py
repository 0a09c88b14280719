# Guards stand outside of the loops in which their conditions keep one value. What the program tests
# itself, and what is in bounds by its loops, has no guard.
# RUN: pleat opt %s --pass convert_blocks,simplify_loops,guard_accesses
from pleat.script import tir as T


@T.prim_func
def hoisted(A: T.Buffer((30, 7), "float32"), idx: T.Buffer((5,), "int32"),
            C: T.Buffer((5, 7), "float32"), n: T.int32):
    for i, j in T.grid(5, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[idx[vi], vj] + A[n, vj]


@T.prim_func
def stays(idx: T.Buffer((5,), "int32"), C: T.Buffer((5, 7), "int32")):
    for i, j in T.grid(5, 7):
        C[i, idx[i]] = idx[T.min(i + j, 4)]
        idx[i] = j


@T.prim_func
def tested(idx: T.Buffer((5,), "int32"), C: T.Buffer((5,), "int32")):
    for i in range(5):
        if 0 <= idx[i] and idx[i] < 5:
            C[idx[i]] = T.if_then_else(i < 4, idx[i + 1], 0)


@T.prim_func
def named_conditions(A: T.Buffer((5,), "int32"), B: T.Buffer((8,), "int32"), n: T.int32):
    for i in range(8):
        c: T.bool = i < 5 and i < n
        if c:
            B[i] = A[i]
        d: T.bool = i < B[i]
        if d:
            B[i] = A[i]
