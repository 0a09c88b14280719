# RUN: pleat opt %s 2>/dev/null
# Statements and expressions below blocks.
from tvm.script import tir as T


@T.prim_func
def dyn(a: T.handle, b: T.handle, n: T.int32):
    m = T.int64()
    A = T.match_buffer(a, (m, n), "float16", strides=[n, 1], elem_offset=3, align=64, axis_separators=[1])
    B = T.match_buffer(b, [m], dtype="float32", scope="global.texture")
    x: T.int32 = n * 2 + 1
    y = x // 3
    if y < 4 and not (n == 3):
        B[0] = T.float32(1)
    elif y > 10 or n != 2:
        B[1] = T.max(T.cast(A[0, y], "float32"), 0.5)
    else:
        B[2] = T.if_then_else(n > 3, B[0], T.Select(n < 2, 1.0, T.exp(B[1])))
    assert n > 0, "n is positive"
    while n < 3:
        T.evaluate(T.call_extern("int32", "foo", n))
    C = T.decl_buffer((64,), "float32", scope="local")
    T.attr(C.data, "pragma", 1)
    for i in T.vectorized(4):
        C[i] = -B[i] - (A[0, 0] - A[1, 1]) * T.Cast("float16", i)
    C[0:4] = C[4:8] + 1
    C[T.Ramp(0, 2, 4)] = T.Broadcast(T.float32(1), 4) * C[n * 4:n * 4 + 4]
    for k in T.serial(2, n, annotations={"unroll": 4, "name": "x"}):
        T.call_extern("void", "bar", T.address_of(C[k]), "str")
    for t in T.thread_binding(32, thread="threadIdx.x"):
        C[t] = C[t] * 3
        D = T.decl_buffer((32, 2), "float32", data=C.data)
        D[t, 0] = 1
    w = T.allocate([3, 4], "int8", "local")
    W = T.decl_buffer((12,), "int8", data=w)
    W[0] = T.int8(3)
    k1 = T.allocate_const([1, 2, 3, -4], "int8", [2, 2])
    K = T.decl_buffer((2, 2), "int8", data=k1)
    W[1] = K[1, 1] & W[0]


@T.prim_func
def kinds(A: T.Buffer((13,), "float32"), B: T.Buffer((13,), "bfloat16"), h: T.handle("int8", "shared"),
          S: T.Buffer((5, 3), "uint8"), W: T.Buffer((4,), "float32x4")) -> T.int32:
    for i in T.parallel(13):
        A[i] = T.min(A[i], -1e-30) + T.max(i, 3) - abs(A[i]) ** 2.0
        B[i] = T.bfloat16(1.5) - -B[i] / B[i]
        A[i] = T.Cast("float32", T.isnan(A[i])) * T.float32("nan") + T.float32("-inf")
    for i in T.unroll(1, 5):
        S[i, 2] = (S[i, 0] | S[i, 1]) ^ (~S[i, 2] << T.uint8(3)) & T.uint8(255)
        S[0, 0] = T.truncdiv(S[i, 0], T.uint8(7)) + T.truncmod(S[i, 0], T.uint8(7)) + S[i, 1] // 2 % 3
    with T.LetStmt(A[0] + 1) as x:
        A[1] = x
    with T.LetStmt(A[0] + 2) as x:
        A[1] = x * T.Let(y * y, where={y: x + 1})
    W[0] = W[1] + W[2] * 2
    W[3] = T.Shuffle([W[0], W[1]], [0, 2, 4, 6])
    A[2] = T.vector_sum(W[0]) + T.reinterpret("float32", T.int32(3) + T.int32(4))
    T.prefetch(T.address_of(A[4]), 0, 3)
    T.evaluate(A[0])
    T.evaluate(0)
    with T.attr("x", "pragma_unroll", 8):
        A[3] = T.fma(A[0], A[1], 2) + T.call_pure_extern("float32", "sinf", A[2])
    if T.int64(9223372036854775807) > T.int64(-9223372036854775807) - 1 and A[0] >= 1:
        pass
    if not (A[0] < 1 or A[1] > 2) and (A[2] == 3) != T.bool(False):
        A[0:8:2] = T.Broadcast(T.float32(2.5), 4)
        A[T.Ramp(11, -1, 4)] = A[3:7]
    with T.Assert(T.uint64(18446744073709551615) > T.uint64(2), "a \"quoted\" \\ line\n"):
        A[5] = T.cast(T.cast(A[6], "int64"), "float32")
    A[6] = T.min_value("float32") + T.max_value("float32") + T.infinity("float32")
    i: T.int32 = T.Cast("int32", A[0])
    A[7] = T.Cast("float32", 1 + (i + (2 - (3 - i))) * (i * (4 // (i % 5))))


# Operators on numbers of Python are computed, those on a program's values are not.
@T.prim_func
def numbers(A: T.Buffer((1 << 4,), "int32")):
    for i in range(1 << 3 | 1):
        A[i & 7] = (i << 2) + (7 & 3) + (5 ^ 1) + (-7 >> 1) + (1 << 40 >> 38) + T.shift_left(1, 3) + 2 ** 5
