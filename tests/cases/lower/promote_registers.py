# Local buffers with constant indices become registers, one for each vector that is accessed as a
# whole. A load with a constant stride is a column of them, by shuffles of two vectors that columns
# share, and whose numbers of vectors and lanes are filled up to powers of two. Other lanes are put
# together from few vectors one after the other, or by one shuffle from many. A buffer with an index that is not constant, or with accesses that overlap,
# stays in memory.
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


@T.prim_func
def columns(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"),
            C: T.Buffer((4,), "float32")):
    acc = T.decl_buffer((32,), "float32", scope="local")
    acc[0:8] = A[0:8]
    acc[8:16] = A[8:16]
    acc[16:24] = A[16:24]
    acc[24:32] = A[24:32]
    B[0:4] = acc[0:32:8]
    B[4:8] = acc[1:33:8]
    B[8:12] = acc[2:34:8]
    B[12:16] = acc[3:35:8]
    B[16:20] = acc[4:36:8]
    B[20:24] = acc[5:37:8]
    B[24:28] = acc[6:38:8]
    B[28:32] = acc[7:39:8]
    C[0:4] = acc[2:14:3]


@T.prim_func
def uneven_columns(A: T.Buffer((20,), "float32"), B: T.Buffer((10,), "float32")):
    acc = T.decl_buffer((20,), "float32", scope="local")
    acc[0:4] = A[0:4]
    acc[4:8] = A[4:8]
    acc[8:12] = A[8:12]
    acc[12:16] = A[12:16]
    acc[16:20] = A[16:20]
    B[0:5] = acc[0:20:4]
    B[5:10] = acc[1:21:4]


@T.prim_func
def three_lanes(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    acc = T.decl_buffer((6,), "float32", scope="local")
    acc[0:3] = A[0:3]
    acc[3:6] = A[3:6]
    B[0:3] = acc[3:6]
    B[3:6] = acc[0:3]


@T.prim_func
def many_rows(A: T.Buffer((16,), "float32"), B: T.Buffer((8,), "float32")):
    acc = T.decl_buffer((16,), "float32", scope="local")
    acc[0:4] = A[0:4]
    acc[4:8] = A[4:8]
    acc[8:12] = A[8:12]
    acc[12:16] = A[12:16]
    B[0:8] = acc[1:17:2]


@T.prim_func
def stored_column(A: T.Buffer((4,), "float32"), B: T.Buffer((8,), "float32")):
    acc = T.decl_buffer((8,), "float32", scope="local")
    acc[0:8:2] = A[0:4]
    acc[1:9:2] = A[0:4]
    B[0:8] = acc[0:8]


@T.prim_func
def interleaved(A: T.Buffer((12,), "int8"), B: T.Buffer((12,), "int8"), C: T.Buffer((4,), "int8")):
    acc = T.decl_buffer((12,), "int8", scope="local")
    acc[0:4] = A[0:4]
    acc[4:8] = A[4:8]
    acc[8:12] = A[8:12]
    B[0:4] = acc[T.Ramp(0, 1, 4) % 3 * 4 + T.Ramp(0, 1, 4) // 3]
    B[4:8] = acc[T.Ramp(4, 1, 4) % 3 * 4 + T.Ramp(4, 1, 4) // 3]
    B[8:12] = acc[T.Ramp(8, 1, 4) % 3 * 4 + T.Ramp(8, 1, 4) // 3]
    C[0:4] = acc[T.Ramp(1, 3, 4)]
