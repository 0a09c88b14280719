# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in the fragments of CUDA's Tensor Cores (nvcuda::wmma): a tile of the accumulator gets the
product of two tiles added. No target of Pleat runs the call; the programs can be read, scheduled and printed."""
from pleat.script import tir as T
from pleat.tir.schedule import TensorIntrin

_EDGE = 16  # rows, columns and depth of a tile


def _loops(dtype, sums, is_transposed):
    def at(k, j):
        return (j, k) if is_transposed else (k, j)

    @T.prim_func
    def description(A: T.Buffer((_EDGE, _EDGE), dtype, align=64, offset_factor=_EDGE, scope="wmma.matrix_a"),
                    B: T.Buffer((_EDGE, _EDGE), dtype, align=64, offset_factor=_EDGE, scope="wmma.matrix_b"),
                    C: T.Buffer((_EDGE, _EDGE), sums, align=64, offset_factor=_EDGE, scope="wmma.accumulator")):
        with T.block("root"):
            T.reads(C[0:_EDGE, 0:_EDGE], A[0:_EDGE, 0:_EDGE], B[0:_EDGE, 0:_EDGE])
            T.writes(C[0:_EDGE, 0:_EDGE])
            for i, j, k in T.grid(_EDGE, _EDGE, _EDGE):
                with T.block("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + T.Cast(sums, A[vi, vk]) * T.Cast(sums, B[at(vk, vj)[0], at(vk, vj)[1]])
    return description


def _fragment(offset, stride):
    """The number of a tile that begins at `offset`, where rows of elements are `stride` elements apart."""
    return offset // (stride * _EDGE) * (stride // _EDGE) + offset % stride // _EDGE


def _call(dtype, sums):
    @T.prim_func
    def implementation(a: T.handle, b: T.handle, c: T.handle):
        a_at, b_at, c_at = T.int32(), T.int32(), T.int32()
        a_row, b_row, c_row = T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (_EDGE, _EDGE), dtype, strides=[a_row, 1], elem_offset=a_at, align=64,
                           offset_factor=_EDGE, scope="wmma.matrix_a")
        B = T.match_buffer(b, (_EDGE, _EDGE), dtype, strides=[b_row, 1], elem_offset=b_at, align=64,
                           offset_factor=_EDGE, scope="wmma.matrix_b")
        C = T.match_buffer(c, (_EDGE, _EDGE), sums, strides=[c_row, 1], elem_offset=c_at, align=64,
                           offset_factor=_EDGE, scope="wmma.accumulator")
        with T.block("root"):
            T.reads(C[0:_EDGE, 0:_EDGE], A[0:_EDGE, 0:_EDGE], B[0:_EDGE, 0:_EDGE])
            T.writes(C[0:_EDGE, 0:_EDGE])
            T.tvm_mma_sync(C.data, _fragment(c_at, c_row), A.data, _fragment(a_at, a_row),
                           B.data, _fragment(b_at, b_row), C.data, _fragment(c_at, c_row))
    return implementation


def _register(types, dtype, sums, is_transposed=False):
    name = f"wmma_sync_16x16x16_{types}{'_trans' if is_transposed else ''}"
    TensorIntrin.register(name, _loops(dtype, sums, is_transposed), _call(dtype, sums), override=True)
    return name


WMMA_SYNC_16x16x16_f16f16f32_INTRIN = _register("f16f16f32", "float16", "float32")
WMMA_SYNC_16x16x16_f16f16f32_TRANS_INTRIN = _register("f16f16f32", "float16", "float32", True)
WMMA_SYNC_16x16x16_f16f16f16_INTRIN = _register("f16f16f16", "float16", "float16")
WMMA_SYNC_16x16x16_f16f16f16_TRANS_INTRIN = _register("f16f16f16", "float16", "float16", True)
WMMA_SYNC_16x16x16_s8s8s32_INTRIN = _register("s8s8s32", "int8", "int32")
WMMA_SYNC_16x16x16_s8s8s32_TRANS_INTRIN = _register("s8s8s32", "int8", "int32", True)
