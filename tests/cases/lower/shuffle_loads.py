# A vector whose lanes are near one another, at distances that are known, is loaded whole and
# shuffled. Lanes at a regular distance of more than one, lanes that are far apart, and lanes at
# distances that are not known, or whose index may wrap around, stay.
# RUN: pleat opt %s --pass vectorize_loops,simplify_vectors,shuffle_loads --verify-each
from tvm.script import tir as T


@T.prim_func
def neighbours(A: T.Buffer((61,), "float32"), B: T.Buffer((61,), "float32")):
    for i in range(7):
        for j in T.vectorized(8):
            B[i * 8 + j] = A[i * 4 + j // 2]
    for j in T.vectorized(5):
        B[56 + j] = A[56 + j // 3]


@T.prim_func
def subtracted(A: T.Buffer((61,), "float32"), B: T.Buffer((56,), "float32")):
    for i in range(7):
        for j in T.vectorized(8):
            B[i * 8 + j] = A[i * 4 + 4 + j // 2 - T.min(i, 3)]


@T.prim_func
def reversed(A: T.Buffer((24,), "float32"), B: T.Buffer((24,), "float32")):
    for i in range(3):
        for j in T.vectorized(8):
            B[i * 8 + j] = A[23 - i * 8 - j]


@T.prim_func
def reflected(A: T.Buffer((16,), "int8"), B: T.Buffer((16,), "int8"), n: T.int32):
    for j in T.vectorized(8):
        B[j] = A[T.max(3 - j, j - 3)]
    for j in T.vectorized(8):
        B[8 + j] = A[T.min(j, 4) + 8]


@T.prim_func
def wrapped(A: T.Buffer((256,), "float32"), B: T.Buffer((24,), "float32")):
    for j in T.vectorized(8):
        B[j] = A[T.cast(T.cast(131 - j, "int8"), "int32") + 128]
    for j in T.vectorized(8):
        B[8 + j] = A[T.cast(255 - j * j, "uint8")]
    for j in T.vectorized(8):
        B[16 + j] = A[T.cast(T.cast(j // 2, "int8"), "int32")]


@T.prim_func
def others(A: T.Buffer((64,), "float32"), I: T.Buffer((8,), "int32"), B: T.Buffer((40,), "float32"),
           M: T.Buffer((8,), "bool"), N: T.Buffer((8,), "bool")):
    for j in T.vectorized(8):
        B[j] = A[j * 2]
    for j in T.vectorized(8):
        B[8 + j] = A[j // 4 * 40]
    for j in T.vectorized(8):
        B[16 + j] = A[T.min(T.max(I[j], 0), 63)]
    for j in T.vectorized(8):
        B[24 + j] = A[j % 2 * 14]
    for j in T.vectorized(8):
        B[32 + j] = A[j // 8]
    for j in T.vectorized(8):
        N[j] = M[7 - j]


@T.prim_func
def limited(A: T.Buffer((64,), "float32"), B: T.Buffer((40,), "float32")):
    for j in T.vectorized(16):
        B[j] = A[T.max(j * 2 - 1, 1)]
    for j in T.vectorized(8):
        B[16 + j] = A[T.min(T.max(j, 1), 6) * 3 + 40]
    for j in T.vectorized(8):
        B[24 + j] = A[T.min(j, 1) * 4]
    for j in T.vectorized(8):
        B[32 + j] = A[T.min(j, 6) * 5]
