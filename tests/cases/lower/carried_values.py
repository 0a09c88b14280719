# A value that one iteration reads before it writes it comes from an earlier iteration, so that its
# memory stays outside of the loop. What is written at the first iteration of an inner loop is not.
# RUN: pleat opt %s --pass make_blocks_opaque,convert_blocks --verify-each
from tvm.script import tir as T


@T.prim_func
def chain(A: T.Buffer((13,), "float32"), C: T.Buffer((13,), "float32")):
    E = T.alloc_buffer((1,))
    for i in range(13):
        with T.block("chain"):
            T.reads(E[0], A[i])
            T.writes(E[0], C[i])
            E[0] = T.if_then_else(i == 0, T.float32(5), E[0] + A[i])
            C[i] = E[0]


@T.prim_func
def another_element(A: T.Buffer((13,), "float32"), C: T.Buffer((13,), "float32")):
    E = T.alloc_buffer((2,))
    with T.block("start"):
        T.reads()
        T.writes(E[0:2])
        E[0] = T.float32(0)
        E[1] = T.float32(1)
    for i in range(13):
        with T.block("swap"):
            T.reads(E[0:2], A[i])
            T.writes(E[0:2], C[i])
            E[0] = A[i]
            C[i] = E[1]
            E[1] = E[0]


@T.prim_func
def inner_loop(A: T.Buffer((13, 7), "float32"), C: T.Buffer((13,), "float32")):
    B = T.alloc_buffer((13,))
    for i in range(13):
        for k in range(7):
            with T.block("sum"):
                T.reads(B[i], A[i, k])
                T.writes(B[i])
                if k == 0:
                    B[i] = T.float32(0)
                B[i] = B[i] + A[i, k]
        with T.block("last"):
            T.reads(B[i])
            T.writes(C[i])
            C[i] = B[i]


@T.prim_func
def under_a_condition(A: T.Buffer((13,), "float32"), C: T.Buffer((13,), "float32")):
    E = T.alloc_buffer((1,))
    with T.block("start"):
        T.reads()
        T.writes(E[0])
        E[0] = T.float32(0)
    for i in range(13):
        with T.block("last_positive"):
            T.reads(E[0], A[i])
            T.writes(E[0], C[i])
            if A[i] > T.float32(0):
                E[0] = A[i]
            C[i] = E[0]


@T.prim_func
def left_out_in_some(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    E = T.alloc_buffer((8,))
    for o, i in T.grid(8, 8):
        with T.block("E"):
            vo, vi = T.axis.remap("SS", [o, i])
            T.where(i + o < 10)
            E[vi] = A[vo, vi]
        with T.block("C"):
            vo, vi = T.axis.remap("SS", [o, i])
            C[vo, vi] = E[vi]


@T.prim_func
def not_all_between(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 8), "float32")):
    E = T.alloc_buffer((8,))
    for o in range(8):
        for i in range(4):
            with T.block("E"):
                vo, vi = T.axis.remap("SS", [o, i])
                E[(vi * 2 + vo) % 8] = A[vo, vi]
        for i in range(8):
            with T.block("C"):
                vo, vi = T.axis.remap("SS", [o, i])
                C[vo, vi] = E[vi]


@T.prim_func
def last_tile(A: T.Buffer((13,), "float32"), C: T.Buffer((13,), "float32")):
    E = T.alloc_buffer((13,))
    for o in range(4):
        with T.block("copy"):
            vo = T.axis.spatial(4, o)
            for i in range(4):
                if vo * 4 + i < 13:
                    E[vo * 4 + i] = A[vo * 4 + i]
        for i in range(4):
            with T.block("reversed"):
                vo, vi = T.axis.remap("SS", [o, i])
                T.where(o * 4 + i < 13)
                C[vo * 4 + vi] = E[vo * 4 + T.min(3, 12 - vo * 4) - vi]
