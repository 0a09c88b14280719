# Buffers that are declared over the memory of others: an access is inside of both. What is proved for the
# whole buffer needs nothing more.
# RUN 1: pleat check %s
# RUN 1: pleat run %s --func longer
# RUN: pleat opt %s --func sized --pass convert_blocks,simplify_loops,guard_accesses | sed -n "/def sized/,/^$/p"
# RUN: pleat run %s --func sized --dim n=7 --fill zero | grep Z
# RUN 1: pleat run %s --func sized --dim n=5 --fill zero
# RUN: pleat run %s --func halves --fill zero | grep A
from pleat.script import tir as T


@T.prim_func
def longer(A: T.Buffer((6,), "float32")):
    Z = T.decl_buffer((8,), data=A.data)
    for i in range(8):
        Z[i] = T.float32(1)


@T.prim_func
def wider(A: T.Buffer((6,), "float32")):
    Z = T.decl_buffer((3,), "float64", data=A.data, elem_offset=1)
    for i in range(3):
        Z[i] = T.float64(1)


@T.prim_func
def vector(A: T.Buffer((11,), "float32")):
    Z = T.decl_buffer((4, 3), "float32", data=A.data)
    for i in range(4):
        Z[i, 0:3] = T.Broadcast(T.float32(1), 3)


@T.prim_func
def sized(A: T.Buffer(("n",), "float32"), Z: T.Buffer((1,), "float32")):
    n = T.int32()
    B = T.decl_buffer((7,), "float32", data=A.data)
    for i in range(7):
        Z[0] = Z[0] + B[i] + T.float32(1)


@T.prim_func
def halves(A: T.Buffer((6,), "float32")):
    Z = T.decl_buffer((2, 3), "float32", data=A.data)
    L = T.decl_buffer((13,), "int8")
    M = T.decl_buffer((3,), "float32", data=L.data)
    for i, j in T.grid(2, 3):
        M[j] = T.float32(2)
        Z[i, j] = M[j] + T.float32(1)
