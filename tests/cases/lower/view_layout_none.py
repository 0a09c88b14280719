# A view may say that it has no layout of tiles, and programs without such layouts run.
# RUN: pleat opt %s
# RUN: pleat verify %s | cut -d, -f1
from tvm.script import tirx as T


@T.prim_func
def views(A: T.Buffer((7, 9), "float32", layout=None), B: T.Buffer((63,), "float32")):
    V = A.view(63, layout=None)
    L = T.alloc_buffer((4, 5), "float32", layout=None)
    W = L.view(2, 10, layout=None)
    for i in range(63):
        B[i] = V[i]
    for i in range(20):
        L[i // 5, i % 5] = B[i]
    for i in range(20):
        B[i] = W[i // 10, i % 10] * 2.0
