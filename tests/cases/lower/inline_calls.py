# The bodies of functions of the module stand in the place of their calls: values that are returned,
# calls that write what the expression reads before and after them, conditions, loops that end at a
# condition, pointers to elements, rows of views, sizes that the arguments give, nested calls.
# RUN: pleat opt %s --pass inline_calls
# RUN: pleat verify %s --dim k=7 --dim p=5 2>&1 | sed 's/agrees.*/agrees/'
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class M:
    @T.prim_func(private=True)
    def first(A: T.Buffer((6, 7), "float32"), k: T.int32) -> T.int32:
        for j in range(7):
            if A[k, j] > T.float32(0):
                return j
        return 7

    @T.prim_func
    def firsts(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6,), "int32")):
        for k in T.parallel(6):
            C[k] = M.first(A.data, k) + 1

    @T.prim_func(private=True)
    def swap(h: T.handle, i: T.int32, j: T.int32):
        A = T.match_buffer(h, (42,), "float32")
        t: T.float32 = A[i]
        A[i] = A[j]
        A[j] = t

    @T.prim_func(private=True)
    def mirror(h: T.handle("float32", "global"), n: T.int32):
        for i in range(n // 2):
            M.swap(h, i, n - 1 - i)

    @T.prim_func
    def reversed(A: T.Buffer((6, 7), "float32")):
        M.mirror(A.data, 42)

    @T.prim_func(private=True)
    def grow(A: T.Buffer((11,), "float64"), x: T.float64) -> T.float64:
        if A[0] < x:
            A[0] = A[0] + x
            return A[0]
        return x

    @T.prim_func
    def lets(A: T.Buffer((11,), "float64"), B: T.Buffer((3,), "int64")):
        A[1] = T.Let(y * y + A[0], where={y: M.grow(A.data, A[2])})
        A[T.min(10, T.max(0, T.Cast("int32", M.grow(A.data, A[3]))))] = A[4] + M.grow(A.data, T.float64(2))
        if not (A[0] < T.float64(1) or M.grow(A.data, A[5]) > A[6]):
            A[7] = T.Select(A[8] > T.float64(0), M.grow(A.data, A[9]), A[10])
        for i in range(1):
            with T.block("bound"):
                v = T.axis.spatial(3, i)
                T.where(M.sq(i) < 5)
                B[v + 2] = T.Cast("int64", M.sq(v))

    @T.prim_func(private=True)
    def sq(x: T.int32) -> T.int32:
        return x * x + 1

    @T.prim_func(private=True)
    def push(A: T.Buffer((5,), "int32"), v: T.int32) -> T.int32:
        A[0] = A[0] + v
        if A[0] > 9:
            return A[0]
        A[1] = A[1] + 1
        return A[1] - 3

    @T.prim_func(private=True)
    def twice(A: T.Buffer((5,), "int32")) -> T.int32:
        return M.push(A.data, 2) * 100 + M.push(A.data, 3) + A[0]

    @T.prim_func(private=True)
    def flat(a: T.handle, n: T.int32):
        A = T.match_buffer(a, (n,), "int32")
        for i in range(n):
            A[i] = A[i] * 3 + M.sq(i)

    @T.prim_func(private=True)
    def void(A: T.Buffer((5,), "int32")):
        for i in range(5):
            A[i] = A[i] + 1

    @T.prim_func
    def order(A: T.Buffer((5,), "int32"), B: T.Buffer((7, 3), "int32"), C: T.Buffer((11,), "int32")):
        C[0] = A[0] + M.push(A.data, 4) + A[0]
        C[1] = T.if_then_else(A[1] > 0, M.push(A.data, 1), A[1] + 7)
        C[2] = M.twice(A.data)
        if A[2] > 0 and M.push(A.data, 1) > 2 or M.push(A.data, -1) < 4:
            C[3] = 5
        while A[3] < 3 and M.push(A.data, 1) < 200:
            A[3] = A[3] + 1
            if A[3] == 2:
                continue
            C[4] = C[4] + M.sq(A[3])
        M.flat(B.data, 21)
        M.flat(T.address_of(B[2, 1]), 13)
        M.void(A.data)
        x: T.int32 = M.sq(3) + M.push(A.data, 2)
        C[5] = x
        for i in range(M.sq(1), M.sq(2)):
            C[6] = C[6] + i
        assert M.sq(2) == 5, "five"
        C[M.sq(2) + 2] = M.twice(A.data) + x
        for i in T.vectorized(3):
            C[i + 8] = M.sq(i)

    @T.prim_func
    def par(A: T.Buffer((5, 4, 5), "int32")):
        for i in T.parallel(5):
            for j in range(4):
                M.void(T.address_of(A[i, j, 0]))

    @T.prim_func(private=True)
    def mat(a: T.handle, b: T.handle, s: T.handle):
        n = T.int32()
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (m, n), "float32")
        S = T.match_buffer(s, (n,), "float32")
        t = T.alloc_buffer((n,), "float32")
        for i in range(n):
            with T.block("i"):
                vi = T.axis.spatial(n, i)
                t[vi] = T.float32(0)
        for i, j in T.grid(n, m):
            with T.block("s"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.reduce(m, j)
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vj] * B[vj, vi] + t[vi]

    @T.prim_func
    def dyn(a: T.handle, b: T.handle, s: T.handle):
        k = T.int32()
        p = T.int64()
        A = T.match_buffer(a, (k, p), "float32")
        B = T.match_buffer(b, (p, k), "float32")
        S = T.match_buffer(s, (2, k), "float32")
        u = T.alloc_buffer((k,), "float32")
        M.mat(A.data, B.data, u.data)
        for i in range(k):
            with T.block("u"):
                vi = T.axis.spatial(k, i)
                S[0, vi] = u[vi]
        with T.block("v"):
            T.reads()
            T.writes(S[1, 0:k])
            V = T.match_buffer(S[1, 0:k], (k,), "float32")
            M.mat(A.data, B.data, T.address_of(V[0]))
            W = T.match_buffer(S[1, 1:k], (k - 1,), "float32")
            for i in range(k - 1):
                M.bump(T.address_of(W[i]))

    @T.prim_func
    def tiles(A: T.Buffer((8, 9), "int32")):
        for i, j in T.grid(8, 3):
            with T.block("v"):
                vi, vj = T.axis.remap("SS", [i, j])
                V = T.match_buffer(A[vi, vj * 3:vj * 3 + 3], (3,), "int32")
                M.three(T.address_of(V[0]))
    @T.prim_func(private=True)
    def three(A: T.Buffer((3,), "int32")):
        for i in range(3):
            A[i] = A[i] + i

    @T.prim_func(private=True)
    def bump(A: T.Buffer((1,), "float32")):
        A[0] = A[0] + 1.0
