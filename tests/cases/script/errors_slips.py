# Slips of people who write TVMScript: what was forgotten, misspelt, or used outside of its scope.
# RUN 1: pleat opt %s
from pleat.script import ir as I, relax as R, tir as T


@T.prim_func
def axis_kind(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spacial(16, i)
            A[vi] = 1.0


@T.prim_func
def remap_letter(A: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("SX", [i, j])
            A[vi, vj] = 1.0


@T.prim_func
def remap_count(A: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("S", [i, j])
            A[vi, vj] = 1.0


@T.prim_func
def after_loop(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spatial(16, i)
            A[vi] = 1.0
        A[vi] = 2.0
    A[i] = 2.0


@T.prim_func
def no_shape(a: T.handle):
    A = T.match_buffer(a, "float32")
    A[0] = 1.0


@T.prim_func
def tensor(A: R.Tensor((16,), "float32"), B: T.Buffer, n: T.int33):
    A[0] = 1.0


@T.prim_func
def buffer_as_data(A: T.Buffer((16,), "float32")):
    B = T.decl_buffer((16,), "float32", data=A)
    B[0] = A(0)


@T.prim_func
def bare_loop(A: T.Buffer((16,), "float32")):
    for i in serial(16):
        A[i] = 1.0


@T.prim_func
def inner_function(A: T.Buffer((16,), "float32")):
    def twice(x):
        return x * 2


@T.prim_func
def other_python(A: T.Buffer((16,), "float32")):
    if 3 in A:
        A[0] = 1.0
    for i in range(16):
        A[i] = 1.0
    else:
        A[0] = 2.0


@I.ir_module
class Module:
    def forgotten(A: T.Buffer((16,), "float32")):
        A[0] = 1.0
