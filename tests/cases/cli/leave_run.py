# RUN: pleat verify %s --func search
# RUN: pleat verify %s --func skips
# RUN: pleat verify %s --func leaves
# RUN: pleat verify %s --func whiles
# RUN: pleat verify %s --func par
# RUN: pleat verify %s --func blocks
# RUN: pleat verify %s --func single
# RUN: pleat opt %s --func skips --pass convert_blocks
# RUN: pleat opt %s --func single --pass simplify_loops,convert_blocks --verify-each | sed -n "/def single/,/^$/p"
# RUN 1: pleat opt %s --func blocks --schedule leave_run.steps
# RUN 1: pleat opt %s --func skips --pass unroll_loops
# Loops and functions that are left early: passes make conditions of them, and steps refuse them.
from pleat.script import tir as T

@T.prim_func
def search(A: T.Buffer((17,), "float32"), B: T.Buffer((1,), "int32")):
    B[0] = -1
    for i in range(17):
        if A[i] < T.float32(0):
            B[0] = i
            break

@T.prim_func
def skips(A: T.Buffer((17, 5), "float32"), B: T.Buffer((17,), "float32"), C: T.Buffer((17,), "int32")):
    for i in range(17):
        B[i] = T.float32(0)
        C[i] = 0
        for j in range(5):
            if A[i, j] < T.float32(-0.5):
                continue
            if A[i, j] > T.float32(0.75):
                C[i] = j
                break
            B[i] = B[i] + A[i, j]
        if C[i] == 2:
            continue
        C[i] = C[i] + 100

@T.prim_func
def leaves(A: T.Buffer((7, 11), "float32"), B: T.Buffer((3,), "int32")) -> T.int32:
    B[0] = 0
    B[1] = 0
    B[2] = 0
    for i in range(7):
        for j in T.unroll(11):
            B[0] = B[0] + 1
            if A[i, j] > T.float32(0.9):
                B[1] = i * 11 + j
                return 0
        B[2] = i
    B[2] = 77
    return 1

@T.prim_func
def whiles(A: T.Buffer((17,), "int32"), B: T.Buffer((2,), "int32")):
    B[0] = 0
    B[1] = 0
    while B[0] < 17:
        B[0] = B[0] + 1
        if A[B[0] - 1] % 2 == 0:
            continue
        if A[B[0] - 1] > 50:
            break
        B[1] = B[1] + A[B[0] - 1]

@T.prim_func
def par(A: T.Buffer((64, 33), "float32"), B: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        B[i] = -1
        for j in range(33):
            if A[i, j] > T.float32(0.5):
                B[i] = j
                break
        if B[i] >= 0:
            B[i] = B[i] * 2

@T.prim_func
def blocks(A: T.Buffer((16, 33), "float32"), B: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 33):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            if A[vi, vk] < T.float32(0):
                continue
            B[vi] = B[vi] + A[vi, vk]

@T.prim_func
def single(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        for j in range(1):
            if A[i] < T.float32(0):
                break
            B[i] = A[i]
        B[i] = B[i] + T.float32(1)

@T.prim_func
def sized(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (1,), "int32")
    B[0] = n
    for i in range(n):
        if A[i] > T.float32(0.5):
            B[0] = i
            break
