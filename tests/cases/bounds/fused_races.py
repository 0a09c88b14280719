# Loops that are fused and split again: no index differs between all iterations of the parallel loop,
# but the number that neighbouring indices make does.
# RUN: pleat check %s
from pleat.script import tir as T


@T.prim_func
def two(C: T.Buffer((2, 5, 11), "float32")):
    for p in T.parallel(3):
        for k, i, j in T.grid(2, 4, 8):
            if p * 4 + i < 10 and k * 8 + j < 11:
                C[(p * 4 + i) // 5, (p * 4 + i) % 5, k * 8 + j] += 1.0


@T.prim_func
def three(c: T.handle):
    n = T.int32()
    C = T.match_buffer(c, (n, 3, 5, 7), "float32")
    for p in T.parallel((n * 15 + 3) // 4):
        for i, j in T.grid(4, 7):
            if p * 4 + i < n * 15:
                C[(p * 4 + i) // 15, (p * 4 + i) // 5 % 3, (p * 4 + i) % 5, j] += 1.0
