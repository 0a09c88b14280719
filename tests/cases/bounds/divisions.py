# Divisions of integers by what may be 0: proved, or checked at run time, and never the end of the
# process. A loop that does not run divides by nothing.
# RUN 1: pleat run %s --cpu avx2 --func by_element --fill zero
# RUN 1: pleat run %s --cpu avx2 --func by_element --fill zero --target c
# RUN 1: pleat run %s --cpu avx2 --func by_size --dim n=0 --fill random
# RUN: pleat run %s --func by_size --dim n=5 --fill random | grep -c "B   "
# RUN: pleat run %s --func no_iterations --dim n=0 --fill random | grep "^B "
# RUN 1: pleat run %s --cpu avx2 --func in_index --fill zero
# RUN 1: pleat run %s --cpu avx2 --func vectors --fill zero
# RUN: for f in proved behind_a_test; do pleat verify %s --func $f | grep -o "agrees with the interpreter"; done
# RUN: pleat verify %s --func no_iterations --dim n=3 | grep -o "agrees with the interpreter"
# RUN 1: pleat run %s --cpu avx2 --func in_a_while --fill zero
# RUN 1: pleat run %s --func by_a_loop --fill zero
# RUN 1: pleat run %s --func by_a_choice --fill zero
# RUN: pleat opt %s --func unrolled --pass unroll_loops 2>/dev/null | tail -2
from pleat.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def by_element(A: T.Buffer((17,), "int32"), D: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32")):
        for i in range(17):
            with T.block("B"):
                vi = T.axis.spatial(17, i)
                B[vi] = T.truncdiv(A[vi], D[vi]) + A[vi] % 7

    @T.prim_func
    def by_size(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (13,), "int32")
        for i in range(13):
            with T.block("B"):
                vi = T.axis.spatial(13, i)
                B[vi] = vi % n

    @T.prim_func
    def no_iterations(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "int32")
        B = T.match_buffer(b, (n,), "int32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[(vi + 3) % n] // n

    @T.prim_func
    def in_index(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "uint8"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[T.min(T.cast(T.uint8(255) // D[vi], "int32"), 15)]

    @T.prim_func
    def vectors(A: T.Buffer((16,), "int32"), D: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32")):
        for i in T.vectorized(16):
            B[i] = A[i] % D[i]

    @T.prim_func
    def proved(A: T.Buffer((11,), "int32"), B: T.Buffer((11,), "int32")):
        for i in range(11):
            with T.block("B"):
                vi = T.axis.spatial(11, i)
                B[vi] = A[vi] // (vi + 1) + A[vi] % 4

    @T.prim_func
    def behind_a_test(A: T.Buffer((11,), "int32"), B: T.Buffer((11,), "int32")):
        for i in range(11):
            with T.block("B"):
                vi = T.axis.spatial(11, i)
                B[vi] = T.if_then_else(A[vi] != 0, 100 // A[vi], -1)

    @T.prim_func
    def in_a_while(A: T.Buffer((2,), "int32")):
        while 8 // A[0] > 1:
            A[0] = A[0] + 1

    @T.prim_func
    def by_a_loop(A: T.Buffer((3,), "int32"), B: T.Buffer((3, 4), "int32")):
        for i, j in T.grid(3, 4):
            B[i, j] = A[i] % (2 - j)

    @T.prim_func
    def by_a_choice(A: T.Buffer((3,), "int32"), B: T.Buffer((3, 4), "int32")):
        for i, j in T.grid(3, 4):
            B[i, j] = T.Select(j > 0, T.truncdiv(A[i], j), 0)

    @T.prim_func
    def unrolled(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
        for j in T.unroll(1):
            B[0] = T.truncmod(A[0], j)
            B[1] = T.if_then_else(A[1] < j, A[1] // j, 0)
