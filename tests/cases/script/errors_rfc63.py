# RUN 1: pleat opt %s
# RFC 63, as it stands: "Declaration of buffer" allocates by a name that TVMScript has not,
# "Generalizing buffer accesses" writes a type of C, and "Removing pre-flattened buffer" has no body.
from tvm.script import tir as T


@T.prim_func
def buffer_alloc():
    A = T.buffer_decl([4, 4], "float32")
    Allocate(A.data, [16], "float32")


@T.prim_func
def generalizing_buffer_accesses():
    A = T.buffer_decl(shape=(16,), dtype='float')
    T.load("float4", A.data, T.ramp(4, 1, 4))


@T.prim_func
def undefined(A: T.Buffer[(16,), "float32x4"]):
    A[T.ramp(0, 1, 4)] = T.Broadcast(T.float32(0), 16)


@T.prim_func
def fn(X: T.Buffer([2, 3], "float32")):
    X_flattened = T.buffer_decl(X.data, [6], "float32")
    for i in grid(6):
        X_flattened[i] = ....
