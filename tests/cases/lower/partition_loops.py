# Loops are cut where their conditions become constant: borders, a tail of 3 iterations, and two
# versions of a body for a parallel loop, or one for each range of its iterations where lanes of a
# vector differ. A long body with few conditions gets two versions too. A
# condition that is tested once for a long loop stays.
# RUN: pleat opt %s --pass partition_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def borders(A: T.Buffer((7,), "float32"), B: T.Buffer((11,), "float32")):
    for i in range(11):
        B[i] = T.if_then_else(i >= 2 and i < 9, A[i - 2], T.float32(0))


@T.prim_func
def tail(A: T.Buffer((23,), "float32"), B: T.Buffer((23,), "float32")):
    for io in range(5):
        for ii in T.vectorized(5):
            if io * 5 + ii < 23:
                B[io * 5 + ii] = A[io * 5 + ii]


@T.prim_func
def versions(A: T.Buffer((23,), "float32"), B: T.Buffer((23,), "float32")):
    for io in T.parallel(5):
        for ii in T.unroll(5):
            if io * 5 + ii < 23:
                B[io * 5 + ii] = A[io * 5 + ii]


@T.prim_func
def ranges(A: T.Buffer((21,), "float32"), B: T.Buffer((23,), "float32")):
    for io in T.parallel(5):
        for ii in T.vectorized(5):
            if io * 5 + ii < 23:
                B[io * 5 + ii] = T.if_then_else(
                    1 <= io * 5 + ii and io * 5 + ii < 22, A[io * 5 + ii - 1], T.float32(0))


@T.prim_func
def apart(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "float32")):
    for io in T.parallel(2):
        for ii in T.vectorized(7):
            if io * 7 + ii < 13:
                B[io * 7 + ii] = T.if_then_else(
                    1 <= io * 7 + ii, A[io * 7 + ii - 1], T.float32(0))


@T.prim_func
def digits(A: T.Buffer((3, 13), "float32"), B: T.Buffer((3, 13), "float32")):
    for f in T.parallel(6):
        for ii in T.vectorized(7):
            if f % 2 * 7 + ii < 13:
                B[f // 2, f % 2 * 7 + ii] = A[f // 2, f % 2 * 7 + ii]


@T.prim_func
def long_body(A: T.Buffer((7, 5), "float32"), B: T.Buffer((8, 5, 37), "float32")):
    for i, k in T.grid(8, 5):
        p: T.float32 = T.if_then_else(i >= 1, A[i - 1, k], T.float32(0))
        q: T.float32 = T.if_then_else(i < 6 and k < 4, A[i + 1, k + 1], T.float32(1))
        for r in T.unroll(37):
            B[i, k, r] = p + q


@T.prim_func
def long_tail(A: T.Buffer((37, 23), "float32"), B: T.Buffer((37, 23), "float32")):
    for io in range(5):
        for ii in T.vectorized(5):
            if io * 5 + ii < 23:
                for r in T.unroll(37):
                    B[r, io * 5 + ii] = A[r, io * 5 + ii]


@T.prim_func
def before_long_loop(A: T.Buffer((7, 37), "float32"), B: T.Buffer((8, 37, 3), "float32")):
    for i in range(8):
        if i >= 1:
            for k in range(37):
                for r in T.unroll(3):
                    B[i, k, r] = A[i - 1, k]


@T.prim_func
def before_short_loop(A: T.Buffer((7, 11), "float32"), B: T.Buffer((8, 11, 3), "float32")):
    for i in range(8):
        if i >= 1:
            for k in range(11):
                for r in T.unroll(3):
                    B[i, k, r] = A[i - 1, k]


@T.prim_func
def unrolled_before_long_loop(A: T.Buffer((7, 37), "float32"), B: T.Buffer((8, 37, 5), "float32")):
    for i in range(8):
        for r in T.unroll(5):
            if i * 5 + r >= 7:
                for k in range(37):
                    B[i, k, r] = A[i - 1, k]


@T.prim_func
def many_conditions(A: T.Buffer((7,), "float32"), B: T.Buffer((11, 37), "float32")):
    for i in range(11):
        for r in T.unroll(37):
            B[i, r] = T.if_then_else(i >= 2 and i < 9, A[i - 2], T.float32(0))


@T.prim_func
def long_and_free(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n, 37))
    for i in range(n):
        p: T.float32 = T.if_then_else(i >= 1, A[i - 1], T.float32(0))
        q: T.float32 = T.if_then_else(i + 1 < n, A[i + 1], T.float32(0))
        for r in T.unroll(37):
            B[i, r] = p * q


# A choice between the lanes of two vectors, which depends on the row, does not cut the row.
@T.prim_func
def blend(A: T.Buffer((31, 28), "float32"), B: T.Buffer((31, 28), "float32")):
    for i in range(31):
        for jo in T.serial(2, annotations={"pleat.partition": True}):
            for ji in T.vectorized(16):
                if jo * 16 + ji < 28:
                    B[i, jo * 16 + ji] = T.Select(jo * 16 + ji + 1 < i, A[i, jo * 16 + ji], T.float32(0))


# A choice of two sources has vectors on both sides of the one in which they meet.
@T.prim_func
def pieces(A: T.Buffer((13, 29), "float32"), B: T.Buffer((13, 27), "float32"), C: T.Buffer((13, 56), "float32")):
    for i in range(13):
        for jo in T.serial(7, annotations={"pleat.partition": True}):
            for ji in T.vectorized(8):
                C[i, jo * 8 + ji] = T.if_then_else(jo * 8 + ji < 29, A[i, jo * 8 + ji], B[i, jo * 8 + ji - 29])


# Windows that are longer than what they read: the loop over their taps leaves out those that read
# nothing, and the tail of the tiles is cut although no tile is free of conditions on the taps.
@T.prim_func
def long_windows(A: T.Buffer((11,), "float32"), W: T.Buffer((29,), "float32"),
                 B: T.Buffer((13,), "float32")):
    for io in T.serial(4, annotations={"pleat.partition": True}):
        for r in T.serial(29, annotations={"pleat.partition": True}):
            for ii in T.unroll(4):
                if io * 4 + ii < 13 and io * 4 + ii + r >= 15 and io * 4 + ii + r < 26:
                    B[io * 4 + ii] = B[io * 4 + ii] + A[io * 4 + ii + r - 15] * W[r]
