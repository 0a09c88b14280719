# SPDX-License-Identifier: Apache-2.0
"""An example of a kernel without a schedule: a matrix product with a bias and a ReLU.

    pleat run examples/kernels/matmul.py --fill random --repeat 20
    pleat verify examples/kernels/matmul.py
    pleat bench examples/kernels/matmul.py --threads 1
    pleat compile examples/kernels/matmul.py -o matmul.c
"""
from pleat.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((384, 256), "float32"), B: T.Buffer((256, 512), "float32"),
           bias: T.Buffer((512,), "float32"), C: T.Buffer((384, 512), "float32")):
    product = T.alloc_buffer((384, 512), "float32")
    for i, j, k in T.grid(384, 512, 256):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                product[vi, vj] = T.float32(0)
            product[vi, vj] = product[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(384, 512):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(product[vi, vj] + bias[vj], T.float32(0))
