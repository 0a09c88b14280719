# A loop of constant extent with a hint, or with a condition in T.likely, is cut at all points where a
# condition on it is decided, into loops that begin at 0; also where no iteration is without
# conditions. A piece in which the loops inside decide is unrolled if that is asked for.
# RUN: pleat opt %s --pass partition_loops,simplify_loops --verify-each
# RUN: pleat opt %s --func undecided --pass 'LoopPartition(unroll_loop_with_partition_hint_no_interval=True)' --verify-each | grep unroll
from tvm.script import tir as T


@T.prim_func
def concat(A: T.Buffer((5, 7), "int8"), B: T.Buffer((1, 7), "int8"), C: T.Buffer((13, 7), "int8")):
    for i in T.serial(13, annotations={"pragma_loop_partition_hint": 1, "key": "value"}):
        for j in range(7):
            if i < 5:
                C[i, j] = A[i, j]
            if i == 5:
                C[i, j] = B[i - 5, j]
            if 5 < i and i < 9:
                C[i, j] = T.int8(1)
            if i >= 9:
                C[i, j] = T.int8(2)


@T.prim_func
def likely(A: T.Buffer((10,), "int32")):
    for i in range(10):
        A[i] = T.Select(T.likely(i == 5), i * 3, 7)


@T.prim_func
def falling(A: T.Buffer((11, 3), "int32")):
    for i in T.serial(2, 13, annotations={"pragma_loop_partition_hint": 1}):
        for j in range(3):
            if 20 - i * 3 + j >= 0 and i * 2 - j != 9:
                A[i - 2, j] = i


@T.prim_func
def undecided(A: T.Buffer((8, 4), "int32")):
    for i in T.serial(8, annotations={"pragma_loop_partition_hint": 1}):
        for j in range(4):
            if i * 2 + j >= 5:
                A[i, j] = 1


@T.prim_func
def quotients(A: T.Buffer((61,), "int32"), B: T.Buffer((61,), "int32")):
    for i in T.serial(61, annotations={"pragma_loop_partition_hint": 1}):
        if 5 - i // 7 == 3:
            A[i] = 1
        if (i + 3) // 4 > 9:
            B[i] = 2


@T.prim_func
def quotient_of_two(A: T.Buffer((9, 8), "int32")):
    for i in T.serial(9, annotations={"pragma_loop_partition_hint": 1}):
        for j in range(8):
            if (i * 8 + j) // 12 != 2:
                A[i, j] = A[i, j] + 1


# The loop inside has a free extent: its worst value cuts the outer one.
@T.prim_func
def free_inside(c: T.handle, n: T.int32, m: T.int32):
    q = T.int32()
    C = T.match_buffer(c, (q,), "int32")
    for j in range(n):
        for k in range(m):
            if T.likely(j + k < n):
                C[0] = C[0] + 1
            else:
                C[0] = C[0] + 100
