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


# ---- The pass ThreadSync ----------------------------------------------------------------------------

PLACES = ("t", "14 - t", "(t + 4) % 15", "(t + k) % 15", "x * 3 + y", "t // 2 * 2", "k % 15", "(t * 2 + k) % 15")
MOVES = 5  # of the places, those that differ between threads


class RandomThreads:
    """A random program of 3 x 5 threads that share two buffers, and its meaning where all threads execute each
    statement at once."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.head = ["from pleat.script import tir as T", "@T.prim_func",
                     'def main(A: T.Buffer((3, 5), "int32"), B: T.Buffer((3, 5), "int32")):',
                     '    S0 = T.decl_buffer((15,), "int32", scope="shared")',
                     '    S1 = T.decl_buffer((15,), "int32", scope="shared")',
                     '    for y in T.thread_binding(3, thread="threadIdx.y"):',
                     '        for x in T.thread_binding(5, thread="threadIdx.x"):',
                     '            R = T.decl_buffer((1,), "int32", scope="local")',
                     "            R[0] = A[y, x]", "            S0[y * 5 + x] = 1", "            S1[y * 5 + x] = 2"]
        self.lines = []
        self.steps = self.statements(3, "            ", ())
        self.lines.append("            B[y, x] = R[0]")

    def pick(self, count):
        return int(self.random.integers(count))

    def statements(self, depth, indent, loops):
        return [self.statement(depth, indent, loops) for _ in range(1 + self.pick(4))]

    def statement(self, depth, indent, loops):
        kind = self.pick(6)
        if kind == 0 and depth:
            var, extent = f"k{len(loops)}", self.pick(4)
            self.lines.append(f"{indent}for {var} in range({extent}):")
            return "for", var, extent, self.statements(depth - 1, indent + "    ", (*loops, var))
        if kind == 1 and depth and loops:
            condition = f"{loops[-1]} % 2 == {self.pick(2)}"
            self.lines.append(f"{indent}if {condition}:")
            return "if", condition, self.statements(depth - 1, indent + "    ", loops)
        stores = kind in (2, 3)
        place = PLACES[self.pick(MOVES if stores else len(PLACES))]
        k = loops[self.pick(len(loops))] if loops else "2"
        place = place.replace("k", k).replace("t", "(y * 5 + x)")
        element = f"S{self.pick(2)}[{place}]"
        line = f"{element} = R[0] * 3 + 1" if stores else f"R[0] = R[0] + {element} * 5"
        self.lines.append(indent + line)
        return "do", line

    def text(self):
        return "\n".join(self.head + self.lines) + "\n"

    def run(self, a):
        y, x = np.divmod(np.arange(15), 5)
        env = {"x": x, "y": y, "R": [a.reshape(15).copy()], "S0": np.full(15, 1, "int32"),
               "S1": np.full(15, 2, "int32")}
        self.execute(self.steps, env)
        return env["R"][0].reshape(3, 5)

    def execute(self, steps, env):
        for kind, *parts in steps:
            if kind == "for":
                for env[parts[0]] in range(parts[1]):
                    self.execute(parts[2], env)
            elif kind == "if":
                if eval(parts[0], env):
                    self.execute(parts[1], env)
            else:
                exec(parts[0], env)


def check_random_threads(seed):
    program = RandomThreads(seed)
    synced = pleat.tir.transform.ThreadSync("shared")(pleat.script.from_source(program.text()))
    assert pleat.ir.structural_equal(pleat.tir.transform.ThreadSync("shared")(synced), synced)
    a, b = integers(3, 5), np.zeros((3, 5), "int32")
    pleat.build(synced, cache=False, quick=True)(a, b)
    assert np.array_equal(b, program.run(a)), f"{program.text()}\n{synced.script()}"


@pytest.mark.parametrize("seed", range(6))
def test_random_threads_wait_where_they_must(seed):
    check_random_threads(seed)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_that_are_split_off_compute_the_same(target):
    @T.prim_func
    def turned(A: T.Buffer(("n", 5), "int32"), B: T.Buffer(("n", 5), "int32"), k: T.int32):
        n = T.int32()
        C = T.decl_buffer((n, 5), "int32")
        for b in T.thread_binding(n, thread="blockIdx.x"):
            for x in T.thread_binding(5, thread="threadIdx.x"):
                S = T.decl_buffer((5,), "int32", scope="shared")
                S[x] = A[b, x]
                C[b, x] = S[4 - x] * k
        for i in range(n):
            for x in T.thread_binding(5, thread="threadIdx.x"):
                B[i, x] = C[i, x] + i
    transform = pleat.tir.transform
    module = transform.ThreadSync()(transform.SplitHostDevice()(pleat.IRModule({"turned": turned})))
    assert [one.__name__ for one in module.functions.values()] == ["turned", "turned_kernel", "turned_kernel1"]
    a, b = integers(7, 5), np.zeros((7, 5), "int32")
    pleat.build(module, target=target, cache=False)(a, b, 3)
    assert np.array_equal(b, a[:, ::-1] * 3 + np.arange(7)[:, None])
