# Mistakes that users make in tensor programs, one in each function; what is read without an error is
# here for its warning or because it has a meaning.
# RUN 1: pleat check %s
from tvm.script import ir as I, relax as R, tir as T


@T.prim_func
def b1(A: T.Buffer((4, 4), "float32")):
    A[0] = 1.0

@T.prim_func
def b2(A: T.Buffer((4, 4), "float32")):
    A[0, 1, 2] = 1.0

@T.prim_func
def b3(A: T.Buffer((4,), "float32")):
    A["x"] = 1.0

@T.prim_func
def b4(A: T.Buffer((4,), "float32")):
    A[1.5] = 1.0

@T.prim_func
def b5(A: T.Buffer((-4,), "float32")):
    A[0] = 1.0

@T.prim_func
def b6(A: T.Buffer((4,), "float31")):
    A[0] = 1.0

@T.prim_func
def b7(A: T.Buffer(4.5, "float32")):
    A[0] = 1.0

@T.prim_func
def b8(A: T.Buffer((4,), 32)):
    A[0] = 1.0

@T.prim_func
def b9(A: T.Buffer((4,), "float32", strides=(1, 2))):
    A[0] = 1.0

@T.prim_func
def b10(A: T.Buffer((4,), "float32", elem_offset="x")):
    A[0] = 1.0

@T.prim_func
def b11(A: T.Buffer((4,), "float32", colour=3)):
    A[0] = 1.0

@T.prim_func
def b12(A: T.Buffer((4,), "float32", axis_separators=[3])):
    A[0] = 1.0

@T.prim_func
def b13(A: T.Buffer((4, 4), "float32", axis_separators=[1, 1])):
    A[0, 0] = 1.0

@T.prim_func
def b14(a: T.handle):
    A = T.match_buffer(a)
    A[0] = 1.0

@T.prim_func
def b15(a: T.handle):
    A = T.match_buffer(b, (4,), "float32")
    A[0] = 1.0

@T.prim_func
def b16(A: T.Buffer((4,), "float32")):
    B = T.decl_buffer((4,), "float32", data=A)
    B[0] = 1.0

@T.prim_func
def b17(A: T.Buffer((4,), "float32")):
    B = T.decl_buffer((4,), "float32", data=A.date)
    B[0] = 1.0

@T.prim_func
def b18(A: T.Buffer((4,), "float32")):
    A = T.alloc_buffer((4,), "float32")
    A.shape = (3,)

@T.prim_func
def b19(A: T.Buffer((4,), "float32")):
    A[0:5:2] = T.Broadcast(T.float32(1), 2)

@T.prim_func
def b20(A: T.Buffer((4,), "float32")):
    A[0:3] = T.Broadcast(T.float32(1), 2)

@T.prim_func
def b21(A: T.Buffer((4,), "float32")):
    A[0] = T.Broadcast(T.float32(1), 2)

@T.prim_func
def b22(A: T.Buffer((4,), "float32"), A: T.Buffer((4,), "float32")):
    A[0] = 1.0

@T.prim_func
def l1(A: T.Buffer((4,), "float32")):
    for i in 4:
        A[i] = 1.0

@T.prim_func
def l2(A: T.Buffer((4,), "float32")):
    for i in T.serial():
        A[i] = 1.0

@T.prim_func
def l3(A: T.Buffer((4,), "float32")):
    for i in T.serial(4.0):
        A[i] = 1.0

@T.prim_func
def l4(A: T.Buffer((4,), "float32")):
    for i, j in T.grid(4):
        A[i] = 1.0

@T.prim_func
def l5(A: T.Buffer((4,), "float32")):
    for i in T.grid(4, 4):
        A[i] = 1.0

@T.prim_func
def l6(A: T.Buffer((4,), "float32")):
    for i in T.sereal(4):
        A[i] = 1.0

@T.prim_func
def l7(A: T.Buffer((4,), "float32")):
    for i in range(4):
        i = 3
        A[i] = 1.0

@T.prim_func
def l8(A: T.Buffer((4,), "float32")):
    for i in T.thread_binding(4):
        A[i] = 1.0

@T.prim_func
def l9(A: T.Buffer((4,), "float32")):
    for i in T.thread_binding(4, thread="thread.x"):
        A[i] = 1.0

@T.prim_func
def l10(A: T.Buffer((4,), "float32")):
    for i in range(4, 0, -1):
        A[i] = 1.0

@T.prim_func
def l11(A: T.Buffer((4,), "float32")):
    for i in [0, 1, 2]:
        A[i] = 1.0

@T.prim_func
def l12(A: T.Buffer((4,), "float32")):
    while A:
        A[0] = 1.0

@T.prim_func
def l13(A: T.Buffer((4,), "float32")):
    if A[0]:
        A[0] = 1.0

@T.prim_func
def l14(A: T.Buffer((4,), "float32")):
    for i in range(4):
        pass
    A[i] = 1.0

@T.prim_func
def k1(A: T.Buffer((4,), "float32")):
    with T.block("a", "b", "c", "d"):
        A[0] = 1.0

@T.prim_func
def k2(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4)
            A[vi] = 1.0

@T.prim_func
def k3(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.space(4, i)
            A[vi] = 1.0

@T.prim_func
def k4(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.remap("X", [i])
            A[vi] = 1.0

@T.prim_func
def k5(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi, vj = T.axis.remap("SS", [i])
            A[vi] = 1.0

@T.prim_func
def k6(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.remap("S", [i + 1])
            A[vi] = 1.0

@T.prim_func
def k7(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4, i)
            T.reads(A)
            T.writes(A[vi])
            A[vi] = 1.0

@T.prim_func
def k8(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi], B[vi])
            A[vi] = 1.0

@T.prim_func
def k9(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4, i)
            T.where(i)
            A[vi] = 1.0

@T.prim_func
def k10(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4, i)
            T.where(i < 2)
            T.where(i < 3)
            A[vi] = 1.0

@T.prim_func
def k11(A: T.Buffer((4,), "float32")):
    with T.init():
        A[0] = 1.0

@T.prim_func
def k12(A: T.Buffer((4,), "float32")):
    vi = T.axis.spatial(4, 0)
    A[vi] = 1.0

@T.prim_func
def k13(A: T.Buffer((4,), "float32")):
    for i in range(8):
        with T.block("a"):
            vi = T.axis.spatial(4, i)
            A[vi] = 1.0

@T.prim_func
def k14(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4, i)
            with T.init():
                A[vi] = 0.0
            with T.init():
                A[vi] = 0.0
            A[vi] = 1.0

@T.prim_func
def k15(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            for j in range(1):
                vi = T.axis.spatial(4, i)
                A[vi] = 1.0

@T.prim_func
def k16(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("a"):
            vi = T.axis.spatial(4.0, i)
            A[vi] = 1.0

@T.prim_func
def k17(A: T.Buffer((4,), "float32")):
    with T.block("a"):
        T.block_attr(3)
        A[0] = 1.0

@T.prim_func
def k18(A: T.Buffer((4,), "float32")):
    with T.block(7):
        A[0] = 1.0

@T.prim_func
def e1(A: T.Buffer((4,), "float32")):
    A[0] = A[1] + "x"

@T.prim_func
def e2(A: T.Buffer((4,), "float32")):
    A[0] = T.foo(A[1])

@T.prim_func
def e3(A: T.Buffer((4,), "float32")):
    A[0] = T.exp()

@T.prim_func
def e4(A: T.Buffer((4,), "float32")):
    A[0] = T.exp(A[0], A[1])

@T.prim_func
def e5(A: T.Buffer((4,), "int32")):
    A[0] = T.int32("x")

@T.prim_func
def e6(A: T.Buffer((4,), "int8")):
    A[0] = T.int8(300)

@T.prim_func
def e7(A: T.Buffer((4,), "int32")):
    A[0] = 1 // 0

@T.prim_func
def e8(A: T.Buffer((4,), "int32")):
    A[0] = A[1] / A[2]

@T.prim_func
def e9(A: T.Buffer((4,), "float32")):
    A[0] = A[1] & A[2]

@T.prim_func
def e10(A: T.Buffer((4,), "float32")):
    A[0] = T.Cast("float32")

@T.prim_func
def e11(A: T.Buffer((4,), "float32")):
    A[0] = T.if_then_else(A[0] > 0, 1.0)

@T.prim_func
def e12(A: T.Buffer((4,), "float32")):
    A[0] = T.Select(A[0], 1.0, 2.0)

@T.prim_func
def e13(A: T.Buffer((4,), "float32")):
    A[0] = lambda x: x

@T.prim_func
def e14(A: T.Buffer((4,), "float32")):
    A[0] = [1.0]

@T.prim_func
def e15(A: T.Buffer((4,), "float32")):
    A[0] = None

@T.prim_func
def e16(A: T.Buffer((4,), "float32")):
    A[0] = A

@T.prim_func
def e17(A: T.Buffer((4,), "float32")):
    A[0] = T.max(A[0])

@T.prim_func
def e18(A: T.Buffer((4,), "float32")):
    A[0] = T.Ramp(0, 1, 4)

@T.prim_func
def e19(A: T.Buffer((4,), "float32")):
    A[0] += "x"

@T.prim_func
def e20(A: T.Buffer((4,), "float32")):
    T.evaluate()

@T.prim_func
def e21(A: T.Buffer((4,), "float32")):
    x: T.float32 = A[0], A[1]
    A[0] = x

@T.prim_func
def e22(A: T.Buffer((4,), "float32")):
    x: T.int32 = A[0]
    A[0] = T.Cast("float32", x)

@T.prim_func
def e23(A: T.Buffer((4,), "float32")):
    del A

@T.prim_func
def e24(A: T.Buffer((4,), "float32")):
    A[0] = A[0] if A[1] else 1.0

@T.prim_func
def p1(A):
    A[0] = 1.0

@T.prim_func
def p2(A: float32):
    A[0] = 1.0

@T.prim_func
def p3(A: T.Buffer((n,), "float32")):
    A[0] = 1.0

@T.prim_func
def p4(*A):
    A[0] = 1.0

@T.prim_func
def p5(A: T.Buffer((4,), "float32") = None):
    A[0] = 1.0

@T.prim_func
def p6():
    return 5, 6

@T.prim_func(privat=True)
def p7(A: T.Buffer((4,), "float32")):
    A[0] = 1.0
