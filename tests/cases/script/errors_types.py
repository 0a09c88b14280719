# RUN 1: pleat opt %s
# Types and values that do not fit.
from pleat.script import tir as T


@T.prim_func
def types(A: T.Buffer((4, 5), "float32"), I: T.Buffer((4,), "int32"), U: T.Buffer((4,), "uint8"),
          H: T.handle, untyped, C: T.Buffer((-1,), "float32"), D: T.Buffer((4,), "float33"),
          E: T.Buffer((4,), 5), F: T.Buffer((4, 4), "int8", strides=[1]),
          G: T.Buffer((4,), "int8", axis_separators=[3, 1]), J: T.Buffer((4,), "int8", scop="local"),
          K: T.Buffer(), L: T.Buffer((A[0, 0],), "int8"), M: "float32x", N: float):
    A[0, 0] = I[0]
    I[0] = A[0, 0]
    I[0] = 1.5
    U[0] = 256
    U[1] = -1
    I[0] = 3000000000
    A[0, A[0, 0]] = 1
    A[True, 0] = 1
    A[0, 0] = I[0] / I[1]
    I[0] = I[0] // 0
    I[0] = 7 % 0
    if I[0]:
        pass
    if A[0, 0] > 1 and I[0]:
        pass
    A[0, 0] = T.exp(I[0])
    A[0, 0] = T.BitwiseAnd(A[0, 0], A[0, 1])
    A[0, 0] = T.max(A[0, 0])
    A[0, 0] = T.max(A[0, 0], y=3)
    A[0, 0] = T.if_then_else(I[0], A[0, 0], 0)
    A[0, 0] = T.Select(I[0] > 1, A[0, 0], "x")
    A[0, 0] = T.Cast("flot32", I[0])
    A[0, 0] = T.float32("infinite")
    A[0, 0] = T.int32(1.5)
    A[0, 0] = T.reinterpret("float64", I[0])
    A[0, 0:3] = T.Broadcast(A[0, 0], 4)
    A[0:4, 0] = T.Broadcast(A[0, 0], 4)
    A[0, 0:I[0]] = A[0, 0]
    A[0, T.Ramp(0, 1, 1)] = 1
    A[0, 0] = T.Broadcast(1, 4)
    A[0, 0] = H + 1
    A[0, 0] = T.address_of(I)
    A[0, 0] = A[0, 0] @ A[0, 1]
    x: T.int32 = A[0, 0]
    for i in range(A[0, 0]):
        pass
    for i in T.thread_binding(4):
        pass
    for i in T.serial(4, annotation={}):
        pass
    for i in T.serial():
        pass
    for i in T.serial(1, 2, 3, 4):
        pass
    A[0, 0] = 9223372036854775807 + 1
    A[0, 0] = 18446744073709551615
    A[0, 0] = T.min_value("handle")
    A[0, 0] = (1, 2)
    A[0, 0] += "x"
    A[0, 0] **= 2
    (x, y) = 3
    A[0, 0] = None
    return A[0, 0]
    del A
    def inner():
        pass
    W = T.allocate_const([1, 2, 3], "int8", [2, 2])
    V = T.allocate_const([1, "x"], "int8", [2])
    T.attr(A, 3, 4)
    T.func_attr([1])
    T.func_attr({1: 2})
    assert A[0, 0], "no condition"
    U2 = T.allocate([4], "int8", "global", A[0, 0] > 1)
    U3 = T.allocate([4], "int8", annotations={1: 1})
    U4 = T.decl_buffer((4,), "int8", buffer_type="other")
    U5 = T.decl_buffer((4,), "int8", layout="x")
