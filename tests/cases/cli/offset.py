# RUN: pleat verify %s --func shifted
# RUN: pleat verify %s --func strided
# RUN: pleat verify %s --func free
# RUN: pleat verify %s --func sized --dim n=3
# RUN: pleat run %s --func fills --fill random | grep "^B"
# RUN: pleat verify %s --func twice --dim n=3
# RUN: pleat verify %s --func spread --dim m=3 --dim n=5 --dim s=17 --dim t=3
# RUN 1: pleat run %s --func spread --fill random --dim m=3 --dim n=5 --dim s=-17
# RUN 1: pleat run %s --func negative --fill random
# RUN: pleat run %s --func plain --fill random -o %t/a.npz | grep -c plain
# RUN: python3 -c "import zipfile; zipfile.ZipFile('%t/a.npz').extractall('%t')"
# RUN: pleat run %s --func copied --input A=%t/A.npy | grep -A1 "^C"
# RUN: pleat compile %s --func shifted -o %t/out.c | grep -c shifted; grep -c "_run" %t/out.c || true
# The memory of a parameter with elem_offset spans the elements before the first one, too.
from tvm.script import tir as T


@T.prim_func
def shifted(A: T.Buffer((4, 4), "float32", elem_offset=6),
            B: T.Buffer((4, 4), "float32", elem_offset=100000)):
    for i, j in T.grid(4, 4):
        B[i, j] = A[i, j] * T.float32(2)


@T.prim_func
def plain(A: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        A[i, j] = T.float32(1)


@T.prim_func
def strided(a: T.handle, B: T.Buffer((3, 5), "int32", elem_offset=1)):
    A = T.match_buffer(a, (3, 5), "int32", strides=[7, 1], elem_offset=11)
    for i, j in T.grid(3, 5):
        B[i, j] = A[i, j] + 1


@T.prim_func
def free(a: T.handle, B: T.Buffer((8,), "float32x4", elem_offset=3)):
    start = T.int32()
    A = T.match_buffer(a, (8,), "float32x4", elem_offset=start)
    for i in range(8):
        B[i] = A[i]


@T.prim_func
def sized(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32", elem_offset=n)
    for i, j in T.grid(n, 4):
        B[i, j] = A[i, j] - T.float32(1)


@T.prim_func
def fills(B: T.Buffer((4,), "float32", elem_offset=2)):
    for i in range(4):
        B[i] = T.Cast("float32", i + 1)


@T.prim_func
def twice(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32", elem_offset=n * 2)
    for i in range(n):
        A[i] = A[i] + T.float32(1)


@T.prim_func
def negative(A: T.Buffer((4,), "float32", elem_offset=-1)):
    for i in range(4):
        A[i] = A[i] + T.float32(1)


@T.prim_func
def spread(a: T.handle, b: T.handle):
    m, n, s, t = T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "float32", strides=[s, t])
    B = T.match_buffer(b, (m, n), "float32", strides=[n * 2, 2], elem_offset=m + 1)
    for i, j in T.grid(m, n):
        B[i, j] = A[i, j] * T.Cast("float32", s)


@T.prim_func
def copied(A: T.Buffer((4, 4), "float32", elem_offset=6, strides=(1, 5)), C: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        C[i, j] = A[i, j] + T.Cast("float32", i * 4 + j)
