# RUN: pleat opt %s
# Vectors whose length is a multiple of the machine's vector scale, operators that are written as calls.
from tvm.script import tirx as T


@T.prim_func
def scalable(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32"), n: T.int32):
    A[0:T.vscale() * 4] = B[T.Ramp(0, 1, T.vscale() * 4)] + T.Broadcast(T.float32(2), 4 * T.vscale())
    A[n:n + T.vscale() * 4] = T.Cast("float32xvscalex4", B[T.Ramp(n, 2, T.vscale() * 4)] > T.float32(1))
    A[T.Cast("int64", n):T.Cast("int64", n) + T.Cast("int64", T.vscale() * 4)] = B[0:T.vscale() * 4]
    v: T.let[T.float32xvscalex4] = A[0:T.vscale() * 4]
    T.call_llvm_intrin("void", "llvm.store", T.get_active_lane_mask("boolxvscalex4", 0, n), v)


@T.prim_func
def nodes(A: T.Buffer((16,), "float32"), n: T.int32, W: T.Buffer((2, 8), "uint8")):
    A[T.Add(T.Mul(0, 4), n)] = T.Cast("float32", T.Div(n, 4) + T.FloorDiv(n, 1)) + T.Sub(A[T.Add(n, 0)], T.float32(0))
    words = W.view("uint32")
    words[0, 1] = words[1, 0] * T.uint32(2) - T.uint32(3)
    bits = words.view("uint16")
    bits[1, 3] = T.uint16(1)
