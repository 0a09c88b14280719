# N-d accesses become flat: strides and an offset are multiplied out, a separator keeps two axes, a
# memory of unknown size is indexed in 64 bits, and the second run changes nothing.
# RUN: pleat opt %s --pass convert_blocks,flatten_buffers --verify-each
# RUN: pleat opt %s --pass convert_blocks,flatten_buffers,flatten_buffers --verify-each
# RUN: pleat opt %s --func sizes_from_memory --pass compact_buffers --verify-each > %t/compact.py
# RUN: pleat opt %s --func sizes_from_memory --pass flatten_buffers,promote_registers --verify-each > %t/promoted.py
from tvm.script import tir as T


@T.prim_func
def strided(a: T.handle, B: T.Buffer((5, 3), "float32")):
    A = T.match_buffer(a, (5, 3), "float32", strides=(11, 2))
    for i, j in T.grid(5, 3):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]


@T.prim_func
def texture(a: T.handle, B: T.Buffer((3, 5, 4), "float32")):
    A = T.match_buffer(a, (3, 5, 4), "float32", axis_separators=[1])
    for i, j, k in T.grid(3, 5, 4):
        B[i, j, k] = A[2 - i, j, k]


@T.prim_func
def symbolic(a: T.handle, B: T.Buffer((7,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (7, n), "float32")
    for i in range(7):
        B[i] = A[i, n - 1]


@T.prim_func
def local(A: T.Buffer((3, 7), "float32"), B: T.Buffer((3, 7), "float32")):
    C = T.decl_buffer((3, 7), "float32")
    V = T.decl_buffer((21,), "float32", data=C.data)
    for i in range(21):
        V[i] = A[0, 5]
    for i, j in T.grid(3, 7):
        B[i, j] = C[2 - i, j]


@T.prim_func
def sizes_from_memory(A: T.Buffer((16,), "int32")):
    n = T.decl_buffer((2, 1), "int32", scope="local")
    n[1, 0] = 4
    data = T.decl_buffer((4, 4), "int32")
    view = T.decl_buffer((n[1, 0],), "int32", data=data.data)
    shifted = T.decl_buffer((1,), "int32", data=data.data, elem_offset=n[1, 0])
    view[3] = 7
    shifted[0] = 5
    A[3] = data[0, 3]
    A[4] = data[1, 0]


@T.prim_func
def mirrored(A: T.Buffer((24,), "int32"), B: T.Buffer((24,), "int32")):
    X = T.decl_buffer((4, 6), "int32", data=A.data, strides=[6, -1], elem_offset=5)
    for i, j in T.grid(4, 6):
        B[i * 6 + j] = X[i, j]
