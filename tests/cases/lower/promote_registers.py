# Local buffers with constant indices become registers, one for each vector that is accessed as a
# whole; one with an index that is not constant, or with accesses that overlap, stays in memory.
# RUN: pleat opt %s --pass promote_registers --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((19,), "float32"), B: T.Buffer((19,), "float32")):
    acc = T.decl_buffer((12,), "float32", scope="local")
    by_loop = T.decl_buffer((3,), "float32", scope="local")
    overlap = T.decl_buffer((6,), "float32", scope="local")
    acc[0:8] = A[0:8]
    acc[8] = A[8]
    B[0:4] = acc[4:8]
    B[4] = acc[8]
    for i in range(3):
        by_loop[i] = A[i]
    for i in range(3):
        B[i + 5] = by_loop[2 - i]
    overlap[0:4] = A[9:13]
    overlap[4] = A[13]
    overlap[5] = A[14]
    B[9:13] = overlap[2:6]
