# SPDX-License-Identifier: Apache-2.0
"""Kernels in CUDA C++."""
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir as T  # noqa: E402


@T.prim_func
def swizzled(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    """A transposition through shared memory whose columns are permuted by XOR, so that neither rows
    nor columns meet in one bank."""
    for b in T.thread_binding(1, thread="blockIdx.x"):
        with T.sblock("block"):
            S = T.alloc_buffer((16, 16), "float32", scope="shared")
            for i in T.thread_binding(16, thread="threadIdx.y"):
                for j in T.thread_binding(16, thread="threadIdx.x"):
                    S[i, T.bitwise_xor(i, j)] = A[i, j]
            for i in T.thread_binding(16, thread="threadIdx.y"):
                for j in T.thread_binding(16, thread="threadIdx.x"):
                    C[i, j] = S[j, T.bitwise_xor(i, j)]


def test_source_of_a_module():
    text = pleat.build(swizzled, target="cuda", cache=False).get_source()
    assert "__shared__ float S[256]" in text and "__syncthreads();" in text
    assert "(i ^ j)" in text


@T.prim_func
def wide(C: T.Buffer((1025,), "float32")):
    for t in T.thread_binding(1025, thread="threadIdx.x"):
        C[t] = 1.0


def test_what_the_target_cannot_take_is_refused_by_build():
    with pytest.raises(pleat.PleatError, match="has 1025 threads of a block along threadIdx.x; CUDA"):
        pleat.build(wide, target="cuda", cache=False)
