# SPDX-License-Identifier: Apache-2.0
"""Analyses of tensor programs, passes that Python makes, and instruments, with TVM's names."""
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.ir import assert_structural_equal, instrument, structural_equal  # noqa: E402
from pleat.script import ir as I, tir as T  # noqa: E402
from pleat.tir import analysis, stmt_functor, transform  # noqa: E402


@T.prim_func
def gemm(A: T.Buffer((12, 16)), B: T.Buffer((16, 20)), C: T.Buffer((12, 20))):
    D = T.alloc_buffer((12, 20))
    for i, j, k in T.grid(12, 20, 16):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i in range(12):
        for j in range(20):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = D[vi, vj]


@T.prim_func
def opaque(A: T.Buffer((8, 9)), idx: T.Buffer((8,), "int32"), B: T.Buffer((8, 9))):
    for i in range(2):
        with T.block("outer"):
            vi = T.axis.spatial(2, i)
            T.reads(A[vi * 4:vi * 4 + 4, 0:9], idx[vi * 4:vi * 4 + 4])
            T.writes(B[0:8, 0:9])
            for ii, j in T.grid(4, 9):
                with T.block("inner"):
                    vii, vj = T.axis.remap("SS", [ii, j])
                    k: T.int32 = idx[vi * 4 + vii]
                    B[vi * 4 + vii, vj] = A[vi * 4 + vii, T.min(k, 8)]
            T.evaluate(T.call_extern("int32", "seen", B.data))


def blocks(function):
    found = {}

    def visit(node):
        if isinstance(node, tir.Block):
            found[node.name_hint] = node
    stmt_functor.post_order_visit(function.body, visit)
    return found


def shown(regions):
    return [f"{one.buffer.name}[" + ", ".join(f"{r.min!r}:{r.extent!r}" for r in one.region) + "]" for one in regions]


def test_regions_of_blocks():
    buffers = {buffer.data: buffer for buffer in gemm.buffer_map.values()}
    found = blocks(gemm)
    buffers.update((one.data, one) for one in found["root"].alloc_buffers)
    for name in ("update", "copy"):
        reads, writes, pointers = analysis.get_block_access_region(found[name], buffers)
        assert shown(reads) == shown(found[name].reads) and shown(writes) == shown(found[name].writes)
        assert pointers == []
    own = {one: one for one in opaque.buffer_map.values()}
    outer = blocks(opaque)["outer"]
    reads, writes, pointers = analysis.get_sblock_access_region(outer, own)
    assert [one.buffer.name for one in reads] == ["idx", "A"]
    assert shown(pointers) == ["B[0:8, 0:9]"]
    assert shown(writes)[0].startswith("B[")
    both = analysis.get_block_read_write_region(outer, own)
    assert shown(both[0])[-1] == shown(both[1])[-1] == "B[0:8, 0:9]"
    inner = blocks(opaque)["inner"]
    del own[next(one for one in own if one.name == "A")]
    assert [one.buffer.name for one in analysis.get_block_access_region(inner, own)[0]] == ["idx"]


def test_places_of_accesses():
    found = {buffer.name: place for buffer, place in analysis.detect_buffer_access_lca(gemm).items()}
    root = blocks(gemm)["root"]
    i = gemm.body.block.body.seq[0]
    assert found["A"].name_hint == found["B"].name_hint == "update"
    assert found["D"] is root and found["C"].name_hint == "copy"

    @T.prim_func
    def alone(A: T.Buffer((12, 16)), C: T.Buffer((12,))):
        for i, k in T.grid(12, 16):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
    found = {buffer.name: place for buffer, place in analysis.detect_buffer_access_lca(alone).items()}
    assert found["C"].loop_var.name == "i" and found["A"].name_hint == "sum" and i.loop_var.name == "i"

    @T.prim_func
    def device(A: T.Buffer((4, 8)), C: T.Buffer((4, 8))):
        for b in T.thread_binding(4, thread="blockIdx.x"):
            own = T.decl_buffer((8,), scope="shared")
            for t in T.thread_binding(8, thread="threadIdx.x"):
                own[t] = A[b, t]
                C[b, t] = own[t]
    found = {buffer.name: place for buffer, place in analysis.detect_buffer_access_lca(device).items()}
    assert found["A"].loop_var.name == "b" and found["own"].loop_var.name == "t"


def test_questions_about_functions():
    assert analysis.verify_ssa(gemm) and analysis.verify_ssa(opaque)
    i = tir.Var("i", "int32")
    A = tir.decl_buffer([8], name="A")
    loop = tir.For(i, 0, 8, 0, tir.BufferStore(A, 1.0, [i]))
    assert analysis.calculate_allocated_bytes(gemm) == {"main": {"global": 12 * 20 * 4}}
    assert analysis.calculate_allocated_bytes(pleat.IRModule({"g": gemm})) == {"g": {"global": 960}}
    assert analysis.find_anchor_block(pleat.IRModule({"g": gemm, "o": opaque})).name_hint == "update"
    assert analysis.find_anchor_sblock(pleat.IRModule({"o": opaque})) is None
    assert not analysis.is_pure_function(gemm)
    with pytest.raises(AssertionError, match="gemm is not pure: it stores to C"):
        analysis.assert_pure_function(gemm)

    @T.prim_func
    def pure(A: T.Buffer((4,)), x: T.int32) -> T.float32:
        own = T.alloc_buffer((4,))
        for i in range(4):
            own[i] = T.exp(A[i])
        return own[x]
    assert analysis.assert_pure_function(pure)
    assert isinstance(loop, tir.For)


@pytest.mark.parametrize("question", [
    analysis.verify_ssa, analysis.verify_memory, analysis.undefined_vars, analysis.is_pure_function,
    analysis.detect_buffer_access_lca, lambda one: analysis.verify_gpu_code(one, {}),
    lambda one: stmt_functor.post_order_visit(one, print)])
def test_other_kinds_of_arguments(question):
    for wrong in (pleat.IRModule({"g": gemm}), None):
        with pytest.raises(TypeError, match=f"expected a .*PrimFunc, not {type(wrong).__name__}"):
            question(wrong)
    for of_both in (analysis.estimate_tir_flops, analysis.calculate_allocated_bytes, analysis.find_anchor_block):
        with pytest.raises(TypeError, match="expected an IRModule or a PrimFunc, not int"):
            of_both(3)


@T.prim_func
def bound(A: T.Buffer((64,)), B: T.Buffer((64,))):
    T.func_attr({"target": T.target("cuda")})
    for b in T.thread_binding(2, thread="blockIdx.x"):
        own = T.decl_buffer((32,), scope="shared")
        for t in T.thread_binding(32, thread="threadIdx.x"):
            own[t] = A[b * 32 + t]
            B[b * 32 + t] = own[t]


def test_limits_and_memory_of_devices():
    assert analysis.verify_memory(bound)
    with pytest.raises(ValueError, match="no attribute 'target'"):
        analysis.verify_memory(gemm)
    assert analysis.verify_memory(transform.BindTarget("llvm")(gemm))
    outside = transform.BindTarget("cuda")(gemm)
    assert not analysis.verify_memory(outside)
    with pytest.raises(pleat.PleatError, match="memory verification of gemm failed"):
        transform.VerifyMemory()(outside)
    assert analysis.verify_gpu_code(bound, {"max_threads_per_block": 32, "max_shared_memory_per_block": 128})
    for limit in ({"max_threads_per_block": 31}, {"max_thread_x": 16}, {"max_shared_memory_per_block": 127}):
        assert not analysis.verify_gpu_code(bound, limit)
    with pytest.raises(ValueError, match="no limit 'max_magic'"):
        analysis.verify_gpu_code(bound, {"max_magic": 1})


def test_parameters_stand_for_buffers():
    assert [tir.is_buffer_var(one) for one in gemm.params] == [True] * 3
    assert not tir.is_buffer_var(tir.Var("n", "int32"))
    places = analysis.detect_buffer_access_lca(gemm)
    assert places[gemm.params[0]].name_hint == "update"
    with pytest.raises(KeyError):
        places[tir.Var("n", "int32")]
    found = analysis.get_block_access_region(blocks(gemm)["update"], {one: one for one in gemm.params})
    assert shown(found[0]) == ["A[vi:1, vk:1]", "B[vk:1, vj:1]"] and found[1:] == [[], []]

    @T.prim_func
    def pointers(A: T.Buffer((8,)), B: T.Buffer((8,))):
        with T.block("call"):
            T.reads(A[0:8])
            T.writes(B[0:8])
            T.evaluate(T.call_extern("int32", "f", A.access_ptr("r"), B.access_ptr("w")))
    found = analysis.get_block_access_region(blocks(pointers)["call"], {one: one for one in pointers.params})
    assert list(map(shown, found)) == [["A[0:8]"], ["B[0:8]"], []]


def test_stated_operations():
    @T.prim_func
    def stated(A: T.Buffer((8,))):
        T.func_attr({"estimated_flops": 32})
        for i in range(8):
            A[i] = A[i] + T.float32(1)
    assert analysis.estimate_tir_flops(stated) == 32
    assert analysis.estimate_tir_flops(stated.without_attr("estimated_flops")) == 8


def test_bounds():
    @T.prim_func
    def outside(A: T.Buffer((8,))):
        for i in range(9):
            A[i] = T.float32(1)
    analysis.OOBChecker()(pleat.IRModule({"gemm": gemm}))
    with pytest.raises(tir.ScheduleError, match="out of bounds with i = 8"):
        analysis.OOBChecker()(pleat.IRModule({"outside": outside}))


# ---- Passes ---------------------------------------------------------------------------------------

@I.ir_module
class Two:
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), n: T.int32):
        assert n > 3, "too few"
        for i in T.parallel(2, 8):
            A[i] = A[i - 2] * T.int32(0) + i

    @T.prim_func(private=True)
    def helper(A: T.Buffer((8,), "int32")):
        for i in T.vectorized(8):
            A[i] = i


def test_passes_of_modules():
    kept = transform.Filter(lambda one: "private" not in one.attrs)(Two)
    assert list(kept.functions) == ["main"]
    marked = transform.Apply(lambda one: one.with_attr("seen", 7))(Two)
    assert all(one.attrs["seen"] == 7 for one in marked.functions.values())
    entry = transform.AnnotateEntryFunc()(Two)
    assert "tir.is_entry_func" in entry["main"].attrs and "tir.is_entry_func" not in entry["helper"].attrs
    bound_to = transform.BindTarget(pleat.target.Target("cuda", host="llvm"))(Two)
    assert "llvm" in str(bound_to["main"].attrs["target"]) and "llvm" not in str(bound_to["helper"].attrs["target"])
    assert_structural_equal(transform.BindTarget("llvm")(bound_to), bound_to)


def test_passes_of_nodes():
    text = transform.SkipAssert()(Two)["main"].script()
    assert "assert" not in text and "T.parallel(2, 8)" in text
    serial = transform.ConvertForLoopsToSerial()(Two)
    assert "parallel" not in serial["main"].script() and "vectorized" in serial["helper"].script()
    assert "range(6)" in transform.CanonicalizeLoop()(serial)["main"].script()
    assert transform.CanonicalizeLoop()(Two)["helper"].script() == Two["helper"].script()


def test_renewed_definitions():
    again = stmt_functor.renew_defs(gemm)
    assert structural_equal(again, gemm) and again.params[0] is not gemm.params[0]


# ---- Instruments ----------------------------------------------------------------------------------

def test_instruments(capsys, tmp_path):
    @instrument.pass_instrument
    class Counts:
        def __init__(self):
            self.names = []

        def run_before_pass(self, module, info):
            self.names.append(info.name)
    counts, times = Counts(), instrument.PassTimingInstrument()
    assert isinstance(counts, instrument.PassInstrument)
    given = [counts, times, instrument.PrintAfterAll(), instrument.DumpIR(tmp_path / "ir")]
    passes = pleat.transform.Sequential([transform.Simplify(), transform.SkipAssert()])
    with pleat.transform.PassContext(instruments=given):
        passes(Two)
        assert [line.split(":")[0] for line in times.render().splitlines()] == \
            ["sequential", "  tir.Simplify", "  tir.SkipAssert"]
    assert counts.names == ["sequential", "tir.Simplify", "tir.SkipAssert"] and times.render() == ""
    assert capsys.readouterr().out.count("After Running Pass: ") == 3
    files = sorted(path.name for path in (tmp_path / "ir").iterdir())
    assert files == ["000_tir_Simplify.py", "001_tir_SkipAssert.py", "002_sequential.py"]
    assert structural_equal(pleat.script.from_source((tmp_path / "ir" / files[1]).read_text()),
                            transform.SkipAssert()(transform.Simplify()(Two)))
    shown_ones = instrument.PassPrintingInstrument(["tir.SkipAssert"], ["Simplify"])
    with pleat.transform.PassContext(instruments=[shown_ones]):
        passes(Two)
    assert capsys.readouterr().out.count("Print IR") == 2
    pleat.transform.PrintIR("here")(Two)
    assert capsys.readouterr().out.startswith("PrintIR(here):\n")


def test_faults_of_passes_and_instruments():
    with pytest.raises(TypeError, match="an instrument has any of the methods enter_pass_ctx, .*, not 3"):
        pleat.transform.PassContext(instruments=[3])

    @instrument.pass_instrument
    class Fails:
        def enter_pass_ctx(self):
            raise ValueError("at the beginning")
    outside = pleat.transform.PassContext.current()
    with pytest.raises(ValueError, match="at the beginning"):
        with pleat.transform.PassContext(instruments=[Fails()]):
            pass
    assert pleat.transform.PassContext.current() is outside
    with pytest.raises(TypeError, match="nothing gave None, expected an IRModule"):
        pleat.transform.module_pass(lambda module, context: None, opt_level=0, name="nothing")(Two)
    with pytest.raises(TypeError, match="a pass gave 3 for .*, expected a PrimFunc"):
        pleat.transform.prim_func_pass(lambda one, module, context: 3, opt_level=0, name="three")(Two)


def test_functions_of_expressions():
    x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    assert tir.call_llvm_pure_intrin("float32", "llvm.sqrt", x).args[0].value == "llvm.sqrt"
    assert tir.logaddexp(x, y).dtype == "float32" and isinstance(tir.SizeVar("n", "int32"), tir.Var)
    assert tir.get_active_lane_mask("boolx4", tir.Var("i", "int32"), 9).dtype == "boolx4"
    assert tir.sum is pleat.te.sum and tir.comm_reducer is pleat.te.comm_reducer
