# RUN: pleat opt %s
# Blocks as in the block syntax proposal, in a file with other Python around them.
import numpy as np
from tvm.script import tir as T

N = 64
HALF = N // 2


def helper(values):
    return [v for v in values if v]


@T.prim_func
def scale(A: T.Buffer((30, N), "float32"), B: T.Buffer((30, 64), "float32")):
    for i, j in T.grid(30, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func(private=True)
def matmul(A: T.Buffer[(16, 17), "float32"], B: T.Buffer[(19, 17), "float32"],
           C: T.Buffer[(16, 19), "float32"]) -> None:
    """Every axis a different length."""
    T.func_attr({"global_symbol": "main", "noalias": True, "sizes": [1, 2, (3, "x")], "eps": 1e-5})
    packed = T.alloc_buffer([19, 5, 4], dtype="float32", scope="local")
    for j, k in T.grid(19, 17):
        with T.block("layout_rewrite"):
            vj, vk = T.axis.remap("SS", [j, k])
            T.reads(B[vj, vk])
            T.writes(packed[vj, vk // 4, vk % 4])
            T.block_attr({"layout_rewrite_preproc": True})
            packed[vj, vk // 4, vk % 4] = B[vj, vk]
    for i0, j, k0, i1, k1 in T.grid(4, 19, 5, 4, 4):
        with T.block("matmul"):
            vi = T.axis.spatial(16, i0 * 4 + i1)
            vj = T.axis.S((0, 19), j)
            vk = T.axis.reduce(17, k0 * 4 + k1)
            T.where(k0 * 4 + k1 < 17)
            T.reads(A[vi, vk], packed[vj, vk // 4, vk % 4])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] += A[vi, vk] * packed[vj, vk // 4, vk % 4]


@T.prim_func
def nested(A: T.Buffer((8, 12), "int32"), B: T.Buffer((8, 12), "int32")):
    for io, jo in T.grid(2, 3):
        with T.block("outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            T.reads(A[vio * 4:vio * 4 + 4, vjo * 4:vjo * 4 + 4])
            T.writes(B[vio * 4:vio * 4 + 4, vjo * 4:vjo * 4 + 4])
            s0 = T.int32()
            s1 = T.int32()
            tile = T.match_buffer(A[vio * 4:vio * 4 + 4, vjo * 4:vjo * 4 + 4], (4, 4), "int32",
                                  strides=(s0, s1), offset_factor=4)
            for ii in T.serial(2, HALF // 8):
                with T.block("inner"):
                    vii = T.axis.spatial((2, 4), ii)
                    vo = T.axis.opaque(12, vjo * 4)
                    T.reads(tile[vii, 0:4])
                    T.writes(B[0:8, vo])
                    B[vio * 4 + vii, vo] = tile[vii, 0] + tile[vii, 3]


@T.prim_func
def scalar(A: T.Buffer((), "float32"), B: T.Buffer((1, 1), "float32")):
    with T.block("once"):
        T.reads(A[()])
        T.writes(B[0, 0])
        B[0, 0] = A[()]


@T.prim_func
def explicit_root(A: T.Buffer((7,), "float32")):
    with T.block("root"):
        T.block_attr({"unroll": 16})
        for i in range(7):
            with T.block("A"):
                vi = T.axis.S(7, i)
                T.reads()
                T.writes(A[vi])
                A[vi] = T.float32("inf")


# The view has the name of its buffer.
@T.prim_func
def same_name(A: T.Buffer((8, 8), "int32")):
    with T.block("b"):
        A = T.match_buffer(A[0:4, 0:4], (4, 4), "int32", offset_factor=1, strides=[8, 1])
        A[0, 0] = 1


# The binding or the domain that has the narrower type is cast.
@T.prim_func
def two_types(A: T.Buffer((8,), "float32"), n: T.int64):
    for i, j in T.grid(4, T.int64(2)):
        with T.block("A"):
            vi = T.axis.S(T.int64(4), i)
            vj = T.axis.S((T.int32(0), T.int32(2)), j)
            T.reads()
            T.writes(A[vi + vj * 4])
            A[vi + vj * 4] = 1.0
