# A function takes an array of tagged arguments, and asserts what its parameters state: number, kinds,
# rank, element type, shape, strides, offset, device, memory and alignment. Variables get their values
# before the asserts that use them. A result is stored. Private functions stay, and no other pass runs on
# a packed function.
# RUN: pleat opt %s --func f --pass make_packed | sed -n "/def f/,/return 0/p" | sed 's/ when calling.*expected/ … expected/'
# RUN: pleat opt %s --func f --pass make_packed -o %t/once.py && pleat opt %t/once.py --func f --pass make_packed | diff %t/once.py -
# RUN: pleat opt %s --func results --pass make_packed | sed -n "/compute_scope/,\$p"
# RUN: pleat opt %s --func own --pass make_packed | sed -n "/def own/,/^$/p"
# RUN: pleat opt %s --func hosted --pass make_packed | grep func_attr
# RUN 1: pleat opt %t/once.py --func f --pass simplify_loops
# RUN 1: pleat opt %s --func unknown --pass make_packed
# RUN 1: pleat opt %s --func leaves --pass make_packed
from tvm.script import tir as T


@T.prim_func
def f(a: T.handle, k: T.int16, x: T.float32, b: T.bool, h: T.handle, c: T.handle, d: T.handle):
    n, m, s, o = T.int32(), T.int64(), T.int32(), T.int32()
    A = T.match_buffer(a, (n + 1, m), "int8", strides=[s, 2], elem_offset=4, align=64)
    C = T.match_buffer(c, (n, 4), "float32")
    D = T.match_buffer(d, (m,), "float16x4", elem_offset=o, offset_factor=2)
    for i in range(n):
        C[i, 0] = x
        A[i, 0] = T.Cast("int8", k)


@T.prim_func
def results(k: T.int32) -> T.float32:
    if k > 1:
        return T.float32(5)
    return T.Cast("float32", k)


@T.prim_func(private=True)
def own(A: T.Buffer((5,), "int32")):
    A[3] = 1


@T.prim_func
def unknown(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 2,), "int32")
    A[3] = 1


@T.prim_func
def hosted(A: T.Buffer((1,), "float32")):
    T.func_attr({"target": T.target("cuda", host="llvm")})
    A[0] = T.float32(1)


@T.prim_func
def leaves(A: T.Buffer((8,), "int32")) -> T.int32:
    for i in T.parallel(8):
        if A[i] > 3:
            return i
    return 20
