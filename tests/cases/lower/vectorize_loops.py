# Vectorised loops become vectors, in pieces of powers of two; a sum over lanes is reduced, lanes
# under a condition are cut out, a strided access gathers, and a statement that cannot be a vector
# becomes a scalar loop over the lanes. In memory of this thread the other lanes are stored back, and
# nothing outside of a buffer is loaded for them.
# RUN: pleat opt %s --pass vectorize_loops --verify-each
from tvm.script import tir as T


@T.prim_func
def pieces(A: T.Buffer((11,), "float32"), B: T.Buffer((11,), "float32")):
    for i in T.vectorized(11):
        B[i] = A[i] * T.float32(2)


@T.prim_func
def reduction(A: T.Buffer((24,), "float32"), B: T.Buffer((3,), "float32")):
    for i in range(3):
        for k in T.vectorized(8):
            B[i] = B[i] + A[i * 8 + k]


@T.prim_func
def condition(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        if i >= 1 and i < 7:
            B[i] = A[i - 1]


@T.prim_func
def gather(A: T.Buffer((40,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        B[i] = A[i * 5 + 3]


@T.prim_func
def scalar(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"),
           K: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        if K[i] > 3:
            B[i] = A[i]


# In the last of three vectors of a row, which one loop computes with the rows, ten lanes are left.
@T.prim_func
def remainder(A: T.Buffer((84,), "float32"), B: T.Buffer((84,), "float32")):
    for f in T.parallel(6):
        if f // 2 % 3 < 2:
            for v in T.vectorized(16):
                B[f % 2 * 42 + f // 2 * 16 + v] = A[f % 2 * 42 + f // 2 * 16 + v]
        else:
            for v in T.vectorized(16):
                if f // 2 % 3 * 16 + v < 42:
                    B[f % 2 * 42 + f // 2 * 16 + v] = A[f % 2 * 42 + f // 2 * 16 + v]


@T.prim_func
def shared_condition(A: T.Buffer((25,), "float32"), n: T.int32, x: T.int32):
    for i in T.vectorized(4):
        if x < n:
            A[i] = A[i] + T.float32(1)
        elif i < n:
            A[i] = T.call_llvm_pure_intrin("float32", "llvm.fma", A[i], A[i + 4], T.float32(2))
    for i in T.vectorized(4):
        if A[0] < T.float32(3):
            if i < n:
                A[i] = T.float32(5)
    for i in T.vectorized(4):
        A[i] = T.call_llvm_pure_intrin("float32", "llvm.fma", A[i], A[i + 4], T.float32(2))


@T.prim_func
def border(A: T.Buffer((64,), "float32"), B: T.Buffer((40,), "float32")):
    C = T.allocate([40], "float32", "local")
    D = T.Buffer((40,), data=C, scope="local")
    for i in range(40):
        D[i] = T.float32(1)
    for i in T.vectorized(8):
        if i >= 1:
            D[i] = D[i] + A[i * 2 - 1]
    for i in T.vectorized(8):
        if 1 <= i and i < 7:
            D[8 + i] = D[8 + i] + A[i - 1] * A[57 + i]
    for i in T.vectorized(8):
        if i < 3:
            D[16 + i] = A[61 + i]
    for i in T.vectorized(8):
        if i >= 1:
            D[24 + i] = A[i * 5 - 3] / A[i - 1]
    for i in T.vectorized(8):
        if i < 0:
            D[32 + i] = A[i - 8]
    for i in range(40):
        B[i] = D[i]
