# RUN: pleat opt %s
# The extent of a region is kept as it is written.
from tvm.script import tir as T


@T.prim_func
def symbolic_region(a: T.handle, B: T.Buffer((16,), "float32")):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    for k in range(n * m):
        with T.block("b"):
            T.reads(A[T.min(k // m, n - k // m - 1):T.min(k // m, n - k // m - 1) + (T.max(k // m + 1, n - k // m) - T.min(k // m, n - k // m - 1)), k % m])
            T.writes(B[0])
            B[0] = A[k // m, k % m] + A[n - k // m - 1, k % m]
