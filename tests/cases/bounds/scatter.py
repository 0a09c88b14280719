# The answer about each loop, as JSON.
# RUN: pleat check --json %s
from pleat.script import tir as T


@T.prim_func
def scatter(
    A: T.Buffer((16,), "float32"),
    idx: T.Buffer((16,), "int32"),
    C: T.Buffer((16,), "float32"),
):
    for j in T.parallel(16):
        C[idx[j]] = A[j]
    for j in T.parallel(16):
        C[j] = A[idx[j]]
