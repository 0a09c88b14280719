# Values of lets are computed before the unrolled loops in which they do not change, and only there.
# RUN: pleat opt %s --pass hoist_values --verify-each
# RUN: pleat opt %s --pass hoist_values,partition_loops,unroll_loops --verify-each
from tvm.script import tir as T

p = T.Var("p", "float32")
q = T.Var("q", "float32")


# p leaves both loops, q only the inner one.
@T.prim_func
def nested(X: T.Buffer((7,), "float32"), W: T.Buffer((2, 3), "float32"),
           Y: T.Buffer((5, 2, 3), "float32")):
    for n in range(5):
        for i in T.unroll(2):
            for k in T.unroll(3):
                Y[n, i, k] = T.max(T.Let(T.Let(q * W[i, k], where={q: p * X[i]}),
                                         where={p: X[n] + X[n + 2]}), T.float32(0))


# The loop writes what p reads.
@T.prim_func
def stored(Y: T.Buffer((5,), "float32")):
    for i in T.unroll(4):
        Y[i + 1] = T.Let(p * p, where={p: Y[0] + Y[i]})
    for i in T.unroll(3):
        Y[i] = T.Let(p * p, where={p: Y[2]})


# p is computed only under a condition, and q always.
@T.prim_func
def conditions(X: T.Buffer((3,), "float32"), Y: T.Buffer((5, 3), "float32")):
    for n in range(5):
        for i in T.unroll(3):
            Y[n, i] = T.Let(
                T.if_then_else(n < 3, T.Let(p + q, where={p: X[n]}), q), where={q: X[2] * X[1]})


# p leaves the loops and their conditions; what q reads is in bounds only where they hold.
@T.prim_func
def branches(X: T.Buffer((7,), "float32"), W: T.Buffer((3,), "float32"),
             Y: T.Buffer((5, 3), "float32")):
    for n in range(5):
        for i in T.unroll(3):
            if n * 2 + i < 7:
                for k in T.unroll(2):
                    if k < 1 or n < 2:
                        Y[n, i] = T.Let(T.Let(p * q, where={q: X[n * 2] * W[i]}),
                                        where={p: X[n + 2]})


# Serial loops, loops of no iteration and loops of several statements keep their lets.
@T.prim_func
def others(X: T.Buffer((3,), "float32"), Y: T.Buffer((5,), "float32"),
           Z: T.Buffer((5,), "float32")):
    for i in range(5):
        Y[i] = T.Let(p * p, where={p: X[1]})
    for i in T.unroll(0):
        Y[i] = T.Let(p * p, where={p: X[2]})
    for i in T.unroll(5):
        Z[i] = T.Let(p * p, where={p: X[1]})
        Y[i] = Z[i]


# The vectors of lanes hold p.
@T.prim_func
def lanes(X: T.Buffer((8,), "float32"), Y: T.Buffer((3, 8), "float32")):
    for l in T.vectorized(8):
        for i in T.unroll(3):
            Y[i, l] = T.Let(p * p, where={p: X[l] + T.float32(1)})
