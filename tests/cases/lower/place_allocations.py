# An allocation moves into the innermost loop that may hold it: not into a reduction over its
# element, nor into a loop from whose earlier iteration a value is read; unused ones are left out.
# RUN: pleat opt %s --pass place_allocations --verify-each
# RUN: pleat opt %s --pass place_allocations -o %t/once.py && pleat opt %t/once.py --pass place_allocations | diff %t/once.py -
# RUN: pleat opt %s --pass place_allocations,convert_blocks -o %t/two.py && pleat opt %s --pass convert_blocks | diff %t/two.py -
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((13, 7), "float32"), C: T.Buffer((13,), "float32")):
    B = T.alloc_buffer((13,))
    D = T.alloc_buffer((7,))
    E = T.alloc_buffer((1,))
    F = T.alloc_buffer((2,))
    for i in range(13):
        for k in range(7):
            with T.block("copy"):
                vi, vk = T.axis.remap("SS", [i, k])
                D[vk] = A[vi, vk] * T.float32(2)
        for k in range(7):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + D[vk]
        with T.block("last"):
            vi = T.axis.spatial(13, i)
            C[vi] = B[vi]
    for i in range(13):
        with T.block("chain"):
            vi = T.axis.opaque(13, i)
            E[0] = T.if_then_else(vi == 0, T.float32(1), E[0] + C[vi])
            C[vi] = E[0]


# A buffer that a block states, and does not access, stays around the block.
@T.prim_func
def stated(C: T.Buffer((7,), "float32")):
    D = T.alloc_buffer((7,))
    for i in range(7):
        with T.block("stated"):
            vi = T.axis.spatial(7, i)
            T.reads(D[vi])
            T.writes(C[vi])
            C[vi] = T.float32(1)


# The condition and the binding of the last block read P and J, which the block itself does not.
@T.prim_func
def headings(A: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32")):
    P = T.alloc_buffer((9,), "float32")
    J = T.alloc_buffer((9,), "int32")
    for i in range(9):
        with T.block("P"):
            vi = T.axis.remap("S", [i])
            P[vi] = A[vi] - 1.0
    for i in range(9):
        with T.block("J"):
            vi = T.axis.remap("S", [i])
            J[vi] = 8 - vi
    for i in range(9):
        with T.block("C"):
            vi = T.axis.spatial(9, T.max(0, T.min(8, J[i])))
            T.where(P[i] > 0.0)
            C[vi] = A[vi] * 2.0


# The block of an iteration allocates what its views and the blocks inside of it access.
@T.prim_func
def parts(A: T.Buffer((5, 6), "float32"), C: T.Buffer((5, 6), "float32")):
    D = T.alloc_buffer((5, 6))
    E = T.alloc_buffer((6,))
    for i in range(5):
        with T.block("row"):
            vi = T.axis.spatial(5, i)
            V = T.match_buffer(D[vi, 0:6], (6,))
            for j in range(6):
                with T.block("copy"):
                    vj = T.axis.spatial(6, j)
                    V[vj] = A[vi, vj]
                    E[vj] = V[vj] * T.float32(2)
            for j in range(6):
                with T.block("back"):
                    vj = T.axis.spatial(6, j)
                    C[vi, vj] = V[vj] + E[5 - vj]
