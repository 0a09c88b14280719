# RUN: pleat inspect %s --aliases
# RUN: pleat inspect %s --aliases --func strided --json
# RUN 2: pleat inspect %s --aliases --cpu avx2
# RUN 1: pleat inspect %s --aliases --func nothing
from tvm.script import tir as T


# RFC 63: reshapes, another element type, another offset.
@T.prim_func
def reshaped(A: T.Buffer((4, 6), "float32"), B: T.Buffer((13,), "float32")):
    flat = T.decl_buffer((24,), "float32", data=A.data)
    vectors = T.decl_buffer((6,), "float32x4", data=A.data)
    bytes = T.decl_buffer((4, 3, 8), "uint8", data=A.data)
    tail = T.decl_buffer((2, 6), "float32", data=A.data, elem_offset=12)
    late = T.decl_buffer((7, 1), "float32", data=A.data, elem_offset=20)
    C = T.alloc_buffer((1,), "float32")
    for i in range(12):
        flat[i] = tail[i // 6, i % 6] + B[0]
    C[0] = flat[1] + A[0, 0] + T.Cast("float32", bytes[0, 0, 0]) + late[0, 0]
    vectors[0] = T.Broadcast(T.float32(0), 4)
    B[1] = C[0]


@T.prim_func
def symbolic(a: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, m), "float32")
    rows = T.decl_buffer((n * m,), "float32", data=A.data)
    half = T.decl_buffer((n, m), "float16", data=A.data)
    other = T.decl_buffer((m, n), "float32", data=A.data)
    for i in range(n):
        rows[i] = A[i, 0] + T.Cast("float32", half[0, 0]) + other[0, 0]


@T.prim_func
def strided(A: T.Buffer((10,), "int8")):
    even = T.decl_buffer((5,), "int8", data=A.data, strides=(2,))
    odd = T.decl_buffer((5,), "int8", data=A.data, strides=(2,), elem_offset=1)
    third = T.decl_buffer((3,), "int8", data=A.data, strides=(3,))
    empty = T.decl_buffer((0, 3), "int8", data=A.data)
    same = T.decl_buffer((10,), "int8", data=A.data)
    for i in range(5):
        odd[i] = even[i] + same[i]
    for i in range(3):
        third[i] = T.int8(1)


@T.prim_func
def views(A: T.Buffer((8, 5), "float32")):
    for i in range(4):
        with T.block("view"):
            vi = T.axis.spatial(4, i)
            V = T.match_buffer(A[vi * 2:vi * 2 + 2, 0:5], (2, 5), strides=(5, 1), offset_factor=1)
            V[1, 2] = T.float32(0)


@T.prim_func
def together(A: T.Buffer((8, 5), "float32")):
    again = T.decl_buffer((8, 5), "float32", data=A.data)
    for i, j in T.grid(8, 5):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            again[vi, vj] = A[vi, vj] + T.float32(1)


# Rows of a wider buffer: the elements are decided by their digits, whatever n and m are.
@T.prim_func
def symbolic_strides(a: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n, 8), "float32")
    left = T.decl_buffer((n, 4), "float32", data=A.data, strides=(8, 1))
    right = T.decl_buffer((n, 4), "float32", data=A.data, strides=(8, 1), elem_offset=4)
    pairs = T.decl_buffer((n, 2, 2), "float32", data=A.data, strides=(8, 2, 1))
    columns = T.decl_buffer((8, n), "float32", data=A.data, strides=(1, 8))
    halves = T.decl_buffer((n, 8), "float16", data=A.data, strides=(16, 1))
    middle = T.decl_buffer((n, 4), "float32", data=A.data, strides=(8, 1), elem_offset=2)
    other = T.decl_buffer((n, 4), "float32", data=A.data, strides=(m, 1))
    late = T.decl_buffer((n,), "float32", data=A.data, elem_offset=5)
    for i in range(n):
        left[i, 0] = right[i, 1] + pairs[i, 1, 0] + columns[3, i] + middle[i, 0] + late[0]
        left[i, 1] = T.Cast("float32", halves[i, 7]) + T.if_then_else(i * m < n, other[0, 0], T.float32(0))


# Tiles of one memory: it has elements where they have some, so its rows are not empty.
@T.prim_func
def tiles(a: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (n * 8, m * 8), "float32")
    first = T.decl_buffer((4, 4), "float32", data=A.data, strides=(m * 8, 1))
    right = T.decl_buffer((4, 4), "float32", data=A.data, strides=(m * 8, 1), elem_offset=4)
    below = T.decl_buffer((4, 4), "float32", data=A.data, strides=(m * 8, 1), elem_offset=m * 32 + 2)
    inside = T.decl_buffer((2, 2), "float32", data=A.data, strides=(m * 8, 1), elem_offset=m * 8 + 1)
    A[0, 0] = first[0, 0] + right[0, 0] + below[0, 0] + inside[0, 0]
