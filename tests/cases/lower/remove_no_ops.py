# Statements that change nothing are left out: empty loops, branches and blocks, values that are not
# used, stores of what is there. A call may have an effect, and so may a condition that has one.
# RUN: pleat opt %s --func f --pass remove_no_ops --verify-each | sed -n "/def f/,/^$/p"
# RUN: pleat opt %s --pass remove_no_ops | sed -n "/def g/,\$p"
# RUN: pleat opt %s --func without_elements --pass simplify_loops --verify-each | grep -c "= T.float32(9.0)"
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((7,), "float32"), n: T.int32):
    B = T.decl_buffer((7,), "float32")
    for i in range(0):
        A[i] = T.float32(1)
    for i in range(n):
        T.evaluate(i + 1)
    for i in range(7):
        if A[i] > T.float32(0):
            x: T.float32 = A[i]
            A[i] = A[i]
        else:
            T.evaluate(0)
        with T.block("nothing"):
            vi = T.axis.spatial(7, i)
            T.evaluate(vi)
    for i in range(7):
        y: T.float32 = A[i]
        A[6 - i] = y


@T.prim_func
def g(A: T.Buffer((7,), "float32")):
    for i in range(7):
        T.evaluate(A[i])


@T.prim_func
def h(A: T.Buffer((7,), "float32"), n: T.int32):
    T.evaluate(T.call_extern("int32", "kept", n))
    while A[0] > T.float32(0):
        T.evaluate(0)


# An else without statements is left out, a condition with nothing but an else is turned around, and one
# that is known chooses its branch.
@T.prim_func
def branches(A: T.Buffer((7,), "float32"), n: T.int32):
    if n < 3:
        A[0] = T.float32(1)
    else:
        T.evaluate(0)
    if n < 4:
        A[0] = A[0]
    else:
        A[1] = T.float32(2)
    if T.bool(False):
        A[2] = T.float32(3)
    else:
        A[3] = T.float32(4)


# The indices are equal by the value of a name, and where a condition holds.
@T.prim_func
def k(A: T.Buffer((16,), "int32")):
    for io, ii in T.grid(4, 4):
        i: T.int32 = 4 * io + ii
        A[4 * io + ii] = A[i]
        if io == 0:
            A[ii] = A[i]
        else:
            A[ii] = A[i]


# Loops whose extents are proved not to be positive.
@T.prim_func
def never(A: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(16):
        for j in range(i - 15):
            A[i] = A[i] + j
        for j in range(i - 14):
            A[i] = A[i] * 2 + j
    if n < 5:
        for i in range(n - 4):
            A[i] = 7


# The init of a reduction without elements stays.
@T.prim_func
def without_elements(A: T.Buffer((3, 7), "float32"), C: T.Buffer((3,), "float32")):
    for k, i in T.grid(0, 3):
        with T.block("product"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(9)
            C[vi] = C[vi] * A[vi, vk]
