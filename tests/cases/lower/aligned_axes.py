# The rows of B begin 33 elements apart, and those of C, which shrinks to a tile, 9; E has a view, through
# which its strides are known before its allocation is made, and stays as it is.
# RUN: pleat opt %s --pass convert_blocks,flatten_buffers,lower | grep -c align | grep -x 0
# RUN: pleat opt %s --pass convert_blocks,simplify_loops,compact_buffers --verify-each
# RUN: pleat opt %s --pass lower --verify-each
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((12, 30), "float32"), D: T.Buffer((30, 12), "float32")):
    B = T.alloc_buffer((12, 30))
    C = T.alloc_buffer((12, 30))
    E = T.alloc_buffer((12, 30))
    for i, j in T.grid(12, 30):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.block_attr({"buffer_dim_align": [[0, 0, 32, 1]]})
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(12, 30):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.writes(E[vi, vj])
            T.block_attr({"buffer_dim_align": [[0, 0, 32, 1]]})
            element = T.match_buffer(E[vi, vj], ())
            element[()] = A[vi, vj] - T.float32(1)
    for jo in range(6):
        for i, ji in T.grid(12, 5):
            with T.block("C"):
                vi = T.axis.spatial(12, i)
                vj = T.axis.spatial(30, jo * 5 + ji)
                T.block_attr({"buffer_dim_align": [[0, 0, 8, 1], [0, 2, 4, 1], [1, 0, 4, 1]]})
                C[vi, vj] = B[vi, vj] + E[vi, vj]
        for ji, i in T.grid(5, 12):
            with T.block("D"):
                vi = T.axis.spatial(12, i)
                vj = T.axis.spatial(30, jo * 5 + ji)
                D[vj, vi] = C[vi, vj] + T.float32(1)
