# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for one another at barriers and exchange values, run on processors and compared with
NumPy, and with CUDA's own definition of shuffles."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir as T  # noqa: E402

TARGETS = ("llvm", "c")
SIZES = (1, 2, 7, 13, 40)


def integers(*shape):
    return np.random.default_rng(sum(shape)).integers(-99, 99, shape).astype("int32")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", SIZES)
def test_a_tree_over_shared_memory(n, target):
    steps = max(n - 1, 0).bit_length()
    first = 1 << max(steps - 1, 0)

    @T.prim_func
    def tree(A: T.Buffer((3, n), "int32"), B: T.Buffer((3,), "int32")):
        for b in T.thread_binding(3, thread="blockIdx.x"):
            for x in T.thread_binding(n, thread="threadIdx.x"):
                S = T.decl_buffer((n,), "int32", scope="shared")
                S[x] = A[b, x]
                T.tvm_storage_sync("shared")
                for k in range(steps):
                    if x < T.shift_right(first, k) and x + T.shift_right(first, k) < n:
                        S[x] = S[x] + S[x + T.shift_right(first, k)]
                    T.tvm_storage_sync("shared")
                if x == 0:
                    B[b] = S[0]
    a, b = integers(3, n), np.zeros(3, "int32")
    pleat.build(tree, target=target, cache=False)(a, b)
    assert np.array_equal(b, a.sum(1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows, columns", [(1, 5), (3, 1), (7, 4), (5, 13)])
def test_a_value_of_each_thread_lives_across_barriers(rows, columns, target):
    @T.prim_func
    def turned(A: T.Buffer(("n", rows, columns), "int32"), B: T.Buffer((columns, rows), "int32")):
        n = T.int32()
        for y in T.thread_binding(rows, thread="threadIdx.y"):
            for x in T.thread_binding(columns, thread="threadIdx.x"):
                S = T.decl_buffer((rows, columns), "int32", scope="shared")
                R = T.decl_buffer((2,), "int32", scope="local")
                R[0] = 0
                for i in range(n):
                    v: T.int32 = A[i, y, x]
                    S[y, x] = v
                    T.tvm_storage_sync("shared")
                    R[0] = R[0] + v * S[rows - 1 - y, columns - 1 - x]
                    T.tvm_storage_sync("shared")
                B[x, y] = R[0]
    for n in (0, 1, 3):
        a, b = integers(n, rows, columns), np.ones((columns, rows), "int32")
        pleat.build(turned, target=target, cache=False)(a, b)
        assert np.array_equal(b, (a * a[:, ::-1, ::-1]).sum(0).T)


def shuffled(kind, values, by, width):
    """The definition of PTX's shfl.sync, one lane at a time."""
    result = values.copy()
    for thread in range(len(values)):
        lane = thread % 32
        first, last = lane // width * width, lane // width * width + width - 1
        amount = int(by[thread]) & 31
        if kind == "":
            source, valid = first + (amount & (width - 1)), True
        elif kind == "_up":
            source, valid = lane - amount, lane - amount >= first
        elif kind == "_down":
            source, valid = lane + amount, lane + amount <= last
        else:
            source, valid = lane ^ amount, lane ^ amount <= last
        source += thread - lane
        if valid and source < len(values):
            result[thread] = values[source]
    return result


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", SIZES)
def test_shuffles(n, target):
    for kind, call in (("", T.tvm_warp_shuffle), ("_up", T.tvm_warp_shuffle_up),
                       ("_down", T.tvm_warp_shuffle_down), ("_xor", T.tvm_warp_shuffle_xor)):
        for width in (1, 8, 32):
            @T.prim_func
            def exchange(A: T.Buffer((n,), "int32"), L: T.Buffer((n,), "int32"),
                         B: T.Buffer((n,), "int32")):
                for x in T.thread_binding(n, thread="threadIdx.x"):
                    B[x] = call(T.tvm_warp_activemask(), A[x], L[x], width, 32)
            a, b = integers(n), np.zeros(n, "int32")
            lanes = np.random.default_rng(n).integers(0, 40, n).astype("int32")
            pleat.build(exchange, target=target, cache=False)(a, lanes, b)
            assert np.array_equal(b, shuffled(kind, a, lanes, width)), (kind, width)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows, columns", [(1, 7), (3, 5), (4, 33)])
def test_a_reduction_over_threads(rows, columns, target):
    @T.prim_func
    def sums(A: T.Buffer((rows, columns), "int32"), B: T.Buffer((rows, columns), "int32")):
        for y in T.thread_binding(rows, thread="threadIdx.y"):
            for x in T.thread_binding(columns, thread="threadIdx.x"):
                R = T.decl_buffer((1,), "int32", scope="local")
                with T.attr(T.comm_reducer(lambda a, b: a + b, [T.int32(0)]), "reduce_scope", 0):
                    T.tvm_thread_allreduce(T.uint32(1), A[y, x], T.bool(True), R[0], x)
                B[y, x] = A[y, x] - R[0]
    a, b = integers(rows, columns), np.zeros((rows, columns), "int32")
    pleat.build(sums, target=target, cache=False)(a, b)
    assert np.array_equal(b, a - a.sum(1, keepdims=True))
