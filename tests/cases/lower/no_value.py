# A variable or memory that nothing gives is refused before code is made of it.
# RUN 1: pleat compile %s --func element --target c --no-cache -o -
# RUN 1: pleat compile %s --func launched --target opencl --no-cache -o -
# RUN 1: pleat compile %s --func half --target cuda --no-cache -o -
from tvm.script import tir as T


@T.prim_func
def element(h: T.handle("float32", "global"), C: T.Buffer((1,), "float32")):
    A = T.decl_buffer((42,), "float32", data=h)
    C[0] = A[1]


@T.prim_func
def launched(A: T.Buffer((13,), "int32")):
    v = T.var("int32")
    with T.attr(T.iter_var(v, T.Range(0, 4), "DataPar", ""), "pragma_hint", 4):
        A[v * 3 + 1] = v


@T.prim_func
def half(a: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n * 2,), "int32")
    A[3] = 1
