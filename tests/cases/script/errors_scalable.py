# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def kernel(A: T.Buffer((256,), "float32"), n: T.int32, W: T.Buffer((3, 6), "uint8")):
    A[0:T.vscale() * n] = T.Broadcast(T.float32(2), T.vscale() * n)
    A[0:T.vscale() * 4] = T.Broadcast(T.float32(2), T.vscale() * 8)
    X = W.view("uint32")
    Y = W.view("float33")
