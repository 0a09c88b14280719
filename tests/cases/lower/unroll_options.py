# UnrollLoop's arguments and attributes: serial loops that hold only unrolled ones are unrolled too.
# RUN: pleat opt %s --pass "UnrollLoop(auto_max_step=14)" --verify-each
# RUN: pleat opt %s --pass "UnrollLoop(14, 0)" --verify-each
# RUN: pleat opt %s --pass "UnrollLoop(auto_max_step=14, explicit_unroll=False)" --verify-each
# RUN: pleat opt %s --pass "UnrollLoop(auto_max_extent=1)" --verify-each
# RUN: pleat opt %s --pass "UnrollLoop(unroll_local_access=True)" --verify-each
# RUN: pleat opt %s --pass "VectorizeLoop(enable_vectorize=False)" --verify-each
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((35,), "float32"), n: T.int32):
    for i in range(2):
        for j in range(7):
            A[i * 7 + j] = A[i * 7 + j] + T.float32(1)
    for i in range(5):
        A[i] = T.float32(1)
        for j in range(3):
            A[j] = A[j + i]
        for j in range(11):
            A[j] = A[j + i]
    for i in T.vectorized(3):
        A[i] = T.float32(4)


@T.prim_func
def attributes(A: T.Buffer((35,), "float32"), n: T.int32):
    with T.attr(T.int32(0), "pragma_auto_unroll_max_step", 6):
        for i in range(3):
            for j in range(2):
                A[i * 2 + j] = T.float32(i)
    for i in T.serial(3, annotations={"pragma_auto_unroll_max_step": 3, "pragma_unroll_explicit": 0}):
        A[i] = T.float32(1)
    for i in range(1):
        A[n % 7] = T.float32(i)


@T.prim_func
def local(A: T.Buffer((5,), "float32")):
    B = T.alloc_buffer((5,), scope="local")
    for i in range(5):
        for j in range(2):
            B[i] = A[i]
    for i in range(5):
        A[i] = A[i] + T.float32(1)
