# RUN: pleat opt %s
# A name that T.meta_var gives stands for its value: a number takes the type of the other operand.
from pleat.script import tir as T


@T.prim_func
def main(A: T.Buffer((4,), "uint8"), B: T.Buffer((4,), "uint8"), C: T.Buffer((4,), "float32")):
    code = T.meta_var(5)
    half, twice = T.meta_var((0.5, code * 2))
    for i in range(4):
        next_one = T.meta_var((i + 1) % 4)
        B[i] = T.Select(A[i] == code, A[next_one], A[i] + twice)
        C[i] = C[next_one] * half
