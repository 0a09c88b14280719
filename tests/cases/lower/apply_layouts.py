# The attribute "layout_transform_map" gives buffers their layouts (RFC 39): a local buffer, a parameter,
# two maps one after the other, padding. All accesses of an alias go through the map too.
# RUN: pleat opt %s --pass ApplyLayoutTransforms
# RUN: pleat opt %s --pass apply_layouts -o %t/once.py && pleat opt %t/once.py --pass apply_layouts | diff %t/once.py -
# RUN: pleat opt %s --func local --pass apply_layouts,lower --verify-each > %t/lowered.py
# RUN: pleat opt %s --func nhwc_to_nchwc --pass apply_layouts,lower --verify-each > %t/lowered.py
from tvm.script import tir as T


@T.prim_func
def local(A: T.Buffer((5, 7), "float32"), C: T.Buffer((5, 7), "float32")):
    T.func_attr({"layout_transform_map": {"B": [T.index_map(lambda i, j: [j // 4, i, j % 4])]}, "x": 1})
    B = T.alloc_buffer((5, 7))
    for i, j in T.grid(5, 7):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(5, 7):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


# The example of RFC 39, a copy from NHWC to NCHW4c, and a transposition before.
@T.prim_func
def nhwc_to_nchwc(A: T.Buffer((2, 5, 3, 8), "float32"), B: T.Buffer((2, 3, 5, 8), "float32")):
    T.func_attr({"layout_transform_map": {
        B: [T.index_map(lambda n, w, h, c: [n, h, w, c]),
            T.index_map(lambda n, h, w, c: [n, c // 4, h, w, c % 4])]}, "of": [A, B]})
    for n, w, h, c in T.grid(2, 3, 5, 8):
        with T.block("B"):
            vn, vw, vh, vc = T.axis.remap("SSSS", [n, w, h, c])
            B[vn, vw, vh, vc] = A[vn, vh, vw, vc]


@T.prim_func
def no_attribute(A: T.Buffer((5,), "float32")):
    for i in range(5):
        A[i] = T.float32(1)
