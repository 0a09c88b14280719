# The variables of a block are replaced by their bindings, in its regions, views and blocks inside
# as well. An init needs the variables, so that it must be gone.
# RUN: pleat opt %s --func f --pass init_blocks,make_blocks_opaque --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --func f --pass init_blocks,place_allocations,make_blocks_opaque,match_buffers,convert_blocks -o %t/parts.py && pleat opt %s --func f --pass convert_blocks | diff %t/parts.py -
# RUN 1: pleat opt %s --func g --pass make_blocks_opaque
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((13, 7), "float32"), C: T.Buffer((13,), "float32")):
    B = T.alloc_buffer((13,))
    for i, k in T.grid(13, 7):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.where(i < 11)
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = T.float32(0)
            V = T.match_buffer(A[vi, vk], (1,), strides=(1,), offset_factor=1)
            with T.block("inner"):
                vj = T.axis.spatial(13, vi)
                T.reads(B[vj], V[0])
                T.writes(B[vj])
                B[vj] = B[vj] + V[0]
    for i in range(11):
        with T.block("out"):
            vi = T.axis.spatial(11, i)
            C[vi] = B[vi]


@T.prim_func
def g(A: T.Buffer((3,), "float32")):
    for k in range(3):
        with T.block("sum"):
            vk = T.axis.reduce(3, k)
            with T.init():
                A[0] = T.float32(0)
            A[0] = A[0] + T.float32(1)
