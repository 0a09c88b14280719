# RUN 1: pleat verify %s
# Buffers that broadcast are read and printed; nothing runs them.
from pleat.script import tir as T


@T.prim_func
def add(A: T.Buffer((16,), "float32", buffer_type="auto"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i] + T.float32(1)
