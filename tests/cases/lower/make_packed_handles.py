# A handle of a tensor that the body reads is defined, and attributes that name parameters or their
# tensors, which are not known any more, are left out.
# RUN: pleat opt %s --pass make_packed -o %t/f.py && pleat opt %t/f.py | grep -E "func_attr|= B_handle|isnullptr.b.:"
from tvm.script import tir as T


@T.prim_func
def handles(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (8,), "float32")
    B = T.match_buffer(b, (8,), "float32")
    T.func_attr({"of": [A, B], "sizes": [a, n + 1], "x": 1})
    for i in range(8):
        if T.isnullptr(b):
            A[i] = T.float32(0)
        else:
            A[i] = B[i] + T.float32(1)
