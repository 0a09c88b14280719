# Whether iterations of parallel and vectorised loops are independent: proved, refuted by two of
# them, or not decided because an index is data.
# RUN 1: pleat check %s
from pleat.script import tir as T

@T.prim_func
def fused(A: T.Buffer((6, 4), "float32"), C: T.Buffer((6, 4), "float32")):
    for f in T.parallel(24):
        C[f // 4, f % 4] = A[f // 4, f % 4]

@T.prim_func
def fused3(C: T.Buffer((6, 5, 7), "float32")):
    for f in T.parallel(6 * 5 * 7):
        C[f // 35, f // 7 % 5, f % 7] = T.float32(1) * T.cast(f, "float32")

@T.prim_func
def tile(A: T.Buffer((30, 64), "float32"), C: T.Buffer((30, 64), "float32")):
    for io in T.parallel(8):
        for ii, j in T.grid(4, 64):
            with T.block("B"):
                vi = T.axis.S(30, io * 4 + ii)
                vj = T.axis.S(64, j)
                T.where(io * 4 + ii < 30)
                C[vi, vj] = A[vi, vj] * 2.0

@T.prim_func
def sym(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i in T.parallel(n):
        for j in T.vectorized(m):
            C[i, j] = A[i, j] + C[i, j]

@T.prim_func
def symf(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for f in T.parallel(n * m):
        C[f // m, f % m] = A[f // m, f % m]

@T.prim_func
def swz(A: T.Buffer((8, 32), "float32"), C: T.Buffer((8, 32), "float32")):
    for i in range(8):
        for j in T.parallel(32):
            C[i, j ^ i] = A[i, j]

@T.prim_func
def modp(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for j in T.parallel(16):
        C[j * 5 % 16] = A[j] + C[j * 5 % 16]

@T.prim_func
def scatter(A: T.Buffer((16,), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((16,), "float32")):
    for j in T.parallel(16):
        C[idx[j]] = A[j]

@T.prim_func
def row(A: T.Buffer((16, 3), "float32"), idx: T.Buffer((16,), "int32"), C: T.Buffer((16, 3), "float32")):
    for j in T.parallel(16):
        if idx[j] < 3 and idx[j] >= 0:
            C[j, idx[j]] = A[j, idx[j]] + C[j, 0]

@T.prim_func
def evenodd(C: T.Buffer((16,), "float32")):
    for i in T.parallel(8):
        C[i * 2] = C[i * 2 + 1]

@T.prim_func
def evenodd2(C: T.Buffer((16,), "float32")):
    for i in T.parallel(16):
        if i % 2 == 0:
            C[i] = C[(i + 1) % 16]

@T.prim_func
def summ(A: T.Buffer((30, 64), "float32"), C: T.Buffer((30,), "float32")):
    for i in T.parallel(30):
        for k in range(64):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 0.0
                C[vi] += A[vi, vk]

@T.prim_func
def same(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.parallel(4):
        for k in range(3):
            C[i + k] = A[i + k] * T.float32(2)

@T.prim_func
def notsame(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.parallel(4):
        for k in range(3):
            j: T.int32 = i + k
            C[j] = A[j] * T.cast(i, "float32")

@T.prim_func
def symrace(c: T.handle):
    n = T.int32()
    C = T.match_buffer(c, (n,), "float32")
    for i in T.parallel(n):
        C[i // 2] = T.cast(i, "float32")
