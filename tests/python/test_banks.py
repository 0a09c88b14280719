# SPDX-License-Identifier: Apache-2.0
"""Swizzles of shared memory that the step swizzle_banks finds, and the bank conflicts that are reported:
compared with a list of the words that the threads of each warp request."""
import itertools
import random
import re
import types

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402

HEAD = "from pleat.script import tir as T\n\n"
BYTES = {"float16": 2, "float32": 4, "float64": 8, "int8": 1}
FUNCTIONS = types.SimpleNamespace(
    bitwise_xor=lambda a, b: a ^ b, bitwise_and=lambda a, b: a & b, bitwise_or=lambda a, b: a | b,
    shift_left=lambda a, b: a << b, shift_right=lambda a, b: a >> b)


class Copy:
    """A copy of rows x columns through shared memory, filled in the order of its rows and read in that
    of `rows_in` and `columns_in`."""

    def __init__(self, rows, columns, threads, dtype="float32", transposed=True, lanes=1):
        self.rows, self.columns, self.threads, self.dtype = rows, columns, threads, dtype
        self.transposed, self.lanes = transposed, lanes
        self.read = (columns, rows) if transposed else (rows, columns)

    def stage(self, name, extents, lanes, body):
        x, y = self.threads
        width = extents[1] // lanes
        loops = [("k", -(-extents[0] // y), "range({})"), ("i", min(y, extents[0]), "threadIdx.y"),
                 ("l", -(-width // x), "range({})"), ("j", min(x, width), "threadIdx.x")]
        if lanes > 1:
            loops.append(("v", lanes, "T.vectorized({})"))
        text, indent = "", "        "
        for variable, extent, kind in loops:
            kind = kind if "{}" in kind else f'T.thread_binding({{}}, "{kind}")'
            text += f"{indent}for {variable} in {kind.format(extent)}:\n"
            indent += "    "
        column = f"(l * {min(x, width)} + j) * {lanes}{' + v' if lanes > 1 else ''}"
        for line in (f'with T.sblock("{name}"):',
                     f"    a = T.axis.spatial({extents[0]}, k * {min(y, extents[0])} + i)",
                     f"    b = T.axis.spatial({extents[1]}, {column})", f"    {body}"):
            text += f"{indent}{line}\n"
        self.loops[name] = [(v, e) for v, e, _ in loops], extents, column
        return text

    def source(self):
        self.loops = {}
        n, m, dtype = self.rows, self.columns, self.dtype
        element = "S[b, a]" if self.transposed else "S[a, b]"
        return (f'{HEAD}@T.prim_func\ndef f(A: T.Buffer(({n}, {m}), "{dtype}"), '
                f'C: T.Buffer({self.read}, "{dtype}")):\n'
                f'    S = T.alloc_buffer(({n}, {m}), "{dtype}", scope="shared")\n'
                '    for z in T.thread_binding(1, "blockIdx.x"):\n'
                + self.stage("fill", (n, m), self.lanes, "S[a, b] = A[a, b]")
                + self.stage("use", self.read, 1, f"C[a, b] = {element}"))

    def schedule(self):
        return tir.Schedule(pleat.script.from_source(self.source()))

    def waves(self, name, access, shape):
        """The degree and the waves of an access, by a list of all of its words."""
        loops, extents, column = self.loops[name]
        indices = compile(re.fullmatch(r"S\[(.*)\]", access).group(1) + ",", "access", "eval")
        sizes = dict(loops)
        lanes = sizes.pop("v", 1)
        warps = {}
        for point in itertools.product(*(range(size) for size in sizes.values())):
            at = dict(zip(sizes, point), v=0)
            place = {"a": at["k"] * sizes["i"] + at["i"], "b": eval(column, at), "T": FUNCTIONS}
            offset = 0
            for index, extent in zip(eval(indices, place), shape):
                offset = offset * extent + index
            thread = at["i"] * sizes["j"] + at["j"]
            warps.setdefault((at["k"], at["l"], thread // 32), {})[thread % 32] = offset
        size, total, most = BYTES[self.dtype], 0, 0
        served = max(1, 128 // max(4, size * lanes))
        for warp in warps.values():
            for first in range(0, 32, served):
                banks = {}
                for lane in range(first, first + served):
                    if lane in warp:
                        start = warp[lane] * size
                        for word in range(start // 4, (start + size * lanes - 1) // 4 + 1):
                            banks.setdefault(word % 32, set()).add(word)
                degree = max((len(words) for words in banks.values()), default=0)
                total, most = total + degree, max(most, degree)
        return most, total


def reported(schedule):
    return tir.analysis.accesses(schedule.mod["main"] if "main" in schedule.mod else schedule.mod["f"])["banks"]


def shape_of(schedule):
    return [int(size) for size in re.search(r"S = T.alloc_buffer\(\(([^)]*)\)", schedule.mod.script())
            .group(1).split(",") if size.strip()]


def check(copy):
    """Conflicts before and after the step; the reports agree with the list, and results do not change."""
    schedule, found = copy.schedule(), []
    for step in (None, "swizzle"):
        if step:
            schedule.swizzle_banks("fill", ("write", 0))
        for name, item in zip(("fill", "use"), reported(schedule)):
            degree, waves = copy.waves(name, item["access"], shape_of(schedule))
            assert (item["degree"], item["waves"]) == (degree, waves), (copy.source(), item)
            assert item["conflicts"] == ("none" if degree == 1 else "found")
            found.append(waves)
    assert sum(found[2:]) <= sum(found[:2])
    a = np.arange(copy.rows * copy.columns).reshape(copy.rows, copy.columns).astype(copy.dtype)
    c = np.zeros(copy.read, copy.dtype)
    pleat.build(schedule.mod, cache=False)(a, c)
    assert np.array_equal(c, a.T if copy.transposed else a)
    return schedule, found


def test_swizzle_of_the_thread_of_rfc39():
    """"A possible use cases of more complex mapping is permuted layout for shared memory on CUDA" (the
    discussion of RFC 39, on functions as maps): one is found; the kernel of the tests of target cuda has
    another one, without conflicts too."""
    schedule, found = check(Copy(16, 16, (16, 16)))
    text = schedule.mod.script()
    assert "S[a, T.bitwise_xor(b, a // 2 * 2)] = A[a, b]" in text
    assert found == [8, 64, 8, 8]
    source = pleat.build(schedule.mod, target="cuda", cache=False).get_source()
    assert "__shared__ float S[256]" in source and "^" in source
    from test_cuda import swizzled
    assert [item["conflicts"] for item in tir.analysis.accesses(swizzled)["banks"]] == ["none", "none"]


def test_bound_of_a_transposition():
    """Each access of 64 x 64 floats takes one wave for each warp."""
    schedule, found = check(Copy(64, 64, (32, 8)))
    assert found == [128, 4096, 128, 128]
    assert all(item["conflicts"] == "none" and item["degree"] == 1 for item in reported(schedule))
    assert "S[a, T.bitwise_xor(b, a % 32)]" in schedule.mod.script()


def test_vectors_stay_whole():
    """The swizzle moves whole vectors, which stay one access of the device."""
    schedule, _ = check(Copy(32, 128, (8, 8), lanes=4))
    source = pleat.build(schedule.mod, target="cuda", cache=False).get_source()
    assert re.search(r"\*\(f32x4 \*\)&S\[", source), source


def test_nothing_to_do():
    copy = Copy(32, 32, (32, 4), transposed=False)
    schedule, _ = check(copy)
    assert "bitwise_xor" not in schedule.mod.script()


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("rows, columns, threads, lanes", [
    (32, 64, (32, 4), 1), (64, 32, (16, 8), 1), (64, 64, (16, 16), 2), (32, 128, (8, 8), 4),
    (128, 8, (8, 16), 1), (4, 64, (32, 1), 1), (2, 2, (2, 2), 1), (1, 32, (32, 1), 1)])
def test_types_and_shapes(dtype, rows, columns, threads, lanes):
    check(Copy(rows, columns, threads, dtype, lanes=1 if dtype == "float64" and lanes > 2 else lanes))


def test_random_copies():
    pick = random.Random(3)
    for _ in range(25):
        rows, columns = 2 ** pick.randrange(1, 8), 2 ** pick.randrange(2, 8)
        threads = 2 ** pick.randrange(0, 6), 2 ** pick.randrange(0, 5)
        if threads[0] * threads[1] > 32 and max(rows, columns) < max(threads):
            continue
        copy = Copy(rows, columns, threads, pick.choice(list(BYTES)), pick.random() < 0.7)
        schedule = copy.schedule()
        if any(item["conflicts"] == "undecided" for item in reported(schedule)):
            with pytest.raises(pleat.tir.ScheduleError, match="not known: not all threads"):
                schedule.swizzle_banks("fill", ("write", 0))
        else:
            check(copy)


def test_conflicts_of_other_shapes_are_counted():
    """36 columns: no bits, so no swizzle, but the conflicts are known. The last warp may have fewer threads."""
    for rows, columns, threads, dtype, lanes in ((32, 36, (4, 4), "float32", 1), (32, 37, (37, 1), "float16", 1),
                                                 (5, 40, (8, 5), "float64", 1), (4, 80, (20, 4), "float32", 2),
                                                 (7, 77, (11, 7), "float32", 1)):
        copy = Copy(rows, columns, threads, dtype, lanes=lanes)
        fill, use = reported(copy.schedule())
        assert (fill["degree"], fill["waves"]) == copy.waves("fill", fill["access"], (rows, columns))
        if use["conflicts"] != "undecided":
            assert (use["degree"], use["waves"]) == copy.waves("use", use["access"], (rows, columns))
            assert (use["conflicts"] == "none") == (use["degree"] == 1)


@pytest.mark.parametrize("change, message", [
    (('scope="shared"', 'scope="global"'), "memory with banks is in scope 'shared'"),
    (('"threadIdx.x"', '"blockIdx.y"'), "no loop over threads accesses 'S'"),
    (("T.thread_binding(8, \"threadIdx.x\")", "T.thread_binding(5, \"threadIdx.x\")"), "an access is not linear in bits"),
])
def test_refused(change, message):
    text = Copy(8, 8, (8, 1)).source().replace('T.thread_binding(1, "threadIdx.y")', "range(1)")
    if "5" in change[1]:
        text = Copy(8, 40, (40, 1)).source().replace('T.thread_binding(1, "threadIdx.y")', "range(1)")
        change = ("#", "#")
    schedule = tir.Schedule(pleat.script.from_source(text.replace(*change)))
    with pytest.raises(pleat.tir.ScheduleError, match=message):
        schedule.swizzle_banks("fill", ("write", 0))


def test_views_and_padding_are_not_guessed():
    copy = Copy(32, 32, (32, 1))
    schedule = copy.schedule()
    schedule.storage_align("fill", 0, axis=0, factor=32, offset=1)
    assert {item["why"] for item in reported(schedule)} == {"storage_align pads it when it is lowered"}
    with pytest.raises(pleat.tir.ScheduleError, match="storage_align pads it"):
        schedule.swizzle_banks("fill", ("write", 0))


def turning(n, m):
    """A transposition by tiles of shared memory, and the block that fills them."""
    sch = tir.Schedule(pleat.script.from_source(f"""
from pleat.script import tir as T
@T.prim_func
def f(A: T.Buffer(({n}, {m}), "float32"), B: T.Buffer(({m}, {n}), "float32")):
    for i, j in T.grid({m}, {n}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]
"""))
    copy = sch.cache_read("B", 0, "shared")
    (i, ii), (j, ji) = (sch.split(loop, [None, 32]) for loop in sch.get_loops("B"))
    sch.reorder(i, j, ii, ji)
    sch.compute_at(copy, j)
    lanes = sch.get_loops(copy)[-1]
    for loop, thread in ((i, "blockIdx.y"), (j, "blockIdx.x"), (ji, "threadIdx.x"), (lanes, "threadIdx.x")):
        sch.bind(loop, thread)
    return sch, copy


SMALL = [tir.transform.PlanAndUpdateBufferAllocationLocation(), tir.transform.CompactBufferAllocation()]


def test_a_swizzled_tile_is_as_large_as_the_tile():
    sch, copy = turning(128, 64)
    sch.swizzle_banks(copy, ("write", 0))
    assert {item["conflicts"] for item in reported(sch)} == {"none"}
    small = pleat.transform.Sequential(SMALL)(sch.mod)
    assert 'A_shared = T.alloc_buffer((32, 32), "float32", scope="shared")' in small.script()


@pytest.mark.parametrize("n, m", [(64, 96), (37, 41)])
def test_tiles_of_other_sizes_are_swizzled_as_buffers_of_their_own(n, m):
    sch, copy = turning(n, m)
    with pytest.raises(pleat.tir.ScheduleError, match="CompactBufferAllocation"):
        sch.swizzle_banks(copy, ("write", 0))
    sch = tir.Schedule(pleat.transform.Sequential(SMALL)(sch.mod))
    sch.swizzle_banks("A_shared", ("write", 0))
    assert {item["conflicts"] for item in reported(sch)} == {"none"}
    a, b = np.arange(n * m, dtype="float32").reshape(n, m), np.zeros((m, n), "float32")
    pleat.build(sch.mod, cache=False, quick=True)(a, b)
    assert np.array_equal(a.T, b)
