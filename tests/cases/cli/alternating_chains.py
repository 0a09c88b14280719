# Six iterations of a loop over vectors with polynomials alternate: a coefficient is loaded once for
# them, and once for the iterations that are left. Values stay right for any number of iterations,
# and where an iteration reads what the one before it wrote.
# RUN: pleat compile %s --func parts --cpu avx2 -o %t/f.s > /dev/null && grep -c "vfmadd" %t/f.s; grep -c "coefficient.*rip" %t/f.s | cat
# RUN: (pleat verify %s --func parts && pleat verify %s --func sizes --dim n=5 && pleat verify %s --func sizes --dim n=83 && pleat verify %s --func chained) | grep -c "agrees"
from tvm.script import tir as T


@T.prim_func
def parts(a: T.Buffer((13, 8), "float32"), b: T.Buffer((13, 8), "float32")):
    for i in T.parallel(13):
        for j in T.vectorized(8):
            b[i, j] = T.exp(a[i, j])


@T.prim_func
def sizes(a_handle: T.handle, b_handle: T.handle):
    n = T.int32()
    a = T.match_buffer(a_handle, (n, 8), "float32")
    b = T.match_buffer(b_handle, (n, 8), "float32")
    for i in T.serial(n):
        for j in T.vectorized(8):
            b[i, j] = T.float32(1) + T.erf(a[i, j])


@T.prim_func
def chained(b: T.Buffer((14, 8), "float32")):
    for i in T.serial(13):
        for j in T.vectorized(8):
            b[i + 1, j] = T.tanh(b[i, j] + T.float32(0.5))
