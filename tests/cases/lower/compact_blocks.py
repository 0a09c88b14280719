# Allocations of blocks shrink as those of loops do, with the regions that blocks state and the sources of
# views. Memory that threads share covers all of them; a buffer whose address is taken stays.
# RUN: pleat opt %s --func blocks --pass compact_buffers,simplify_loops --verify-each | sed -n "/def blocks/,/^$/p"
# RUN: pleat opt %s --func views --pass compact_buffers,simplify_loops --verify-each | sed -n "/def views/,/^$/p"
# RUN: pleat opt %s --func threads --pass compact_buffers,simplify_loops | sed -n "/def threads/,/^$/p"
# RUN: pleat opt %s --func types --pass compact_buffers,simplify_loops --verify-each | sed -n "/def types/,/^$/p"
# RUN: pleat opt %s --func threads --pass convert_blocks,compact_buffers,simplify_loops | sed -n "/def threads/,/^$/p"
# RUN: pleat opt %s --func block_threads --pass compact_buffers,simplify_loops | sed -n "/def block_threads/,/^$/p"
# RUN: pleat opt %s --func address --pass compact_buffers,simplify_loops | sed -n "/def address/,/^$/p"
from tvm.script import tir as T


@T.prim_func
def blocks(A: T.Buffer((35, 11), "float32"), C: T.Buffer((35, 11), "float32")):
    for io in range(5):
        with T.block("tile"):
            vio = T.axis.spatial(5, io)
            B = T.alloc_buffer((35, 11), "float32")
            for ii, j in T.grid(7, 11):
                with T.block("B"):
                    vi = T.axis.spatial(35, vio * 7 + ii)
                    vj = T.axis.spatial(11, j)
                    T.reads(A[vi, vj])
                    T.writes(B[vi, 0:11])
                    B[vi, vj] = A[vi, vj] + T.float32(1)
            for ii, j in T.grid(7, 11):
                with T.block("C"):
                    vi = T.axis.spatial(35, vio * 7 + ii)
                    vj = T.axis.spatial(11, j)
                    T.where(j < 9)
                    C[vi, vj] = B[vi, 10 - vj]


@T.prim_func
def views(A: T.Buffer((12, 8), "float32"), C: T.Buffer((12, 8), "float32")):
    for i in range(12):
        with T.block("row"):
            vi = T.axis.spatial(12, i)
            B = T.alloc_buffer((12, 8), "float32")
            with T.block("in"):
                T.reads(A[vi, 0:8])
                T.writes(B[vi, 0:8])
                V = T.match_buffer(B[vi, 0:8], (8,), "float32")
                for j in range(8):
                    V[j] = A[vi, j]
            with T.block("sum"):
                v = T.axis.reduce(1, 0)
                with T.init():
                    C[vi, 0] = T.float32(0)
                C[vi, 0] = C[vi, 0] + B[vi, 3]


@T.prim_func
def threads(A: T.Buffer((24,), "float32"), C: T.Buffer((24,), "float32")):
    for bx in T.thread_binding(3, thread="blockIdx.x"):
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            with T.block("thread"):
                S = T.alloc_buffer((24,), "float32", scope="shared")
                L = T.alloc_buffer((24,), "float32", scope="local")
                G = T.alloc_buffer((30,), "float32")
                L[bx * 8 + tx] = A[bx * 8 + tx]
                S[bx * 8 + tx] = L[bx * 8 + tx]
                G[bx * 8 + tx] = S[bx * 8 + tx]
                C[bx * 8 + tx] = G[bx * 8 + tx]


@T.prim_func
def block_threads(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for tx in T.thread_binding(8, thread="threadIdx.x"):
        with T.block("thread"):
            vx = T.axis.spatial(8, tx)
            S = T.alloc_buffer((8,), "float32", scope="shared")
            L = T.alloc_buffer((8,), "float32", scope="local")
            L[vx] = A[vx]
            S[vx] = L[vx]
            C[vx] = S[7 - vx]


@T.prim_func
def address(C: T.Buffer((24,), "float32")):
    for i in range(24):
        with T.block("one"):
            vi = T.axis.spatial(24, i)
            B = T.alloc_buffer((24,), "float32")
            B[vi] = T.float32(1)
            T.evaluate(T.call_extern("int32", "f", B.data))
            C[vi] = B[vi]


# The indices are int64 and the extents of B int32. The region that is wider than B becomes all of it.
@T.prim_func
def types(A: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32")):
    B = T.alloc_buffer((12,), "float32")
    for i in range(T.int64(9)):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * 2.0
    with T.block("all"):
        T.reads(B[T.int64(0):T.int64(10)])
        T.writes(C[T.int64(0):T.int64(9)])
        for i in range(T.int64(9)):
            with T.block("C"):
                vi = T.axis.remap("S", [i])
                C[vi] = B[vi] + 1.0
