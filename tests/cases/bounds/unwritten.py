# Memory that is read though nothing writes it.
# RUN: pleat check %s
# RUN: pleat opt %s
from pleat.script import tir as T


@T.prim_func
def never(A: T.Buffer((7,), "int32"), B: T.Buffer((7,), "int32")):
    s = T.alloc_buffer((7,), "int32")
    t = T.alloc_buffer((7,), "int32")
    for i in range(7):
        with T.block("b"):
            vi = T.axis.spatial(7, i)
            B[vi] = s[vi] + A[vi]


# Another buffer over the memory, and a function outside, may write it.
@T.prim_func
def elsewhere(B: T.Buffer((7,), "int32")):
    s = T.alloc_buffer((7,), "int32")
    other = T.decl_buffer((7,), "int32", data=s.data)
    t = T.alloc_buffer((7,), "int32")
    T.evaluate(T.call_extern("int32", "fill", t.data))
    for i in range(7):
        other[i] = i
    for i in range(7):
        B[i] = s[i] + t[i]
