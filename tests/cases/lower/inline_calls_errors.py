# Calls that cannot be put in place, and accesses of callees that leave the caller's memory.
# RUN 1: pleat check %s
# RUN 1: pleat verify %s --func loop
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class M:
    @T.prim_func
    def loop(n: T.int32) -> T.int32:
        if n < 1:
            return 0
        return M.loop(n - 1)

    @T.prim_func
    def even(n: T.int32) -> T.int32:
        return 1 - M.odd(n - 1)

    @T.prim_func
    def odd(n: T.int32) -> T.int32:
        return 1 - M.even(n - 1)

    @T.prim_func(private=True)
    def fill(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = T.float32(0)

    @T.prim_func(private=True)
    def five(A: T.Buffer((5,), "float32")):
        for i in range(5):
            A[i] = T.float32(0)

    @T.prim_func(private=True)
    def add(A: T.Buffer((5,), "float32"), x: T.float32):
        for i in range(5):
            A[i] = A[i] + x

    @T.prim_func(private=True)
    def wide(A: T.Buffer((5,), "float64")):
        A[0] = T.float64(0)

    @T.prim_func(private=True)
    def bare(h: T.handle):
        A = T.decl_buffer((3,), "float32", data=h)
        A[0] = T.float32(0)

    @T.prim_func
    def size(A: T.Buffer((4, 3), "float32")):
        M.fill(A.data)

    @T.prim_func
    def too_far(A: T.Buffer((4, 3), "float32")):
        for i in range(4):
            M.five(T.address_of(A[i, 0]))

    @T.prim_func
    def too_small(A: T.Buffer((3,), "float32")):
        M.five(A.data)

    @T.prim_func
    def races(A: T.Buffer((17,), "float32")):
        for i in T.parallel(4):
            M.add(T.address_of(A[i * 4]), T.Cast("float32", i))

    @T.prim_func
    def other_size(A: T.Buffer((4, 3), "float32")):
        M.wide(T.address_of(A[1, 0]))

    @T.prim_func
    def no_buffer(A: T.Buffer((4, 3), "float32")):
        M.bare(T.address_of(A[1, 0]))

    @T.prim_func
    def unknown(A: T.Buffer((4, 3), "float32")):
        M.five(T.call_extern("handle", "memory"))

    @T.prim_func
    def parallel_return(A: T.Buffer((4,), "float32")) -> T.int32:
        for i in T.parallel(4):
            return 0
        return 1

    @T.prim_func
    def leaves(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "int32")):
        B[0] = M.parallel_return(A.data)

    @T.prim_func(private=True)
    def sized(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = T.float32(0)

    @T.prim_func
    def negative(A: T.Buffer((4,), "float32")):
        M.sized(A.data, -3)
