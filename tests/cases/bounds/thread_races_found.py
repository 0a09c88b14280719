# thread_races.py reads this file.
# RUN 1: pleat check %s > /dev/null
from pleat.script import tir as T


@T.prim_func
def f(A: T.Buffer((13,), "float32"), C: T.Buffer((13,), "float32")):
    for t in T.thread_binding(13, thread="threadIdx.x"):
        C[t] = A[t]
    for t in T.thread_binding(13, thread="threadIdx.x"):
        C[12 - t] = C[t]
