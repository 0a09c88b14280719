# SPDX-License-Identifier: Apache-2.0
"""Schedule steps give the program that TVM's steps of these names give. Needs apache-tvm; skipped without."""
import re

import pytest
from beside_tvm import read_both
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
tvm = pytest.importorskip("tvm")

PROGRAMS = '''
@T.prim_func(s_tir=True)
def chain(A: T.Buffer((13, 7), "float32"), D: T.Buffer((7, 13), "float32")):
    B = T.sblock_alloc_buffer((13, 7))
    for i, j in T.grid(13, 7):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for j, i in T.grid(7, 13):
        with T.sblock("D"):
            vj, vi = T.axis.remap("SS", [j, i])
            D[vj, vi] = B[vi, vj] + T.float32(1)


@T.prim_func(s_tir=True)
def neighbours(A: T.Buffer((9, 5), "float32"), B: T.Buffer((9, 5), "float32"), C: T.Buffer((9, 5), "float32")):
    for i, j in T.grid(9, 5):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(9, 5):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(2)


@T.prim_func(s_tir=True)
def matmul(A: T.Buffer((13, 10), "float32"), B: T.Buffer((10, 7), "float32"),
           C: T.Buffer((13, 7), "float32")):
    for i, j, k in T.grid(13, 7, 10):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def padded(X: T.Buffer((3, 11, 5), "float32"), S: T.Buffer((3, 13, 5), "float32")):
    P = T.sblock_alloc_buffer((3, 15, 7))
    for c, h, w in T.grid(3, 15, 7):
        with T.sblock("P"):
            vc, vh, vw = T.axis.remap("SSS", [c, h, w])
            P[vc, vh, vw] = T.if_then_else(2 <= vh and vh < 13 and 1 <= vw and vw < 6,
                                           X[vc, vh - 2, vw - 1], T.float32(2))
    for c, h, w, y, x in T.grid(3, 13, 5, 3, 3):
        with T.sblock("S"):
            vc, vh, vw, vy, vx = T.axis.remap("SSSRR", [c, h, w, y, x])
            with T.init():
                S[vc, vh, vw] = T.float32(0)
            S[vc, vh, vw] = S[vc, vh, vw] + P[vc, vh + vy, vw + vx]


@T.prim_func(s_tir=True)
def conv(X: T.Buffer((2, 11, 11, 3), "float32"), W: T.Buffer((3, 3, 3, 5), "float32"),
         Y: T.Buffer((2, 5, 5, 5), "float32")):
    for n, h, w, o, y, x, c in T.grid(2, 5, 5, 5, 3, 3, 3):
        with T.sblock("Y"):
            vn, vh, vw, vo, vy, vx, vc = T.axis.remap("SSSSRRR", [n, h, w, o, y, x, c])
            with T.init():
                Y[vn, vh, vw, vo] = T.float32(0)
            Y[vn, vh, vw, vo] = (Y[vn, vh, vw, vo] + X[vn, vh * 2 + vy, vw * 2 + vx, vo // 5 * 3 + vc]
                                 * W[vy, vx, vc, vo])
'''


STAGES = '''
@T.prim_func(s_tir=True)
def biased(A: T.Buffer((13, 10), "float32"), C: T.Buffer((13,), "float32"), D: T.Buffer((13,), "float32")):
    S = T.sblock_alloc_buffer((13,))
    for i, k in T.grid(13, 10):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk]
    for i in range(13):
        with T.sblock("D"):
            vi = T.axis.spatial(13, i)
            D[vi] = C[vi] + S[vi]


@T.prim_func(s_tir=True)
def in_place(C: T.Buffer((13, 7), "float32")):
    for i in range(1):
        with T.sblock("C"):
            T.reads(C[0:13, 0:7])
            T.writes(C[0:13, 0:7])
            for k, l in T.grid(13, 7):
                C[k, l] = C[k, l] + T.float32(1)


@T.prim_func(s_tir=True)
def resize(A: T.Buffer((40, 20), "float32"), B: T.Buffer((40, 33), "float32")):
    for i, j in T.grid(40, 33):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = (A[vi // 4 + 3, vj // 2] + A[vi // 4 + 5, vj // 2] * T.float32(2)
                         - A[vi // 4 + 3, vj // 2 + 1])
'''


def split_by_tile(sch):
    i, _ = sch.get_loops(sch.get_sblock("B"))
    sch.split(i, factors=sch.sample_perfect_tile(i, n=2, decision=[13, 1]))
    count = sch.sample_categorical(candidates=[2, 4], probs=[0.5, 0.5], decision=1)
    sch.split(sch.get_loops(sch.get_sblock("D"))[1], factors=[None, count])


def stated(sch):
    sch.annotate_buffer_access(sch.get_sblock("D"), 0, "read", lambda j, i: ((i - 1, i + 2), (j, j + 1)))


def aligned(sch):
    sch.storage_align("B", 0, axis=0, factor=32, offset=1)
    sch.storage_align("B", 0, axis=-1, factor=4, offset=0)


def reindexed(sch):
    sch.reindex("D", "B")
    sch.reindex("B", ("write", 0))


def blockized(sch):
    i, j = sch.get_loops("D")
    io, ii = sch.split(i, factors=[None, 7])
    jo, ji = sch.split(j, factors=[13, 1])
    sch.reorder(io, jo, ii, ji)
    sch.blockize(ii)


def blockized_sum(sch):
    sch.blockize(sch.get_loops("Y")[1])


def rolled(size):
    def steps(sch):
        outer, _ = sch.split(sch.get_loops("S")[1], factors=[None, size])
        sch.compute_at("P", outer)
        sch.rolling_buffer("P", 0)
    return steps


CASES = {
    "blockize": ("chain", blockized),
    "blockize a sum": ("conv", blockized_sum),
    "blockize inside": ("chain", lambda sch: sch.blockize(sch.get_loops("B")[1])),
    "blockize outside": ("chain", lambda sch: sch.blockize(sch.get_loops("B")[0])),
    "split by a tile": ("chain", split_by_tile),
    "stated ranges": ("chain", stated),
    "aligned": ("chain", aligned),
    "block variables": ("chain", lambda sch: sch.reorder_block_iter_var(sch.get_sblock("D"), [1, 0])),
    "padding": ("padded", lambda sch: sch.decompose_padding("P", sch.get_loops("P")[0])),
    "padding of rows": ("padded", lambda sch: sch.decompose_padding("P", sch.get_loops("P")[2])),
    "rolled tiles": ("padded", rolled(4)),
    "rolled single rows": ("padded", rolled(1)),
    "einsum": ("matmul", lambda sch: sch.pad_einsum("C", [4, 4, 4])),
    "epilogue": ("biased", lambda sch: sch.fuse_reduction_epilogue("S", "D")),
    "merge": ("neighbours", lambda sch: sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])),
    "merge inside": ("neighbours", lambda sch: sch.merge(sch.get_loops("B")[1], sch.get_loops("C")[1])),
    "types": ("chain", lambda sch: sch.unsafe_set_dtype("B", 0, "float16")),
    "reindex": ("chain", reindexed),
    "reindex data": ("conv", lambda sch: sch.reindex("Y", ("read", 0))),
    "reindex weight": ("conv", lambda sch: sch.reindex("Y", "W")),
    "reindex result": ("conv", lambda sch: sch.reindex("Y", ("write", 0))),
    "reindexed cache": ("chain", lambda sch: sch.reindex_cache_write(
        "B", 0, "shared", lambda i, j: (j, i))),
    "reindexed cache of a sum": ("conv", lambda sch: sch.reindex_cache_write(
        "Y", 0, "local", lambda n, h, w, o, y, x, c: (n * 5 + h, w * 5 + o))),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The programs as TVM and as Pleat read them."""
    return read_both(tmp_path_factory.mktemp("programs"), "programs", PROGRAMS + STAGES)


@pytest.mark.parametrize("name", CASES)
def test_programs_are_equal(both, name):
    program, steps = CASES[name]
    theirs = tvm.s_tir.Schedule(tvm.IRModule({"main": getattr(both[0], program)}), debug_mask="all")
    ours = pleat.tir.Schedule(getattr(both[1], program))
    steps(theirs)
    steps(ours)
    pleat.ir.assert_structural_equal(pleat.script.from_source(theirs.mod["main"].script()), ours.func)


def without_names(text):
    """The program without regions, strides and the numbers of blocks of one name."""
    return re.sub(r', strides=\(1,\)|^ *T.(reads|writes)\(.*\n|(?<=C_local)_1(?="\))', "", text, flags=re.M)


@pytest.mark.parametrize("program, steps", [
    ("resize", lambda sch: sch.cache_index("B", "local")),
    ("resize", lambda sch: sch.cache_index("B", "global", 2)),
    ("in_place", lambda sch: sch.cache_inplace("C", 0, "local")),
])
def test_programs_are_equal_without_regions(both, program, steps):
    """TVM's cache_index does not state that the block reads the stored indices, gives them the strides
    of one axis, and cache_inplace names both its blocks alike."""
    theirs = tvm.s_tir.Schedule(tvm.IRModule({"main": getattr(both[0], program)}))
    ours = pleat.tir.Schedule(getattr(both[1], program))
    steps(theirs)
    steps(ours)
    read = pleat.script.from_source
    pleat.ir.assert_structural_equal(read(without_names(theirs.mod["main"].script())),
                                     read(without_names(ours.func.script())))
