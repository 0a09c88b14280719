# Attributes that name buffers and variables are printed below the definitions of these.
# RUN: pleat opt %s && pleat opt %s -o %t/f.py && pleat opt %t/f.py -o %t/g.py && cmp %t/f.py %t/g.py
from tvm.script import tir as T


@T.prim_func
def matched(a: T.handle, B: T.Buffer((8,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    T.func_attr({"of": [A, B], "size": n})
    for i in range(n):
        A[i] = B[T.min(i, 7)]


@T.prim_func
def inner(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("copy"):
            v = T.axis.remap("S", [i])
            T.reads(A[v])
            T.writes(C[v])
            T.block_attr({"known": A})
            C[v] = A[v]
    for i in range(8):
        with T.block("add"):
            v = T.axis.remap("S", [i])
            T.reads(A[v])
            T.writes(C[v])
            D = T.match_buffer(A[v], ())
            E = T.alloc_buffer((2,))
            T.block_attr({"inner": [D, E]})
            E[1] = D[()]
            C[v] = E[1]
