# RUN 1: pleat opt %s
from tvm.script import tir as T


@T.prim_func
def kernel(A: T.Buffer(("n +", 4), "float32"), B: T.Buffer(("n * x", 4), "float32")):
    C = B.view()
    D = B.view(T.float32(3))
    n, m = T.int32(), T.int32(), T.int32()
    T.launch_thread(128, 4)
    T.launch_thread("threadIdx.x", 4)
    tx = T.env_thread(3)
    T.launch_thread(missing, 4)
    T.attr({})
    E = T.alloc_local((4,), "float33")
    T.alloc_shared((4,), "float32")
    F = T.handle("float32", 3)


@T.prim_func
def loops(A: T.Buffer((6,), "float32")):
    for 0 in T.grid(6):
        A[i] = T.float32(1)
    for A[0] in T.grid(2, 3):
        A[0] = T.float32(1)
