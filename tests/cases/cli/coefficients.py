# The coefficients of a polynomial are operands in memory where a processor has 16 registers, so
# that no register is copied, and in registers where it has 32.
# RUN: pleat compile %s --cpu avx2 -o %t/f.s > /dev/null && grep -c "vfmadd.*coefficient" %t/f.s; grep -c "vmovaps.*%ymm[0-9]*, %ymm" %t/f.s | cat
# RUN: pleat compile %s --cpu avx512 -o %t/f.s > /dev/null; grep -c "coefficient" %t/f.s | cat
from tvm.script import tir as T


@T.prim_func
def erf(a: T.Buffer((64, 16), "float32"), b: T.Buffer((64, 16), "float32")):
    for i in range(64):
        for j in T.vectorized(16):
            b[i, j] = T.float32(0.5) * (T.float32(1) + T.erf(a[i, j]))
