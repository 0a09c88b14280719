# SPDX-License-Identifier: Apache-2.0
"""The state of a schedule: places of blocks and loops, dependences, and the flags that TVM keeps of blocks."""
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402


@T.prim_func
def matmul(A: T.Buffer((13, 7), "float32"), B: T.Buffer((7, 30), "float32"), C: T.Buffer((13, 30), "float32")):
    product = T.alloc_buffer((13, 30), "float32")
    for i, j, k in T.grid(13, 30, 7):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                product[vi, vj] = T.float32(0)
            product[vi, vj] = product[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(13, 30):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(product[vi, vj], T.float32(0))


def test_places_of_blocks_and_loops():
    sch = tir.Schedule(matmul)
    block, (i, *_) = sch.get_block("product"), sch.get_loops("product")
    place = sch.get_sref(i)
    assert sch.get(block) is sch.get(sch.get_block("product", "matmul")) is sch.get_sref(block).stmt
    assert sch.state.get_sref(place.stmt).same_as(place) and sch.get(place) is place.stmt
    assert sch.func is matmul and place.stmt is matmul.body.block.body[0]  # the program as it was given
    copied = sch.copy()
    assert copied.get_sref(i).stmt is place.stmt and not copied.get_sref(i).same_as(place)
    outer, _ = sch.split(i, factors=[None, 4])
    assert sch.func is not matmul
    copied.split(i, factors=[None, 5])
    assert sch.get_sref(outer).stmt.extent == 4
    with pytest.raises(IndexError, match="another schedule"):
        copied.vectorize(outer)
    with pytest.raises(IndexError, match="another schedule"):
        copied.get_sref(outer)
    with pytest.raises(IndexError, match="no block or loop of the program"):
        sch.state.get_sref(copied.get(block))
    own = sch.mod[sch.func.__name__].body.block
    assert sch.get_sref(own).stmt is own and sch.state.get_sref(own).same_as(sch.get_sref(own))
    assert sch.get(block) is sch.get(block) and sch.get_sref(block).parent.parent.parent.parent.parent.stmt is own
    assert sch.get_sref(own).parent is None
    with pytest.raises(KeyError, match="no function 'other'"):
        sch.get_block("product", func_name="other")


def test_a_statement_is_replaced_by_another():
    sch = tir.Schedule(matmul)
    state, root = sch.state, sch.mod["main"].body.block
    first, second = root.body
    before, body, places = sch.mod, second.body, [sch.state.get_sref(node) for node in (first, second, second.body, root)]
    reference = sch.get_loops("relu")[0]
    for place, wrong in ((3, first), (0, root), (0, 3)):
        with pytest.raises(TypeError, match="is replaced by a"):
            state.replace(places[place], wrong)
    with pytest.raises(pleat.PleatError, match="has 3 items"):
        state.replace(sch.get_sref(sch.get_block("product")), tir.Block([], [], [], "product", tir.Evaluate(0)))
    assert sch.mod["main"].body.block is root and len(sch.trace.insts) == 3
    state.replace(places[1], tir.BlockRealize([], True, tir.Block([], [], [], "relu_o", second)))
    loops = [place.stmt for place in places]
    assert loops[0] is sch.mod["main"].body.block.body[0] and loops[0] is not first and loops[2].extent == 30
    assert loops[1] is sch.mod["main"].body.block.body[1].block.body and loops[3].name_hint == "root"
    assert before["main"].body.block is root and root.body[1].body is body and not sch.trace.insts
    with pytest.raises(IndexError, match="another schedule"):
        sch.split(reference, factors=[None, 4])
    sch.parallel(sch.get_loops("relu")[0])
    place = sch.state.get_sref(sch.mod["main"].body.block.body[1].block.body)
    inner = sch.state.get_sref(place.stmt.body)
    sch.state.replace(place, tir.For(place.stmt.loop_var, 0, 13, 0, tir.Evaluate(0)))
    assert place.stmt.extent == 13 and place.stmt.body.kind_name == "Evaluate" and inner.stmt is None


def test_dependences_of_blocks():
    state = tir.schedule.ScheduleState(matmul)
    root = state.get_sref(state.mod["main"].body.block)
    scope = state.get_sblock_scope(root)
    product, relu = map(state.get_sref, tir.schedule_state.blocks_inside(root.stmt))
    (found,) = scope.get_deps_by_src(product)
    assert found.dst.same_as(relu) and found.kind == tir.schedule.DepKind.RAW and not scope.get_deps_by_src(relu)
    assert scope.get_deps_by_dst(relu) == [found] and not scope.get_deps_by_dst(product)
    sch = tir.Schedule(matmul)
    sch.decompose_reduction("product", sch.get_loops("product")[2])
    init = sch.get_sref(sch.get_sblock("product_init"))
    scope = sch.state.get_block_scope(sch.get_sref(sch.func.body.block))
    kinds = [d.kind.name for d in scope.get_deps_by_src(init)]
    assert sorted(kinds) == ["RAW", "RAW", "WAW"] or sorted(kinds) == ["RAW", "WAW"]


def flags_of(text):
    """The flags of the blocks of a program, by their names."""
    state = tir.schedule.ScheduleState(pleat.script.from_source(text))
    blocks = [node for node in state._nodes() if hasattr(node, "iter_vars")]
    return {block.name_hint: state._get_cached_flags(state.get_sref(block)) for block in blocks}


HALVES = """
from pleat.script import tir as T
@T.prim_func
def halves(C: T.Buffer((12,), "int32")):
    A = T.alloc_buffer((12,), "int32")
    for i in range(6):
        with T.block("low"):
            vi = T.axis.spatial(12, i)
            A[vi] = vi
    for i in range(6):
        with T.block("high"):
            vi = T.axis.spatial(12, i + 6)
            A[vi] = vi * 2
    for t in T.thread_binding(12, "threadIdx.x"):
        B = T.alloc_buffer((12,), "int32", scope="shared")
        with T.block("B"):
            vt = T.axis.spatial(12, t)
            B[vt] = A[vt]
        with T.block("C"):
            vt = T.axis.spatial(12, t)
            C[vt] = B[11 - vt]
"""


@pytest.mark.parametrize("old, new, wrong", [
    ("", "", {}),
    ("i + 6", "i + 5", {"B": "region_cover", "root": "stage_pipeline"}),
    ('"shared"', '"local"', {"C": "region_cover", "root": "stage_pipeline"}),
    ("vi = T.axis.spatial(12, i)", "vi = T.axis.spatial(12, i * 2 % 6)",
     {"low": "affine_binding", "B": "region_cover", "root": "stage_pipeline"}),
    ("C[vt] = B[11 - vt]", "C[vt] = B[11 - vt]\n            A[vt] = 0", {"root": "stage_pipeline"})])
def test_flags_of_blocks(old, new, wrong):
    """The flags that TVM keeps: bindings are affine, what is read is written before, no block writes what an earlier
    one reads."""
    found = flags_of(HALVES.replace(old, new, 1))
    false = {name: [flag for flag, holds in flags._asdict().items() if not holds] for name, flags in found.items()}
    assert false == {name: [wrong[name]] if name in wrong else [] for name in ("low", "high", "B", "C", "root")}
