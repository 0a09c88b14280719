# SPDX-License-Identifier: Apache-2.0
"""LowerThreadAllreduce: the code that it makes is run by simulated threads, which meet at barriers and
run in random order between them, and compared with NumPy."""
import itertools
import operator
import random

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat.script import tir as T  # noqa: E402

BINARY = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "LT": operator.lt,
          "EQ": operator.eq, "GE": operator.ge, "GT": operator.gt, "FloorDiv": operator.floordiv,
          "FloorMod": operator.mod, "Max": max, "Min": min}


class Thread:
    """One thread: `memory` is what all share, and `own` its local memory and variables."""

    def __init__(self, coordinates, memory):
        self.coordinates, self.memory, self.own = coordinates, memory, {}

    def place(self, buffer, indices):
        own = buffer.scope() == "local"
        memory = self.own if own else self.memory
        shape = tuple(int(extent) for extent in buffer.shape)
        array = memory.setdefault(buffer.data, np.full(shape, 77, buffer.dtype))
        return array, tuple(int(self.value(i)) for i in indices)

    def value(self, e):
        kind = type(e).__name__
        if kind in ("IntImm", "FloatImm"):
            return e.value
        if kind == "Var":
            return self.own[e]
        if kind == "BufferLoad":
            array, index = self.place(e.buffer, e.indices)
            return array[index]
        if kind == "Cast":
            return np.dtype(e.dtype).type(self.value(e.value))
        if kind == "Select":
            return self.value(e.true_value if self.value(e.condition) else e.false_value)
        if kind == "Call" and e.op.endswith("if_then_else"):
            return self.value(e.args[1] if self.value(e.args[0]) else e.args[2])
        return BINARY[kind](self.value(e.a), self.value(e.b))

    def run(self, s):
        """Yields at each barrier."""
        kind = type(s).__name__
        if kind == "SeqStmt":
            for one in s.seq:
                yield from self.run(one)
        elif kind == "For":
            tag = s.thread_binding.thread_tag if s.thread_binding else None
            steps = [self.coordinates[tag]] if tag else range(int(self.value(s.extent)))
            for i in steps:
                self.own[s.loop_var] = i
                yield from self.run(s.body)
        elif kind == "IfThenElse":
            if self.value(s.condition):
                yield from self.run(s.then_case)
        elif kind == "LetStmt":
            self.own[s.var] = self.value(s.value)
            yield from self.run(s.body)
        elif kind == "BufferStore":
            array, index = self.place(s.buffer, s.indices)
            array[index] = self.value(s.value)
        elif kind == "Evaluate":
            assert s.value.op.endswith("tvm_storage_sync")
            yield
        else:
            yield from self.run(s.body)


def simulate(program, extents, arrays, seed):
    """Runs a program whose loops over threads have these extents."""
    function = program.node
    memory = {function.buffer_map[p].data: a for p, a in zip(function.params, arrays)}
    threads = [Thread(dict(zip(extents, point)), memory)
               for point in itertools.product(*map(range, extents.values()))]
    running = [thread.run(function.body) for thread in threads]
    order = random.Random(seed)
    while running:
        order.shuffle(running)
        waiting = [one for one in running if next(one, "ended") != "ended"]
        assert not waiting or len(waiting) == len(running), "a barrier that not all threads reach"
        running = waiting


def lowered(function):
    module = pleat.IRModule({"main": function})
    once = pleat.tir.transform.LowerThreadAllreduce()(module)
    pleat.ir.assert_structural_equal(pleat.tir.transform.LowerThreadAllreduce()(once), once)
    return once["main"]


def sums(rows, columns, target="llvm"):
    @T.prim_func
    def rows_summed(A: T.Buffer((3, rows, columns), "int32"), B: T.Buffer((3, rows), "int32")):
        T.func_attr({"target": T.target(target)})
        for y in T.thread_binding(rows, thread="threadIdx.y"):
            for i in range(3):
                for x in T.thread_binding(columns, thread="threadIdx.x"):
                    R = T.decl_buffer((1,), "int32", scope="local")
                    with T.attr(T.comm_reducer(lambda a, b: a + b, [T.int32(0)]), "reduce_scope", 0):
                        T.tvm_thread_allreduce(T.uint32(1), A[i, y, x], T.bool(True), R[0], x)
                    if x == columns - 1:
                        B[i, y] = R[0]
    return rows_summed


@pytest.mark.parametrize("rows, columns", [(1, 1), (2, 2), (3, 5), (4, 32), (2, 33), (1, 96), (5, 7)])
def test_sums_of_rows(rows, columns):
    a = np.random.default_rng(3).integers(-99, 99, (3, rows, columns)).astype("int32")
    b = np.zeros((3, rows), "int32")
    extents = {"threadIdx.y": rows, "threadIdx.x": columns}
    for seed in range(3):
        simulate(lowered(sums(rows, columns)), extents, [a, b], seed)
        assert np.array_equal(b, a.sum(2))


@pytest.mark.parametrize("rows, columns, target", [
    (3, 8, "cuda"), (1, 32, "metal -thread_warp_size=32"), (2, 96, "cuda"), (1, 1024, "cuda")])
def test_sums_of_rows_in_warps(rows, columns, target):
    function = lowered(sums(rows, columns, target)).without_attr("target")
    assert ("tvm_warp_activemask" in function.script()) == (target == "cuda")
    assert "tvm_warp_shuffle_down" in function.script()
    assert ("tvm_storage_sync" in function.script()) == (columns > 32)
    a = np.random.default_rng(3).integers(-99, 99, (3, rows, columns)).astype("int32")
    b = np.zeros((3, rows), "int32")
    pleat.build(function)(a, b)
    assert np.array_equal(b, a.sum(2))


@pytest.mark.parametrize("target", [
    "opencl", "rocm", "metal"])  # no exchange, warps of 64 threads, warps of 16
def test_targets_without_such_warps(target):
    assert "tvm_warp" not in lowered(sums(3, 8, target)).script()


@pytest.mark.parametrize("count, wanted", [(5, 3), (16, 16), (37, 20), (37, 0)])
def test_values_that_are_reduced_together(count, wanted):
    @T.prim_func
    def largest(A: T.Buffer((count,), "float32"), B: T.Buffer((count,), "float32"),
                C: T.Buffer((count,), "int32")):
        for x in T.thread_binding(count, thread="threadIdx.x"):
            R = T.decl_buffer((1,), "float32", scope="local")
            S = T.decl_buffer((1,), "int32", scope="local")
            with T.attr(T.comm_reducer(
                    lambda a, i, b, j: (T.Select(a >= b, a, b), T.Select(a >= b, i, j)),
                    [T.float32(-1), T.int32(-7)]), "reduce_scope", 0):
                T.tvm_thread_allreduce(T.uint32(2), A[x], x, x < wanted, R[0], S[0], x)
            B[x] = R[0]
            C[x] = S[0]
    a = np.random.default_rng(5).random(count, "float32")
    b, c = np.zeros(count, "float32"), np.zeros(count, "int32")
    simulate(lowered(largest), {"threadIdx.x": count}, [a, b, c], 1)
    assert (b == (a[:wanted].max() if wanted else -1)).all()
    assert (c == (a[:wanted].argmax() if wanted else -7)).all()


def test_over_two_dimensions():
    @T.prim_func
    def all_of(A: T.Buffer((2, 3, 5), "int32"), B: T.Buffer((3,), "int32")):
        for z in T.thread_binding(2, thread="threadIdx.z"):
            for y in T.thread_binding(3, thread="threadIdx.y"):
                for x in T.thread_binding(T.int64(5), thread="threadIdx.x"):
                    R = T.decl_buffer((1,), "int32", scope="local")
                    with T.attr(T.comm_reducer(lambda a, b: T.max(a, b), [T.int32(-100)]),
                                "reduce_scope", 0):
                        T.tvm_thread_allreduce(T.uint32(1), A[z, y, x], T.bool(True), R[0], z, x)
                    B[y] = R[0]
    a = np.random.default_rng(5).integers(-99, 99, (2, 3, 5)).astype("int32")
    b = np.zeros(3, "int32")
    simulate(lowered(all_of), {"threadIdx.z": 2, "threadIdx.y": 3, "threadIdx.x": 5}, [a, b], 2)
    assert np.array_equal(b, a.max((0, 2)))


def test_a_pointer_to_the_result():
    @T.prim_func
    def total(A: T.Buffer((7,), "float32"), B: T.Buffer((1,), "float32")):
        with T.launch_thread("threadIdx.x", 7) as x:
            data = T.allocate([1], "float32", "local")
            R = T.Buffer((1,), "float32", data=data, scope="local")
            with T.attr(T.comm_reducer(lambda a, b: a + b, [T.float32(0)]), "reduce_scope",
                        T.reinterpret(T.uint64(0), dtype="handle")):
                T.tvm_thread_allreduce(T.uint32(1), A[x], True, data, x, dtype="handle")
            if x == 0:
                B[0] = R[0]
    a, b = np.arange(7, dtype="float32"), np.zeros(1, "float32")
    pleat.build(total)(a, b)
    assert b[0] == 21


def test_what_is_refused():
    @T.prim_func
    def alone(A: T.Buffer((5,), "int32"), x: T.int32):
        T.tvm_thread_allreduce(T.uint32(1), A[x], T.bool(True), A[0], x)

    @T.prim_func
    def elsewhere(A: T.Buffer((5,), "int32"), x: T.int32):
        with T.attr(T.comm_reducer(lambda a, b: a + b, [T.int32(0)]), "reduce_scope", 0):
            T.tvm_thread_allreduce(T.uint32(1), A[x], T.bool(True), A[0], x)

    @T.prim_func
    def sized(A: T.Buffer((5,), "int32"), n: T.int32):
        for x in T.thread_binding(n, thread="threadIdx.x"):
            with T.attr(T.comm_reducer(lambda a, b: a + b, [T.int32(0)]), "reduce_scope", 0):
                T.tvm_thread_allreduce(T.uint32(1), A[x], T.bool(True), A[0], x)

    for function, why in ((alone, "no T.comm_reducer"), (elsewhere, "no loop around"),
                          (sized, "constant number of threads")):
        with pytest.raises(pleat.PleatError, match=why):
            lowered(function)


def test_a_reduction_over_no_threads_stores_its_init():
    @T.prim_func
    def sums(a: T.handle, B: T.Buffer((3,), "float32")):
        n = T.int32()
        A = T.match_buffer(a, (3, n), "float32")
        for i, k in T.grid(3, n):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(1)
                B[vi] = B[vi] + A[vi, vk]

    def bound(factors, order, bind):
        sch = pleat.tir.Schedule(sums)
        i, k = sch.get_loops(sch.get_block("B"))
        loops = {"i": i, "k": k}
        if factors:
            loops["k"], loops["t"] = sch.split(k, factors)
        sch.reorder(*(loops[name] for name in order))
        sch.bind(loops[bind], "threadIdx.x")
        return sch.mod

    wanted = {n: np.full(3, 1 + n, "float32") for n in (0, 1, 5)}
    for module in (bound(None, "ik", "k"), bound([None, 4], "ikt", "t"), bound(None, "ki", "i")):
        lowered = pleat.tir.transform.LowerCrossThreadReduction()(module)
        for one in {module.script(): module, lowered.script(): lowered}.values():
            built = pleat.build(one)
            for n, result in wanted.items():
                b = np.full(3, 7, "float32")
                built(np.ones((3, n), "float32"), b)
                assert (b == result).all(), (one.script(), n)
