# RUN 1: pleat opt %s
# Calls as nodes, keys of dictionaries, slices without elements.
from tvm.script import tir as T


@T.prim_func
def nodes(A: T.Buffer((3,), "float32"), p: T.handle):
    T.func_attr({"constants": {p.name: A}})
    T.Call("int32", "tir.no_such_operation", [p])
    T.Call("int32", "tir.isnullptr", p)
    T.Call("int32", 3, [p])
    T.Call("no_type", "tir.exp", [A[0]])
    T.Call("float32", "tir.exp")
    A[0:0] = A[0:1]


@T.prim_func
def names(A: T.Buffer((3, 5), "float32")):
    B = T.decl_buffer((3,), "float32")
    T.func_attr({"local": B})
    for *x, y, *z in T.grid(2, 3, 4):
        A[0, 0] = A[0, 0].astype()
    for a, b, *c in T.grid(2):
        A[0, len(B)] = T.call_intrin("float32")
    for d, *e in T.grid(2, 3):
        A[d, e[1]] = T.call_intrin("float32", "tir.missing", d)
