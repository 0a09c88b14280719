# Functions whose arguments make_packed has packed get them back as parameters, in their order; strides,
# offsets and names of the memory stay, and a result is stored as its kind and its value. They run.
# RUN: for f in f results own; do pleat opt %s --func $f --pass make_packed -o %t/$f.py; pleat opt %t/$f.py --func $f --pass unpack_api | sed -n "/^def $f(/,/^$/p"; done
# RUN: pleat verify %t/f.py --func f --dim n=5 --dim m=3 --dim s=8 
# RUN 1: pleat opt %s --func pointer --pass make_packed -o %t/p.py && pleat run %t/p.py --func pointer
from tvm.script import tir as T


@T.prim_func
def f(a: T.handle, k: T.int16, x: T.float32, c: T.handle):
    n, m, s = T.int32(), T.int64(), T.int32()
    A = T.match_buffer(a, (n + 1, m), "int8", strides=[s, 2], elem_offset=4)
    C = T.match_buffer(c, (n, m), "float32")
    for i, j in T.grid(n, m):
        C[i, j] = x + T.Cast("float32", A[i + 1, j] + T.Cast("int8", k))


@T.prim_func
def results(A: T.Buffer((5,), "float32"), b: T.bool) -> T.float32:
    if b:
        return A[3]
    return T.float32(0.5)


@T.prim_func(private=True)
def own(A: T.Buffer((5,), "int32")):
    A[3] = 1


@T.prim_func
def pointer(h: T.handle, A: T.Buffer((3,), "int32")):
    A[0] = T.call_extern("int32", "f", h)
