# Kernels of a user: run, bench, verify and compile take them. None of these lines depends on the
# machine.
# RUN: pleat run %s --func dense --fill random --seed 3 | grep -o "dense: A.*"
# RUN: pleat run %s --func dense --fill random | grep -o "steps by the auto-scheduler"
# RUN: pleat run %s --func own --fill zero | grep -o "as written.*"
# RUN: pleat run %s --func own --fill zero | grep "^B"
# RUN: pleat run %s --func shifted --input-shape n=6 --input by=2.5 --fill zero | grep "^B"
# RUN: pleat run %s --func shifted --input-shape n=5 --input by=-1 --fill zero -o - | wc -c
# RUN: pleat run %s --func twice --fill zero --threads 1 --repeat 2 | grep "^A"
# RUN: pleat run %s --func dense --fill random --json --repeat 2 | python3 fields.py
# RUN: pleat bench %s --func dense --repeat 2 --json --threads 1 | grep -e operations -e '"bytes"'
# RUN: pleat verify %s --input-shape n=7 | sed 's/at most.*apart/apart/'
# RUN: pleat verify %s --input-shape n=7 --func shifted --json --max-ulp 0
# RUN: pleat compile %s --func dense -o %t/dense.c > /dev/null && grep -o "inputs.*\|outputs.*row-major" %t/dense.h
# RUN: pleat compile %s --func dense -o %t/dense.py && pleat opt %t/dense.py > %t/again.py && cmp %t/dense.py %t/again.py
# RUN: pleat compile %s --func dense -o %t/low.py --lowered > /dev/null && grep -c "T.block" %t/low.py || true
# RUN: pleat compile %s -o %t/all.ll --print-ir-after flatten_buffers 2> %t/ir > /dev/null; grep -q flatten_buffers %t/ir && grep -c "^define.*@own(" %t/all.ll
# RUN 1: pleat run %s --fill random
# RUN 1: pleat run %s --func dens --fill random
# RUN 1: pleat run %s --func dense
# RUN 1: pleat run %s --func dense --fill zero --input a=x.npy
# RUN 1: pleat run %s --func shifted --fill zero
# RUN 1: pleat run %s --func shifted --input-shape m=3 --fill zero
# RUN 1: pleat run %s --func shifted --input-shape n=x --fill zero
# RUN 1: pleat run %s --func shifted --input-shape n=4 --input by=much --fill zero
# RUN 1: pleat run %s --func dense --fill zero --input A=../../../examples/digits/images.npy
# RUN 1: cd %r && pleat run examples/digits/digits.onnx --func main --fill zero
from pleat.script import tir as T


@T.prim_func
def dense(A: T.Buffer((13, 7), "float32"), W: T.Buffer((7, 37), "float32"),
          C: T.Buffer((13, 37), "float32")):
    for i, j, k in T.grid(13, 37, 7):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]


@T.prim_func
def own(A: T.Buffer((3, 4), "float32"), B: T.Buffer((3, 4), "float32")):
    for i in T.parallel(3):
        for j in T.vectorized(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1.5)


@T.prim_func
def shifted(a: T.handle, b: T.handle, by: T.float32):
    n = T.int64()
    A = T.match_buffer(a, (n, 2), "float32")
    B = T.match_buffer(b, (n, 2), "float32")
    for i, j in T.grid(n, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + by


@T.prim_func
def twice(A: T.Buffer((5,), "float32")):
    for i in T.serial(5):
        with T.block("A"):
            vi = T.axis.spatial(5, i)
            A[vi] = A[vi] + T.float32(1)
