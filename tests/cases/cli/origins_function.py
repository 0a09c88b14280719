from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((6, 13), "float32"), W: T.Buffer((13, 12), "float32"),
      R: T.Buffer((5,), "int32"), C: T.Buffer((6, 12), "float32"), D: T.Buffer((5, 12), "float32")):
    for i in range(3):
        acc = T.decl_buffer((2, 12), "float32", scope="local")
        for m in T.unroll(2):
            for n in T.vectorized(12):
                acc[m, n] = T.float32(0)
        for k in range(13):
            for m in T.unroll(2):
                for n in T.vectorized(12):
                    acc[m, n] = acc[m, n] + A[i * 2 + m, k] * W[k, n]
        for m in T.unroll(2):
            for n in T.vectorized(12):
                C[i * 2 + m, n] = T.max(acc[m, n], T.float32(0))
    for i in range(5):
        for n in T.vectorized(4):
            D[i, n * 3] = C[T.max(T.min(R[i], 5), 0), n]
