# Flat indices are int32 at least: i * 300 + j does not fit int16, though i and j do.
# RUN: pleat opt %s --pass 'LowerOpaqueBlock,NarrowDataType(16),FlattenBuffer'
# RUN: pleat opt %s --pass 'LowerOpaqueBlock,NarrowDataType(16)' --verify-each -o %t/narrow.py; pleat verify %t/narrow.py --max-ulp 0
from pleat.script import tir as T


@T.prim_func
def mirror(A: T.Buffer((300, 300), "float32"), B: T.Buffer((300, 300), "float32")):
    for i, j in T.grid(300, 300):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, 299 - vj] + T.float32(1)


# The index wraps around as int8, and its product with the stride does not.
@T.prim_func
def wraps(A: T.Buffer((200, 3), "int32")):
    for i in range(100):
        A[T.Cast("int32", T.Cast("int8", i) * T.int8(1)) + 28, 0] = i
        A[T.Cast("int8", i), 1] = i
