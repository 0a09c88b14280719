# Parallel loops directly inside one another become one loop, and a loop that is to be partitioned a
# loop of one iteration, which is cut by a choice between its ranges. A range of one iteration has no
# conditions. Loops with statements between them, of unknown extent, or inside a serial loop stay.
# RUN: pleat opt %s --pass collapse_parallel_loops,partition_loops --verify-each
# RUN: pleat opt %s --pass collapse_parallel_loops,collapse_parallel_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def tail(A: T.Buffer((3, 49), "float32"), B: T.Buffer((3, 49), "float32")):
    for p in T.parallel(3):
        for r in T.parallel(5, annotations={"pleat.partition": True}):
            for i in T.unroll(10):
                if r * 10 + i < 49:
                    B[p, r * 10 + i] = A[p, r * 10 + i] + T.float32(1)


# Conditions of one loop that are decided in different iterations make more than one choice.
@T.prim_func
def early_and_tail(A: T.Buffer((3, 49), "float32"), B: T.Buffer((3, 49), "float32")):
    for p in T.parallel(3):
        for r in T.parallel(5, annotations={"pleat.partition": True}):
            for i in T.unroll(10):
                if r * 10 + i < 49:
                    B[p, r * 10 + i] = A[p, r * 10 + i] + T.if_then_else(r * 10 + i < 20, T.float32(1), A[p, 0])


# No version of a tile is made for the condition of a prefetch.
@T.prim_func
def prefetches(A: T.Buffer((3, 49), "float32"), B: T.Buffer((3, 49), "float32")):
    for p in T.parallel(3):
        for r in T.parallel(5, annotations={"pleat.partition": True}):
            if p + 1 < 3 and r < 3:
                T.prefetch(T.address_of(A[p + 1, r * 16]), 0, 2)
            for i in T.unroll(10):
                if r * 10 + i < 49:
                    B[p, r * 10 + i] = A[p, r * 10 + i] + T.float32(1)


@T.prim_func
def borders(A: T.Buffer((7, 11), "float32"), B: T.Buffer((7, 11), "float32")):
    for i in T.parallel(7, annotations={"pleat.partition": True}):
        for j in range(11):
            B[i, j] = T.if_then_else(i >= 1 and i < 5, A[i - 1, j] + A[i + 2, j], T.float32(0))


@T.prim_func
def three(A: T.Buffer((2, 3, 5), "float32"), B: T.Buffer((2, 3, 5), "float32")):
    for i in T.parallel(2):
        for j in T.parallel(1, 3):
            for k in T.parallel(5):
                B[i, j, k] = A[i, j, k] * T.float32(2)


@T.prim_func
def single(A: T.Buffer((1, 1), "float32"), B: T.Buffer((1, 1), "float32")):
    for i in T.parallel(1):
        for j in T.parallel(1, annotations={"pleat.partition": True}):
            B[i, j] = A[i, j]


@T.prim_func
def apart(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32"),
          C: T.Buffer((5,), "float32")):
    for i in T.parallel(5):
        C[i] = A[i, 0]
        for j in T.parallel(7):
            B[i, j] = A[i, j]


@T.prim_func
def symbolic(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (5, n), "float32")
    B = T.match_buffer(b, (5, n), "float32")
    for i in T.parallel(5):
        for j in T.parallel(n):
            B[i, j] = A[i, j]


@T.prim_func
def inside(A: T.Buffer((5, 7), "float32"), B: T.Buffer((5, 7), "float32")):
    for i in range(5):
        for j in T.parallel(7, annotations={"pleat.partition": True}):
            B[i, j] = A[i, j]
