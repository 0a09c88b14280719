# Statements of T.match_buffer that its region does not fulfil.
# RUN 1: pleat check %s
# RUN 1: pleat opt %s --func strides --pass LowerMatchBuffer
from pleat.script import tir as T


@T.prim_func
def strides(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            X = T.match_buffer(A[vi * 6:vi * 6 + 6], (6,), "int32", strides=[2], offset_factor=1)
            for j in range(6):
                B[vi * 6 + j] = X[j]


@T.prim_func
def offset(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            X = T.match_buffer(A[vi * 6:vi * 6 + 6], (6,), "int32", elem_offset=vi * 5)
            for j in range(6):
                B[vi * 6 + j] = X[j]


# The parameter m is another number than the stride.
@T.prim_func
def known(A: T.Buffer((8, 8), "int32"), m: T.int32):
    with T.block("b"):
        X = T.match_buffer(A[0:4, 0:4], (4, 4), "int32", strides=[m, 1], offset_factor=1)
        X[0, 0] = m


@T.prim_func
def extent(a: T.handle, n: T.int32):
    m = T.int32()
    A = T.match_buffer(a, (m, 8), "int32")
    with T.block("b"):
        X = T.match_buffer(A[0:m, 0:8], (n, 8), "int32")
        X[0, 0] = n


# A callee would take the first element of A for that of the region.
@T.prim_func
def pointer(A: T.Buffer((24,), "int32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            X = T.match_buffer(A[vi * 6:vi * 6 + 6], (6,), "int32")
            T.evaluate(T.call_extern("int32", "fill", X.data))


# The regions begin elsewhere, and so would what is read at the number 0.
@T.prim_func
def zero(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            X = T.match_buffer(A[vi * 6:vi * 6 + 6], (6,), "int32", elem_offset=0)
            B[vi * 6] = X[0]


@T.prim_func
def reads_zero(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            X = T.match_buffer(A[vi * 6:vi * 6 + 6], (6,), "int32")
            B[vi * 6] = A[X.elem_offset]


# New variables get their values from the region, and expressions of these hold.
@T.prim_func
def right(a: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (m, 8), "int32")
    s, t, k = T.int32(), T.int32(), T.int32()
    for i in range(m):
        with T.block("b"):
            vi = T.axis.spatial(m, i)
            X = T.match_buffer(A[vi, 0:8], (8,), "int32", strides=[1], elem_offset=vi * 8)
            Y = T.match_buffer(A[0:m, 0:8], (k, 8), "int32", strides=[s, t], offset_factor=1)
            X[0] = k + s + t
            Y[0, 0] = 1
