# SPDX-License-Identifier: Apache-2.0
"""Tensor programs with captured names, for TVM and for Pleat: test_tir_tvm.py puts an import of T, from
one package or the other, before this text."""
import math

N, dtype = 6, "float32"
SHAPE = (5, 6)


def scale(x):
    return x * T.float32(2)  # noqa: F821


def relu(x):
    return T.max(x, T.float32(0))  # noqa: F821


@T.macro  # noqa: F821
def store(B, i, j, v):
    B[i, j] = relu(v)


@T.macro(hygienic=False)  # noqa: F821
def bump(k):
    A[k, 0] = A[k, 0] + T.float32(1)  # noqa: F821


def captured(M=5, kinds="SS"):
    @T.prim_func(s_tir=True)  # noqa: F821
    def f(A: T.Buffer((M, N), dtype), B: T.Buffer(SHAPE, dtype)):  # noqa: F821
        for i, j in T.grid(*SHAPE):  # noqa: F821
            with T.sblock("B"):  # noqa: F821
                vi, vj = T.axis.remap(kinds, [i, j])  # noqa: F821
                store(B, vi, vj, scale(A[vi, vj]) - T.float32(N))  # noqa: F821
    return f


def chosen(wide=False):
    @T.prim_func(s_tir=True)  # noqa: F821
    def f(A: T.Buffer((8, 2), "float32")):  # noqa: F821
        for i in range(8):
            if wide:
                A[i, 0] = T.float32(1)  # noqa: F821
            else:
                A[i, 1] = T.float32(2)  # noqa: F821
            bump(i)
    return f


def shapes():
    @T.prim_func(s_tir=True)  # noqa: F821
    def f(a: T.handle, b: T.handle):  # noqa: F821
        n = T.int64()  # noqa: F821
        A = T.match_buffer(a, (n, 4), "float32")  # noqa: F821
        B = T.match_buffer(b, A.shape, A.dtype)  # noqa: F821
        for i, j in T.grid(*A.shape):  # noqa: F821
            with T.sblock("B"):  # noqa: F821
                vi, vj = T.axis.remap("SS", [i, j])  # noqa: F821
                B[vi, vj] = A[vi, vj] + T.float32(math.sqrt(6.25))  # noqa: F821
    return f


def loops():
    @T.prim_func(s_tir=True)  # noqa: F821
    def f(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):  # noqa: F821
        for at in T.grid(16, 16):  # noqa: F821
            with T.sblock("B"):  # noqa: F821
                vi, vj = T.axis.remap("SS", at)  # noqa: F821
                if 2 <= vi < 12:
                    B[vi, vj] = A[vi, vj]
        for i in T.serial(N):  # noqa: F821
            x = T.meta_var(i + N)  # noqa: F821
            B[x, 0] = A[x, 1]
    return f


def reduction(k=7):
    @T.prim_func(s_tir=True)  # noqa: F821
    def f(A: T.Buffer((5, k), "float32"), B: T.Buffer((k, 11), "float32"),  # noqa: F821
          C: T.Buffer((5, 11), "float32")):  # noqa: F821
        for i, j, r in T.grid(5, 11, k):  # noqa: F821
            with T.sblock("C"):  # noqa: F821
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])  # noqa: F821
                with T.init():  # noqa: F821
                    C[vi, vj] = T.float32(0)  # noqa: F821
                C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
    return f


CASES = {f.__name__: f for f in (captured, chosen, shapes, loops, reduction)}
