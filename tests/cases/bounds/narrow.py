# Blocks that access elements outside of the regions that they state.
# RUN 1: pleat check %s
from pleat.script import tir as T

@T.prim_func
def narrow(A: T.Buffer((6, 12), "float32"), C: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj * 3:vj * 3 + 2])
            T.writes(C[vi, vj])
            C[vi, vj] = A[vi, vj * 3] + A[vi, vj * 3 + 1] + A[vi, vj * 3 + 2]

@T.prim_func
def loops(A: T.Buffer((6, 12), "float32"), C: T.Buffer((6, 12), "float32")):
    for i in T.grid(6):
        with T.block("C"):
            vi = T.axis.S(6, i)
            T.reads(A[vi, 0:12])
            T.writes(C[vi, 0:8])
            for j in range(12):
                if j > 8:
                    C[vi, j] = A[vi, j]

@T.prim_func
def sym(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    C = T.match_buffer(c, (n, 4), "float32")
    for i in range(n):
        with T.block("C"):
            vi = T.axis.S(n, i)
            T.reads(A[vi, 0:4])
            T.writes(C[vi, 0:4])
            for j in range(4):
                C[n - 1 - vi, j] = A[vi, j]

@T.prim_func
def nested(A: T.Buffer((6, 12), "float32"), C: T.Buffer((6, 12), "float32")):
    for i in range(6):
        with T.block("outer"):
            vi = T.axis.S(6, i)
            T.reads(A[vi, 0:12])
            T.writes(C[vi, 0:12])
            v = T.match_buffer(A[vi, 0:12], (12,), strides=(1,), offset_factor=1)
            for j in range(12):
                with T.block("inner"):
                    vj = T.axis.S(12, j)
                    T.reads(v[vj])
                    T.writes(C[vi, 0])
                    C[vi, vj] = v[vj]

@T.prim_func
def fine(A: T.Buffer((6, 12), "float32"), C: T.Buffer((6, 12), "float32"), D: T.Buffer((6,), "float32")):
    for i, j in T.grid(6, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, T.max(vj - 1, 0):T.max(vj - 1, 0) + T.min(2, vj + 1)])
            T.writes(C[vi, vj])
            C[vi, vj] = A[vi, vj] + T.if_then_else(vj > 0, A[vi, vj - 1], T.float32(0))
    for i, j in T.grid(6, 12):
        with T.block("D"):
            vi, vj = T.axis.remap("SR", [i, j])
            T.reads(A[vi, vj])
            T.writes(D[vi])
            with T.init():
                D[vi] = T.float32(0)
            D[vi] = D[vi] + A[vi, vj]
