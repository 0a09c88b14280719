# RUN: pleat opt %s
# Annotations of allocations, handles that attributes name, variables of T.iter_var, buffers that
# broadcast, and types that older programs state.
from tvm.script import tir as T


@T.prim_func
def handles(a: T.handle, b: T.handle, c: T.handle):
    T.func_attr({"inputs": [a], "none": None})
    A = T.match_buffer(a, (16,), "float32")
    B = T.match_buffer(b, (16,), "float32")
    n, m = T.int32(), T.int32()
    C = T.match_buffer(c, (n, 4), "float32", strides=(m, 1), buffer_type="auto")
    T.evaluate(T.isnullptr(b, dtype="bool"))
    w = T.allocate([16], "float32", "local", annotations={"keep": True, "bytes": 64})
    W = T.decl_buffer((16,), "float32", data=w, scope="local")
    v = T.var("int32")
    with T.attr(T.iter_var(v, None, "DataPar", ""), "pragma_hint", 3):
        W[v] = T.if_then_else(v < 3, A[v], B[v], dtype="float32")
    T.attr(T.iter_var(v, T.Range(0, 4), "ThreadIndex", "threadIdx.x"), "thread_extent", 4)
    W[v] = T.Select(v < 3, T.float32(1), C[0, v])
