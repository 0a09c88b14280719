# A program that takes a bare pointer is not run with random arguments: nothing says what memory it has.
# RUN 1: pleat opt %s --func element --pass convert_blocks --verify-each
from tvm.script import tir as T


@T.prim_func
def swap(h: T.handle, i: T.int32):
    A = T.match_buffer(h, (42,), "float32")
    A[i] = A[i + 1]


@T.prim_func
def element(h: T.handle("float32", "global"), C: T.Buffer((1,), "float32")):
    A = T.decl_buffer((42,), "float32", data=h)
    C[0] = A[1]
