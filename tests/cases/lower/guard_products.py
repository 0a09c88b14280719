# A sum or an extreme that padding leaves as it is becomes an if around the store. A condition that
# differs between lanes, or that reads memory, stays where it is.
# RUN: pleat opt %s --pass guard_products --verify-each
from tvm.script import tir as T


@T.prim_func
def f(X: T.Buffer((13,), "float32"), W: T.Buffer((3,), "float32"), K: T.Buffer((1,), "int32"),
      B: T.Buffer((13,), "float32"), M: T.Buffer((13,), "float32"),
      V: T.Buffer((4,), "float32")):
    for i in range(13):
        for k in range(3):
            B[i] = B[i] + T.if_then_else(i + k >= 1 and i + k < 14, X[i + k - 1],
                                         T.float32(0)) * W[k]
            M[i] = T.max(M[i], T.if_then_else(i + k < 13, X[i + k], T.float32("-inf")))
            B[i] = B[i] + T.if_then_else(K[0] < 5, X[i], T.float32(0))
            B[i] = B[i] + T.if_then_else(i < 7, X[i], T.float32(1))
    V[0:4] = V[0:4] + T.Select(T.Ramp(0, 1, 4) < T.Broadcast(3, 4), X[2:6],
                               T.Broadcast(T.float32(0), 4))
