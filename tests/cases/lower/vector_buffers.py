# Memory that is accessed in whole vectors becomes memory of vectors; single elements are lanes of them.
# A parameter keeps its type. Memory stays as it is when a vector begins elsewhere, vectors have several
# lengths, an element is stored, a lane is not constant, or its address is taken.
# RUN: for f in lanes views stay address sized; do pleat opt %s --func $f --pass vector_buffers --verify-each > %t/$f.py || exit 1; done
# RUN: pleat opt %s --pass vector_buffers
# RUN: pleat opt %s --pass vector_buffers -o %t/once.py && pleat opt %t/once.py --pass vector_buffers | diff %t/once.py -
# RUN: for f in lanes views stay; do pleat verify %s --func $f | grep -c agrees; done
from tvm.script import tir as T


@T.prim_func
def lanes(A: T.Buffer((16,), "float32"), B: T.Buffer((4,), "float32")):
    L = T.decl_buffer((16,), scope="local")
    for i in range(4):
        L[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4]
    for i in range(4):
        B[i] = L[i * 4] + L[i * 4 + 1] * L[i * 4 + 2] - L[i * 4 + 7 - 4]


@T.prim_func
def views(A: T.Buffer((3, 5, 16), "int32"), B: T.Buffer((3, 5, 16), "int32"), C: T.Buffer((7,), "int32")):
    V = T.decl_buffer((15, 16), "int32", data=A.data)
    for i, j, k in T.grid(3, 5, 2):
        B[i, j, k * 8:k * 8 + 8] = A[i, 4 - j, T.Ramp(8 - k * 8, 1, 8)] + V[i * 5 + j, k * 8:k * 8 + 8]
    for i in range(7):
        C[i] = A[i % 3, i % 5, 11]


@T.prim_func
def stay(A: T.Buffer((16,), "float32"), B: T.Buffer((17,), "float32"), C: T.Buffer((16,), "float32"),
         D: T.Buffer((16,), "float32"), E: T.Buffer((16,), "float32")):
    for i in range(3):
        A[T.Ramp(i * 4 + 2, 1, 4)] = B[i * 4:i * 4 + 4]
        C[i * 4:i * 4 + 4] = D[i * 4:i * 4 + 4]
        E[i * 4:i * 4 + 4] = D[i * 4:i * 4 + 4] + T.Broadcast(D[i], 4)
    C[0:8] = A[8:16]
    E[15] = T.float32(3)


@T.prim_func
def address(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(4):
        T.prefetch(T.address_of(A[i * 4]), 0, 3)
        B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4]


@T.prim_func
def sized(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 4,), "float16")
    B = T.match_buffer(b, (n, n * 4), "float16")
    for i, j in T.grid(n, n):
        B[i, j * 4:j * 4 + 4] = A[j * 4:j * 4 + 4]
