# SPDX-License-Identifier: Apache-2.0
"""pleat.tir.Schedule: steps with TVM's names, their results, refusals at the Python line, copies, and
programs that compute the same after every step."""
import inspect
import json
import pathlib
import re
import subprocess

import numpy as np
import pytest
from built import BUILD, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import tir  # noqa: E402
from pleat.script import tir as T  # noqa: E402
from pleat.tir.schedule import ScheduleError  # noqa: E402

M, N, K = 13, 30, 7


@T.prim_func
def matmul(A: T.Buffer((M, K), "float32"), B: T.Buffer((K, N), "float32"),
           C: T.Buffer((M, N), "float32")):
    product = T.alloc_buffer((M, N), "float32")
    for i, j, k in T.grid(M, N, K):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                product[vi, vj] = T.float32(0)
            product[vi, vj] = product[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(M, N):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(product[vi, vj], T.float32(0))


def check(schedule):
    """The program of the schedule computes what the original one does."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-4, 4, s).astype("float32") for s in ((M, K), (K, N)))
    c = np.full((M, N), 99, "float32")
    pleat.build(schedule.mod, cache=False)(a, b, c)
    assert np.array_equal(c, np.maximum(a @ b, 0))


def test_steps_and_their_results():
    sch = tir.Schedule(matmul)
    block = sch.get_block("product")
    i, j, k = sch.get_loops(block)
    assert (block.name, i.name, j.name, k.name) == ("product", "i", "j", "k")
    outer, inner = sch.split(j, factors=[None, 8])
    sch.reorder(outer, i, k, inner)
    check(sch)
    sch.vectorize(inner)
    init = sch.decompose_reduction(block, k)
    assert init.name == "product_init"
    consumer, = sch.get_consumers(block)
    assert consumer.name == "relu"
    sch.reverse_compute_at(consumer, outer)
    fused = sch.fuse(*sch.get_loops("relu")[1:])
    sch.annotate(fused, "note", 3)
    sch.parallel(outer)
    check(sch)
    assert "T.vectorized(8)" in sch.func.script() and sch.func.script() in sch.mod.script()


def test_bindings_have_the_form_of_tvm():
    sch = tir.Schedule(matmul)
    i, j, k = sch.get_loops("product")
    outer, inner = sch.split(i, factors=[None, 6])
    sch.split(outer, factors=[3, 1])
    assert "i_0_0 * 6 + i_0_1 * 6 + i_1)" in sch.mod.script()
    sch.fuse(j, k)
    check(sch)
    sch = tir.Schedule(matmul)
    sch.fuse(*sch.get_loops("product"))
    assert "i_j_k_fused // 210)" in sch.mod.script() and "i_j_k_fused % 210 // 7)" in sch.mod.script()
    check(sch)


def test_layouts():
    sch = tir.Schedule(pleat.IRModule({"main": matmul, "other": matmul}))
    sch.transform_layout("product", ("write", 0), lambda i, j: [j // 4, i, j % 4])
    sch.transform_block_layout("relu", lambda i, j: [j, i])
    check(tir.Schedule(sch.mod["main"]))
    assert "(8, 13, 4)" in sch.mod["main"].script() and "(8, 13, 4)" not in sch.mod["other"].script()
    sch.transform_layout("product", ("read", 0), tir.IndexMap.from_func(lambda i, k: [k, i]))
    sch.set_axis_separator("product", ("read", 1), [1])
    assert 'A: T.Buffer((7, 13), "float32")' in sch.func.script()
    # The buffer by its node, and by its number as in TVM 0.9.
    others = [tir.Schedule(matmul) for _ in range(4)]
    others[0].transform_layout("product", ("read", 0), lambda i, k: [k, i])
    others[1].transform_layout("product", others[1].get(others[1].get_block("product")).reads[0].buffer,
                               lambda i, k: [k, i])
    others[2].transform_layout("product", 0, "read", lambda i, k: [k, i])
    others[3].transform_layout("product", buffer_index=0, buffer_index_type="read", index_map=lambda i, k: [k, i])
    for sch in others:
        product = sch.get_block("product")
        sch.set_axis_separator(product, *([0, "read"] if sch is others[2] else [("read", 0)]), [1])
        sch.reindex(product, *([1, "read"] if sch is others[2] else [("read", 1)]))
        sch.cache_read(product, 0 if sch is others[0] else sch.get(product).reads[0].buffer, "global")
        assert sch.mod.script() == others[0].mod.script()
    with pytest.raises(ScheduleError, match="block 'relu' neither reads nor writes 'A_global'"):
        sch.transform_layout("relu", sch.get(product).reads[0].buffer, lambda i, j: [j, i])


def test_refusals_are_at_the_python_line():
    sch = tir.Schedule(matmul)
    before = sch.mod.script()
    line = pathlib.Path(__file__).read_text().splitlines().index(
        '        sch.vectorize(sch.get_loops("product")[2])') + 1
    with pytest.raises(ScheduleError, match="vectorize") as error:
        sch.vectorize(sch.get_loops("product")[2])
    message = error.value.messages[0]
    assert (pathlib.Path(message.file).name, message.line) == ("test_tir_schedule.py", line)
    assert sch.mod.script() == before
    with pytest.raises(ScheduleError, match="factors"):
        sch.split(sch.get_loops("product")[0])
    with pytest.raises(ScheduleError, match="not injective|share|injective"):
        sch.transform_layout("product", ("write", 0), lambda i, j: [i % 8, j])
    for unknown in (sch.get_block, sch.get_loops, sch.compute_inline):
        with pytest.raises(ScheduleError, match="test_tir_schedule.py.*no block 'C'"):
            unknown("C")
    with pytest.raises(AttributeError):
        sch.no_such_step()
    two = tir.Schedule(pleat.IRModule({"a": matmul, "b": matmul}), seed=3)
    for unknown in (lambda: two.get_sblock("product"), lambda: two.func, lambda: two.trace.by_axes()):
        with pytest.raises(ValueError, match="which function to be working on: call work_on with one of a, b"):
            unknown()
    assert two.func_working_on is None and len(two.mod) == 2
    block = two.get_sblock("product", func_name="b")
    two.parallel(two.get_loops(block)[0])
    assert two.func_working_on is None and "T.parallel" in two.mod["b"].script()
    two.work_on("a")
    assert "T.parallel" not in two.func.script() and two.copy().func_working_on == "a"


def test_copies_are_independent():
    sch = tir.Schedule(matmul)
    i, j, _ = sch.get_loops(sch.get_block("product"))
    other = sch.copy()
    sch.reorder(j, i)
    assert other.mod.script() != sch.mod.script()
    other.fuse(i, j)
    check(sch)
    check(other)
    assert "sch.fuse(l1, l2, " in str(other.trace) and "sch.fuse" not in str(sch.trace)


def test_traces_are_replayed(tmp_path):
    sch = tir.Schedule(matmul)
    i, _, _ = sch.get_loops(sch.get_block("product"))
    sch.split(i, factors=[None, 4])
    sch.cache_read("product", 1, "local")
    (tmp_path / "kernel.py").write_text(matmul.script())
    for text in (str(sch.trace), sch.trace.by_maps()):
        (tmp_path / "steps.py").write_text(text)
        done = subprocess.run([BUILD / "pleat", "opt", tmp_path / "kernel.py", "--schedule",
                               tmp_path / "steps.py"], capture_output=True, text=True, check=True)
        pleat.ir.assert_structural_equal(pleat.script.from_source(done.stdout), sch.func)
    names, again = {"s_tir": pleat.s_tir}, tir.Schedule(matmul)
    exec(str(sch.trace), names)
    names["apply_trace"](again)
    pleat.ir.assert_structural_equal(again.func, sch.func)
    assert again.trace == sch.trace
    of_other = str(sch.trace).replace('func_name="main"', 'func_name="other"')
    (tmp_path / "steps.py").write_text(of_other)
    done = subprocess.run([BUILD / "pleat", "opt", tmp_path / "kernel.py", "--schedule",
                           tmp_path / "steps.py"], capture_output=True, text=True)
    assert done.returncode == 1 and "the block is of function 'other', and the schedule of 'matmul'" in done.stderr


def test_layouts_axis_by_axis(capsys):
    sch = tir.Schedule(matmul)
    kept = tir.Schedule(matmul)
    kept.transform_layout("product", ("write", 0), lambda i, j: [j // 8, i, j % 8])
    assert "rewrite_loops" not in str(kept.trace)
    assert 'sch.reorder_axes(b0, "product", [1, 0, 2], rewrite_loops=False)' in kept.trace.by_axes()
    assert len(kept.get_loops("product")) == 3
    check(kept)
    sch.transform_layout("product", ("write", 0), lambda i, j: [j // 8, i, j % 8], rewrite_loops=True)
    assert len(sch.get_loops("product")) == 4
    by_axes = sch.trace.by_axes()
    assert "transform_layout" not in by_axes and "sch.split_axis(b0, " in by_axes
    sch.trace.show()
    assert capsys.readouterr().out == f"{sch.trace}\n"
    other = tir.Schedule(matmul)
    other.split_axis("product", ("write", 0), 1, [None, 8])
    other.reorder_axes("product", ("write", 0), [1, 0, 2])
    check(other)
    pleat.ir.assert_structural_equal(sch.func, other.func)
    assert "transform_layout" in other.trace.by_maps()
    other.fuse_axes("product", ("write", 0), [0, 1])
    other.pad_axis("product", ("write", 0), 0, 64, pad_value=0)
    other.swizzle_axes("product", ("write", 0), 1, 0)
    other.separate_axis("product", ("write", 0), 1)
    check(other)
    with pytest.raises(ScheduleError, match="test_tir_schedule.py.*there is no axis 5"):
        other.separate_axis("product", ("write", 0), 5)


@T.prim_func
def free_product(A: T.Buffer((5, "k"), "float32"), B: T.Buffer(("n", "k"), "float32"),
                 C: T.Buffer((5, "n"), "float32")):
    n, k = T.int32(), T.int32()
    for i, j, r in T.grid(5, n, k):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vj, vr]


def test_sums_of_free_sizes_are_padded():
    sch = tir.Schedule(free_product)
    sch.pad_einsum("C", [1, 8, 3])
    assert "B_pad = T.alloc_buffer(((n + 7) // 8 * 8, (k + 2) // 3 * 3)" in sch.func.script()
    sch.split(sch.get_loops("C")[1], [None, 8])  # a multiple of 8 is not rounded up
    assert "for i, j_0, j_1, r in T.grid(5, (n + 7) // 8, 8, (k + 2) // 3 * 3):" in sch.func.script()
    run = pleat.build(sch.func, cache=False)
    rng = np.random.default_rng(5)
    for n, k in ((1, 1), (13, 7), (8, 3), (17, 31)):
        a, b = rng.standard_normal((5, k), "float32"), rng.standard_normal((n, k), "float32")
        c = np.full((5, n), 77, "float32")
        run(a, b, c)
        np.testing.assert_allclose(c, a @ b.T, rtol=1e-4, atol=1e-5)


def test_maps_name_the_sizes_of_the_program():
    sch = tir.Schedule(free_product)
    sch.transform_layout("C", ("write", 0), "i, j -> i * n + j")
    assert "(n * 5,)" in sch.func.script()
    for text in (f"{sch.trace}\napply_trace(sch)", sch.trace.by_axes(), sch.trace.by_maps()):
        again = tir.Schedule(free_product)  # Python has no variable n
        exec(text, {"sch": again, "s_tir": tir})
        pleat.ir.assert_structural_equal(again.func, sch.func)
    run = pleat.build(sch.func, cache=False)
    rng = np.random.default_rng(5)
    for n, k in ((1, 1), (13, 7)):
        a, b = rng.standard_normal((5, k), "float32"), rng.standard_normal((n, k), "float32")
        c = np.full(5 * n, 77, "float32")
        run(a, b, c)
        np.testing.assert_allclose(c.reshape(5, n), a @ b.T, rtol=1e-4, atol=1e-5)
    with pytest.raises(ScheduleError, match="not proved injective|not injective"):
        tir.Schedule(free_product).transform_layout("C", ("write", 0), "i, j -> i * k + j")
    with pytest.raises(ScheduleError, match="unknown axis `m`"):
        tir.Schedule(free_product).transform_layout("C", ("write", 0), "i, j -> i * m + j")


def test_loops_over_products_of_sizes():
    """A reduction whose result is stored at a product of a size and an index runs in one loop over its elements."""
    sch = tir.Schedule(free_product)
    sch.transform_layout("C", ("write", 0), "i, j -> i * n + j")
    sch.transform_block_layout("C", "i, j, k -> i * n + j, k")
    assert len(sch.get_loops("C")) == 2
    run, rng = pleat.build(sch.func, cache=False), np.random.default_rng(5)
    for n, k in ((1, 1), (13, 7)):
        a, b = rng.standard_normal((5, k), "float32"), rng.standard_normal((n, k), "float32")
        c = np.full(5 * n, 77, "float32")
        run(a, b, c)
        np.testing.assert_allclose(c.reshape(5, n), a @ b.T, rtol=1e-4, atol=1e-5)


def test_new_loops_are_as_wide_as_the_old_ones():
    program = pleat.script.from_source("""
from pleat.script import tir as T
@T.prim_func
def copy(A: T.Buffer((T.int64(12), T.int64(6)), "float32"), B: T.Buffer((T.int64(12), T.int64(6)), "float32")):
    for i, j in T.grid(T.int64(12), T.int64(6)):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
""")
    sch = tir.Schedule(program)
    sch.transform_block_layout("B", lambda i, j: [j, i // 4, i % 4])
    assert [sch.get(loop).loop_var.dtype for loop in sch.get_loops("B")] == ["int64"] * 3


def test_instructions_of_traces():
    Trace, Instruction, Kind = tir.schedule.Trace, tir.schedule.Instruction, tir.schedule.InstructionKind
    sch = tir.Schedule(matmul, seed=1)
    i, j, _ = sch.get_loops(sch.get_block("product"))
    sch.split(j, factors=sch.sample_perfect_tile(j, n=2, decision=[5, 6]))
    sch.parallel(i)
    trace = sch.trace
    assert [inst.kind.name for inst in trace.insts] == ["GetSBlock", "GetLoops", "SamplePerfectTile", "Split", "Parallel"]
    drawn, split = trace.insts[2:4]
    assert drawn.kind is Kind.get("SamplePerfectTile") and drawn.kind.is_pure and not split.kind.is_pure
    assert trace.decisions == {drawn: [5, 6]} and trace.get_decision(split) is None
    assert drawn.inputs == [j] and drawn.inputs[0].same_as(j) and drawn.attrs == [2, 16]
    assert split.inputs == [j, *drawn.outputs] and split.attrs == [True, False] and len(split.outputs) == 2
    assert sch.trace.insts[3].same_as(split)
    assert Trace(trace.insts, trace.decisions) == trace and "parallel" not in str(Trace(trace.insts[:-1]))

    def loops(changed, **options):
        again = tir.Schedule(matmul)
        changed.apply_to_schedule(again, **options)
        return [sch.get(loop).extent for sch, loop in ((again, x) for x in again.get_loops("product"))]
    assert loops(trace)[1:3] == [5, 6]
    assert loops(trace.with_decision(drawn, [10, 3]))[1:3] == [10, 3]
    assert loops(trace, decision_provider=lambda inst, inputs, attrs, drawn: drawn and drawn[::-1])[1:3] == [6, 5]
    made = Trace(trace.insts[:2])
    a, b = tir.schedule.LoopRV(), tir.schedule.LoopRV()
    made.append(Instruction(Kind.get("Split"), [j, None, T.int32(4)], [T.bool(True), False], [a, b]))
    made.append(Instruction(Kind.get("vectorize"), [b], [], []))
    assert made.as_python()[2:] == [
        "l4, l5 = sch.split(loop=l2, factors=[None, 4], preserve_unit_iters=True, disable_predication=False)",
        "sch.vectorize(loop=l5)"]
    assert loops(made)[1:3] == [8, 4]
    assert str(made.pop()) == "sch.vectorize(loop=_)" and len(made.insts) == 3 and Trace([]).pop() is None
    assert str(Trace([])).endswith("\n  pass") and made != trace
    with pytest.raises(ValueError, match="no instruction of this trace"):
        trace.with_decision(made.insts[2], [1, 1])
    with pytest.raises(ValueError, match="Split needs 'loop'"):
        Instruction(Kind.get("Split"), [], [], [])
    with pytest.raises(ValueError, match="Parallel takes fewer inputs or attributes: 5 is left over"):
        Instruction(Kind.get("Parallel"), [j], [5], [])
    with pytest.raises(IndexError, match="no instruction before returned LoopRV"):
        Trace(trace.insts[2:]).as_python()
    with pytest.raises(IndexError, match="no instruction before returned LoopRV"):
        loops(Trace(trace.insts[2:]))
    with pytest.raises(ValueError, match="'Fold' is no kind"):
        Kind.get("Fold")


def test_traces_as_json():
    sch = tir.Schedule(matmul, seed=1)
    block = sch.get_block("product")
    i, j, _ = sch.get_loops(block)
    sch.sample_categorical(candidates=[2, 4], probs=[0.5, 0.5])  # no step uses it
    sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
    sch.annotate(j, "a 'key'", ["x", 1, 0.5])
    sch.enter_postproc()
    sch.transform_layout(block, ("write", 0), lambda i, j: [j // 8, i, j % 8])
    steps = sch.trace.as_json()
    assert json.loads(json.dumps(steps)) == steps
    assert steps[0][0] == ["GetSBlock", [], ["product", "main"], ["b0"]]
    assert steps[0][3:6] == [["SamplePerfectTile", ["l1"], [2, 16], ["v5", "v6"]],
                             ["Split", ["l1", "v5", "v6"], [True, False], ["l7", "l8"]],
                             ["Annotate", ["l2", ["\"x\"", 1, 0.5]], ["a 'key'"], []]]
    assert steps[0][-1] == ["TransformLayout", ["b0", '"i, j -> j // 8, i, j % 8"'], [0, 1, None, False], []]
    assert [number for number, _ in steps[1]] == [2, 3]
    again, simple, early = tir.Schedule(matmul), tir.Schedule(matmul), tir.Schedule(matmul)
    tir.schedule.Trace.apply_json_to_schedule(steps, again)
    assert again.trace == sch.trace
    pleat.ir.assert_structural_equal(again.func, sch.func)
    trace = sch.trace.simplified()
    assert "sample_categorical" not in str(trace) and "sample_perfect_tile" in str(trace)
    trace.apply_to_schedule(simple)
    pleat.ir.assert_structural_equal(simple.copy().func, sch.func)
    sch.trace.apply_to_schedule(early, remove_postproc=True)
    assert "split" in str(early.trace) and "transform_layout" not in str(early.trace)
    for wrong, message in (([[]], "a list of instructions and one of decisions"), ([["x"], []], "an instruction is"),
                           ([[["Parallel", ["l9"], [], []]], []], "no instruction before returned 'l9'")):
        with pytest.raises(ValueError, match=message):
            tir.schedule.Trace.apply_json_to_schedule(wrong, tir.Schedule(matmul))
    with pytest.raises(ValueError, match="not of a schedule"):
        trace.by_axes()


@pytest.mark.parametrize("index_map, pad_value", [
    (lambda i, j: [j // 8, pleat.te.AXIS_SEPARATOR, i, j % 8], 0.0), (lambda i, j: [i, j ^ (i % 2)], None),
    (lambda i, j: [j // 8, i, j % 8], lambda a, b, c: tir.Select(a == 3, 1, 2)),
    (lambda i, j: [j // 8, i, j % 8], lambda *a: a[0] * -2 + a[1]), (lambda *ij: [*ij[::-1]], float("-inf")),
    (tir.IndexMap.from_func(lambda i, j: [tir.min(i, 12), j]), None), (lambda i, j: [j // 8, i, j % 8], float("nan"))])
def test_maps_in_traces(index_map, pad_value):
    """A trace is read back from its JSON, and run as Python, whatever its maps are."""
    sch = tir.Schedule(matmul)
    sch.transform_layout("product", ("write", 0), index_map, pad_value=pad_value)
    again, run, names = tir.Schedule(matmul), tir.Schedule(matmul), {}
    tir.schedule.Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), again)
    exec(str(sch.trace), {"s_tir": pleat.s_tir}, names)
    names["apply_trace"](run)
    assert str(again.trace) == str(run.trace) == str(sch.trace)
    pleat.ir.assert_structural_equal(again.func, sch.func)
    pleat.ir.assert_structural_equal(run.func, sch.func)


def test_copies_have_the_same_choices():
    sch = tir.Schedule(matmul, seed=5)
    for _ in range(20):
        sch.sample_categorical(candidates=[2, 4, 8], probs=[0.5, 0.25, 0.25])
    assert sch.copy().trace == sch.trace


def test_several_functions():
    module = pleat.IRModule({"main": matmul, "other": matmul})
    sch = tir.Schedule(module)
    i, j, _ = sch.get_loops("product")
    sch.work_on("other")
    assert sch.func_working_on == "other"
    _, column, _ = sch.get_loops("product")
    sch.parallel(sch.split(column, factors=[None, 4])[0])
    sch.work_on("main")
    sch.vectorize(sch.split(j, factors=[None, 4])[1])
    for mod in (sch.mod, sch.copy().mod):
        assert "T.parallel" in mod["other"].script() and "T.parallel" not in mod["main"].script()
        assert "T.vectorized" in mod["main"].script()
    with pytest.raises(KeyError, match="no function 'third'"):
        sch.work_on("third")
    again = tir.Schedule(module)
    again.work_on("other")
    sch.trace.apply_to_schedule(again)
    pleat.ir.assert_structural_equal(again.mod, sch.mod)
    assert again.trace == sch.trace and again.func_working_on == "other"
    block = again.get_sblock("product", func_name="main")  # steps on it need no work_on
    again.set_scope(block, 0, "global")
    assert again.get(block).name_hint == "product" and again.func_working_on == "other"
    alone = tir.Schedule(matmul)  # the module's only function is "main" too
    alone.work_on("main")
    assert alone.get(alone.get_block("product")).name_hint == "product"


def test_instructions_of_references():
    """A trace names the references of instructions that were made without a schedule."""
    block, i, j, inner = tir.schedule.BlockRV(), *(tir.schedule.LoopRV() for _ in range(3))
    kind = tir.schedule.InstructionKind.get
    insts = [tir.schedule.Instruction(kind("GetSBlock"), [], ["product", "main"], [block]),
             tir.schedule.Instruction(kind("GetLoops"), [block], [], [i, j, inner]),
             tir.schedule.Instruction(kind("Vectorize"), [j], [], [])]
    assert insts[1].outputs[0].same_as(i) and str(insts[2]) == "sch.vectorize(loop=_)"
    trace = tir.schedule.Trace(insts)
    assert trace.as_python()[1:] == ["l1, l2, l3 = sch.get_loops(block=b0)", "sch.vectorize(loop=l2)"]
    assert all(a.same_as(b) for a, b in zip(trace.insts, insts))
    with pytest.raises(IndexError, match="made for the instructions"):
        tir.Schedule(matmul).get_loops(block)


def test_decisions_by_equal_instructions():
    """Each trace of a schedule has instructions of its own, by which the decisions of another are found."""
    sch = tir.Schedule(matmul)
    i, _, _ = sch.get_loops("product")
    sch.sample_perfect_tile(i, n=2)
    assert sch.trace.decisions[sch.trace.insts[-1]] == sch.trace.get_decision(sch.trace.insts[-1])
    assert sch.trace.insts[0] != sch.trace.insts[-1]


def test_removed_references_and_messages():
    sch = tir.Schedule(matmul)
    i, j, _ = sch.get_loops("product")
    sch.remove_rv(i)
    with pytest.raises(IndexError, match="removed this reference"):
        sch.split(i, factors=[None, 4])
    sch.split(j, factors=[None, 4])
    texts = {}
    for level in ("detail", "fast", "none"):
        sch = tir.Schedule(matmul, error_render_level=level, debug_mask="all")
        with pytest.raises(ScheduleError) as error:
            sch.compute_inline("product")
        texts[level] = str(error.value)
    assert texts["detail"].startswith(texts["fast"]) and texts["detail"] != texts["fast"]
    assert "compute_inline" in texts["fast"] and "compute_inline" not in texts["none"]
    with pytest.raises(ValueError, match="'detail', 'fast' or 'none'"):
        tir.Schedule(matmul, error_render_level="loud")


def test_a_refusal_shows_the_call_in_the_users_file():
    sch = tir.Schedule(matmul)
    with pytest.raises(ScheduleError) as error:
        (sch.transform_layout("product", ("write", 0), lambda i, j: [i % 8, j]))
    line = test_a_refusal_shows_the_call_in_the_users_file.__code__.co_firstlineno + 3
    call = 'transform_layout("product", ("write", 0), lambda i, j: [i % 8, j])'
    place, source, caret, witness = str(error.value).splitlines()[:4]
    assert place.startswith(f"{__file__}:{line}:14: error: transform_layout: index map is not injective")
    assert source == f"{line:5} |         (sch.{call})" and caret == "      |              " + "^" * len(call)
    assert "would both be stored" in witness and error.value.messages[0].column == 14


@pytest.mark.parametrize("pad_value", [
    3, lambda *indices: 3, lambda i, j, k: [3], T.int8(3), lambda i, j, k: (T.int32(3),),
    tir.IndexMap.from_func(lambda i, j, k: [3]), T.float32(3), tir.const(3, "float32"), tir.FloatImm("float32", 3),
    lambda i, j, k: tir.IntImm("int32", 3)],
    ids=["number", "any indices", "list", "typed", "tuple", "map", "float", "constant", "node", "node of indices"])
def test_constant_padding(pad_value):
    sch = tir.Schedule(matmul)
    sch.transform_layout("product", ("write", 0), lambda i, j: [i, j // 8, j % 8 + T.int64(0)], pad_value)
    assert re.search(r"pad_value=(3|3\.0)\D", str(sch.trace))
    check(sch)


@T.prim_func
def read_without_points(X: T.Buffer((0,), "float32"), Y: T.Buffer((0,), "float32")):
    for i in range(0):
        with T.block("b"):
            v = T.axis.spatial(0, i)
            Y[v] = X[0]


@T.prim_func
def written_by_empty_loop(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 0):
        with T.block("b"):
            v, u = T.axis.remap("SS", [i, j])
            Y[v] = X[v]


@T.prim_func
def written_by_free_loop(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32"), m: T.int32):
    for i, j in T.grid(4, m):
        with T.block("b"):
            v, u = T.axis.remap("SS", [i, j])
            Y[v] = X[v]


@pytest.mark.parametrize("program, step, message", [
    (read_without_points, lambda s: s.reindex_cache_read("b", 0, "local", lambda v: []), "stay in its extent"),
    (written_by_empty_loop, lambda s: s.reindex_cache_write("b", 0, "local", lambda v, u: [v]), "in all iterations"),
    (written_by_empty_loop, lambda s: s.reindex("b", ("write", 0)), "in all iterations"),
    (written_by_empty_loop, lambda s: s.cache_write("b", 0, "local"), "loop 'j' has no iterations"),
    (written_by_free_loop, lambda s: s.reindex_cache_write("b", 0, "local", lambda v, u: [v]), "in all iterations"),
    (written_by_free_loop, lambda s: s.reindex("b", ("write", 0)), "in all iterations"),
    (written_by_free_loop, lambda s: s.cache_write("b", 0, "local"), "not proved to have iterations")])
def test_copies_of_what_no_iteration_writes(program, step, message):
    """A copy that runs where the block does not would read beyond a buffer, or store what nothing has written."""
    with pytest.raises(tir.ScheduleError, match=message):
        step(tir.Schedule(program))


def test_copies_of_what_a_reduction_without_elements_writes():
    @T.prim_func
    def sums(X: T.Buffer((4, 0), "float32"), Y: T.Buffer((4,), "float32")):
        for i, j in T.grid(4, 0):
            with T.block("b"):
                v, u = T.axis.remap("SR", [i, j])
                with T.init():
                    Y[v] = 0
                Y[v] += X[v, u]
    sch = tir.Schedule(sums)
    sch.reindex_cache_write("b", 0, "local", lambda v, u: [v])
    for module in (sums, sch.mod):
        y = np.full(4, 7, "float32")
        pleat.build(module, cache=False)(np.zeros((4, 0), "float32"), y)
        assert not y.any()


@pytest.mark.parametrize("value", [tir.Var("q", "float32"), tir.Var("q", "float32") + 1])
def test_padding_has_a_value_where_it_is_written(value):
    sch = tir.Schedule(matmul)
    with pytest.raises(tir.ScheduleError, match=r"pad_value is a number, an index map, .*; 'q.*' is none"):
        sch.transform_layout("product", ("write", 0), lambda i, j: [i, j // 8, j % 8], pad_value=value)
    with pytest.raises(tir.ScheduleError, match=r"pad_value is a number"):
        sch.pad_axis("product", ("write", 0), 0, 64, pad_value=value)


def test_vectors_take_no_axis_separator():
    sch = tir.Schedule(matmul)
    sch.fuse_axes("relu", ("write", 0), [0, 1])
    with pytest.raises(tir.ScheduleError, match="'C' has too few axes for an axis separator"):
        sch.set_axis_separator("relu", ("write", 0), [1])


@pytest.mark.parametrize("undefined", [lambda i, j, k: T.undef(dtype="float32"), tir.undef(), lambda *_: tir.undef()])
def test_undefined_padding(undefined):
    sch = tir.Schedule(matmul)
    sch.transform_layout("product", ("write", 0), lambda i, j: [i, j // 8, j % 8], pad_value=undefined)
    assert "pad_value='unknown'" in str(sch.trace) or 'pad_value="unknown"' in str(sch.trace)
    check(sch)


def test_maps_of_any_number_of_indices():
    sch = tir.Schedule(matmul)
    sch.transform_layout("product", ("write", 0), lambda *rest, j: [j // 8, *rest, j % 8], pad_value=lambda *i: i[0])
    sch.transform_block_layout("relu", lambda *indices: indices[::-1])
    sch.transform_layout("relu", "C", lambda *indices: indices[::-1])
    assert "product = T.alloc_buffer((4, 13, 8)" in sch.func.script()
    assert "C: T.Buffer((30, 13)" in sch.func.script() and sch.get(sch.get_loops("relu")[0]).extent == 30


def test_maps_of_sizes():
    for k in (free_product.buffer_map[free_product.params[0]].shape[1],):
        for index_map in (lambda i, j: i * k + j, lambda i, j: [(k * i + j)]):
            sch = tir.Schedule(free_product)
            sch.transform_layout("C", ("read", 0), index_map)
            assert "A = T.match_buffer(p_A, (k * 5,)" in sch.func.script()
    with pytest.raises(TypeError, match="is no index expression: an integer, a size"):
        tir.Schedule(free_product).transform_layout("C", "C", lambda i, j: [i, tir.Cast("int32", k)])


@T.prim_func
def scaled_by_parts(a: T.handle, b: T.handle, n: T.int64, p: T.int64):
    A = T.match_buffer(a, (n, 6))
    C = T.match_buffer(b, (n, 6))
    assert p > 0, "p"
    B = T.alloc_buffer((n, 6))
    for i, j in T.grid(n, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(n, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


@pytest.mark.parametrize("pad_value", [None, 0.0])
@pytest.mark.parametrize("assumed", [False, True])
def test_maps_of_numbers_that_are_passed(pad_value, assumed):
    """A map may name an integer parameter that the function states to be positive."""
    program, text = scaled_by_parts, scaled_by_parts.script()
    if assumed:
        text = text.replace('assert p > T.int64(0), "p"', "T.assume(p > T.int64(0))")
        program = pleat.script.from_source(text)
    part = program.params[3]
    sch = tir.Schedule(program)
    sch.transform_layout("B", ("write", 0), lambda i, j: [i // part, j, i % part], pad_value=pad_value)
    run, a, c = pleat.build(sch.mod), np.arange(78, dtype="float32").reshape(13, 6), np.zeros((13, 6), "float32")
    run(a, c, 13, 5)
    np.testing.assert_array_equal(c, a * 2 + 1)


@pytest.mark.parametrize("statement", ["pass", 'assert p >= T.int64(0), "p"', 'assert n > p, "p"'])
def test_maps_of_numbers_that_may_be_zero(statement):
    text = scaled_by_parts.script().replace('assert p > T.int64(0), "p"', statement)
    with pytest.raises(ScheduleError, match="`p` is not known to be at least 1: begin the function with `assert p > 0"):
        tir.Schedule(pleat.script.from_source(text)).transform_layout("B", ("write", 0), "i, j -> i // p, j, i % p")


@T.prim_func
def rows_of_any_number(a: T.handle, d: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 6), "float32")
    D = T.match_buffer(d, (n, 6), "float32")
    B = T.alloc_buffer((n, 6))
    for i, j in T.grid(n, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + T.float32(1)


@pytest.mark.parametrize("layout", [lambda i, j: [i // 4, j, i % 4], lambda i, j: [j // 3, i, j % 3],
                                    lambda i, j: [j, i]], ids=["rows", "columns", "transposed"])
@pytest.mark.parametrize("number", [0, 1, -1])
def test_consumers_move_into_symbolic_layouts(layout, number):
    sch = tir.Schedule(rows_of_any_number)
    sch.transform_layout("B", "B", layout, rewrite_loops=True)
    sch.reverse_compute_at("D", sch.get_loops("B")[number])
    run = pleat.build(sch.mod, cache=False)
    for n in (1, 5, 8):
        a, d = np.arange(n * 6, dtype="float32").reshape(n, 6), np.zeros((n, 6), "float32")
        run(a, d)
        assert np.array_equal(d, a * 2 + 1)


def test_shapes_of_parameters():
    assert [[int(n) for n in p.shape] for p in matmul.params] == [[M, K], [K, N], [M, N]]
    assert [p.dtype for p in (*matmul.params, scaled_by_parts.params[3])] == ["float32"] * 3 + ["int64"]
    assert matmul.params[0].ty.shape is matmul.params[0].shape and matmul.params[0].fields["dtype"] == "handle"
    sch = tir.Schedule(matmul)
    with pytest.raises(AttributeError, match="'i' stands for no buffer"):
        sch.get(sch.get_loops("product")[0]).loop_var.shape


def test_stated_elements():
    sch = tir.Schedule(matmul)
    sch.annotate_buffer_access("relu", 0, "read", lambda i, j: (i, (j, j + 1)))
    assert "T.reads(product[vi, vj])" in sch.func.script()
    names, again = {"s_tir": pleat.s_tir}, tir.Schedule(matmul)
    exec(str(sch.trace), names)  # has one list of all begins and ends
    names["apply_trace"](again)
    assert str(again.trace) == str(sch.trace) and again.mod.script() == sch.mod.script()


def test_nodes_of_references():
    sch = tir.Schedule(matmul, seed=2)
    block = sch.get_block("product")
    i, j, _ = sch.get_loops(block)
    outer, inner = sch.split(j, factors=[None, 4])
    sch.vectorize(sch.get_loops("relu")[1])
    before = sch.mod.script()
    assert sch.get(inner).extent.value == 4 and sch.get(block).name_hint == "product"
    assert sch.get(sch.get_loops("relu")[1]).kind == 2 and sch.get(i).kind == 0
    assert sch.get(outer).loop_var.name == outer.name
    assert sch.mod.script() == before and "annotate" not in str(sch.trace)
    assert "pleat.get" not in sch.get(block).annotations
    draw = dict(candidates=[3, 5], probs=[0.5, 0.5])
    assert sch.get(sch.sample_categorical(**draw)) in (3, 5)


def test_buffers_by_name():
    sch = tir.Schedule(matmul)
    block = sch.get_block("product")
    read = sch.get(block).reads[-1].buffer.name
    assert sch.get(sch.cache_read(block, read, "local")).reads[0].buffer.name == read
    with pytest.raises(tir.schedule.PleatError, match="the block reads no buffer 'nothing'"):
        sch.cache_read(block, "nothing", "local")


def test_aligned_rows():
    sch = tir.Schedule(matmul)
    i, _, _ = sch.get_loops("product")
    sch.storage_align("product", 0, axis=0, factor=32, offset=1)
    check(sch)
    sch.reverse_compute_at("relu", i)
    check(sch)
    assert "buffer_dim_align" in sch.func.script()


def test_tiles_of_a_loop_of_free_extent():
    """The first factor is what split finds."""
    @T.prim_func
    def fill(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 6), "float32")
        for i, j in T.grid(n, 6):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
    sch = tir.Schedule(fill)
    i, j = sch.get_loops("A")
    first, *others = sch.sample_perfect_tile(i, n=3)
    assert first is None and [int(factor) for factor in others] == [1, 1]
    assert int(sch.sample_perfect_tile(j, n=2, decision=[3, 2])[0]) == 3
    sch.split(i, factors=[first, *others])
    again = tir.Schedule(fill)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    pleat.ir.assert_structural_equal(again.func, sch.func)


def test_choices_are_drawn_by_seed():
    def steps(seed):
        sch = tir.Schedule(matmul, seed=seed)
        i, j, _ = sch.get_loops("product")
        lanes = sch.sample_categorical(candidates=[2, 4, 8], probs=[0.5, 0.25, 0.25])
        assert lanes in (2, 4, 8) and isinstance(lanes, int)
        _, inner = sch.split(j, factors=[None, lanes])
        sch.split(i, factors=sch.sample_perfect_tile(i, n=3))
        sch.reorder(sch.get_loops("product")[-1], inner)
        sch.enter_postproc()
        sch.compute_at("product", sch.sample_compute_location("product"))
        check(sch)
        return str(sch.trace)
    traces = [steps(seed) for seed in range(6)]
    assert traces == [steps(seed) for seed in range(6)] and len(set(traces)) > 1
    assert all("factors=[None, v4]" in trace and "decision=" in trace for trace in traces)
    assert tir.Schedule(matmul, seed=3).fork_seed() == tir.Schedule(matmul, seed=3).fork_seed()


def test_stated_ranges():
    sch = tir.Schedule(matmul)
    sch.annotate_buffer_access("relu", 0, "read", lambda i, j: ((i, i + 1), (0, N)))
    stated = matmul.script().replace("T.reads(product[vi, vj])\n", "T.reads(product[vi - 1:vi + 2, vj])\n")
    assert "product[vi - 1:vi - 1 + 3, vj]" in pleat.script.from_source(stated).script()
    assert f"T.reads(product[vi, 0:{N}])" in sch.func.script()
    with pytest.raises(ScheduleError, match="not proved to cover"):
        sch.annotate_buffer_access("relu", 0, "read", lambda i, j: ((i, i + 1), (1, N)))


def test_accesses_that_are_hidden():
    @T.prim_func
    def stated(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("C"):
                vi = T.axis.remap("S", [i])
                T.reads(A[vi], B[0:4], C[vi])
                T.writes(C[vi], B[vi])
                C[vi] = A[vi] + 1.0
    sch = tir.Schedule(stated)
    sch.unsafe_hide_buffer_access("C", "read", [1, 2])
    sch.unsafe_hide_buffer_access(block="C", buf_type="write", buf_index_array=[1])
    text = sch.func.script()
    assert "T.reads(A[vi])" in text and "T.writes(C[vi])" in text
    again = tir.Schedule(stated)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    assert again.func.script() == text
    for kind, numbers, message in (("read", [0], "block 'C' reads 'A'"), ("write", [0], "block 'C' writes 'C'"),
                                   ("read", [1], "no number 1"), ("both", [0], '"read" or "write"'),
                                   ("read", ["A"], "a list of their numbers")):
        with pytest.raises(ScheduleError, match=message):
            sch.unsafe_hide_buffer_access("C", kind, numbers)
    assert sch.func.script() == text


def test_names_of_results_that_the_trace_has_already():
    sch = tir.Schedule(matmul)
    names = [sch.get_block(name).name for name in ("product", "relu", "product")]
    assert names == ["product", "relu", "product"]


def test_all_steps_have_a_method():
    rows = (pathlib.Path(__file__).parents[2] / "src" / "schedule" / "steps.def").read_text()
    steps = [line.split("(")[1].split(",")[0] for line in rows.splitlines()
             if line.startswith("STEP(")]
    assert steps and all(callable(getattr(tir.Schedule, step)) for step in steps)
    assert list(tir.trace.signatures()) == steps
    split = tir.trace.signatures()["split"]
    assert split.result == "LOOPS" and split.parameters[2] == ("preserve_unit_iters", "ANY", True)


def test_queries_that_are_not_recorded_have_results():
    sch = tir.Schedule(matmul)
    _, _, k = sch.get_loops("product")
    partial = sch.rfactor(k, 0)
    assert [l.name for l in sch.get_loops(partial)] == ["i", "j", "k"]
    assert [l.name for l in sch.get_loops("product")] == ["ax0", "ax1", "k"]
    assert [l.name for l in sch.get_loops(partial)] == ["i", "j", "k"]
    assert sch.get_consumers(partial)[0].name == "product"


def test_accesses_before_and_after_each_step(capsys):
    @T.prim_func
    def f(A: T.Buffer((64, 32), "float32"), D: T.Buffer((32, 64), "float32")):
        for i, j in T.grid(64, 32):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vj, vi] = A[vi, vj] * T.float32(2)
    sch = tir.Schedule(f)
    loops = sch.get_loops("D")
    sch.reorder(*reversed(loops))
    numbers = {a["buffer"]: (a["loop"], a["stride"], a["lines"], a["width"])
               for a in sch.accesses()}
    assert numbers == {"D": ("i", 1, 4, 16), "A": ("i", 32, 64, 1)}
    assert [a["jump"] for a in sch.accesses()] == [None, [["A[0, 0]", 0], ["A[1, 0]", 32]]]
    sch.transform_layout("D", ("read", 0), lambda i, j: [i // 4, j, i % 4])
    sch.show(access=True)
    shown = capsys.readouterr().out
    assert "#   D: D[vj, vi] in j: stride 64, cache lines 32, vector width 1, " \
           "not contiguous: D[0, 0] at 0, D[1, 0] at 64\n" \
           "#      -> D[vj, vi] in i: stride 1, cache lines 4, vector width 16\n" in shown
    assert "-> A[vi // 4, vj, vi % 4] in i: stride -, cache lines 16, vector width 4, " \
           "not contiguous: A[0, 0, 3] at 3, A[1, 0, 0] at 128\n" in shown
    assert shown.count("D[vj, vi] in i") == 2
    sch.show()
    assert "#" not in capsys.readouterr().out


def test_what_tvm_means_by_absent_fields():
    """An alignment that is not stated is that of allocations, and an empty scope is global."""
    text = """@T.prim_func
def f(A: T.Buffer((8,), "float32"{}), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,){})
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
"""
    plain, stated, other = (pleat.script.from_source(text.format(*fields)) for fields in
                            (("", ""), (", align=64", ', scope=""'), (", align=128", "")))
    assert pleat.ir.structural_equal(plain, stated)
    assert not pleat.ir.structural_equal(plain, other)


@T.prim_func
def sums(A: T.Buffer((6, 10), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 10):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]


def test_main_is_the_only_function():
    sch = pleat.tir.Schedule(sums)
    assert sch.get_sblock("C", func_name="main").name == "C"
    assert "main" in sch.mod and "other" not in sch.mod


def test_factored_loop_is_the_first_variable():
    sch = pleat.tir.Schedule(sums)
    _, inner = sch.split(sch.get_loops("C")[1], factors=[None, 4])
    partial = sch.rfactor(inner, 0)
    for block in (partial, sch.get_sblock("C")):
        assert sch.get(block).iter_vars[0].var.name == f"v{inner.name}"


@T.prim_func
def rows_doubled(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 6), "float32")
    C = T.match_buffer(c, (n, 6), "float32")
    for i, j in T.grid(n, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2)


ROWS = rows_doubled.buffer_map[rows_doubled.params[0]].shape[0]


@pytest.mark.parametrize("step, text", [
    (lambda sch: sch.transform_block_layout("C", lambda i, j: [i * 6 + j]), "in range(n * 6)"),
    (lambda sch: sch.transform_block_layout("C", lambda i, j: [j * ROWS + i]), "C[vj % n, vj // n]"),
    (lambda sch: sch.transform_block_layout("C", lambda i, j: [i // 4, j, i % 4]), "T.grid((n + 3) // 4, 6, 4)"),
    (lambda sch: sch.reindex_cache_read("C", 0, "local", lambda i, j: [j * ROWS + i]), "T.alloc_buffer((n * 6,)"),
    (lambda sch: sch.reindex_cache_write("C", 0, "local", lambda i, j: [j, i]), "T.alloc_buffer((6, n)"),
], ids=["fused", "fused by size", "split", "read", "write"])
def test_maps_of_blocks_with_sizes(step, text):
    sch = tir.Schedule(rows_doubled)
    step(sch)
    assert text in sch.func.script()
    run = pleat.build(sch.mod, cache=False)
    for n in (1, 5, 8):
        a, c = np.arange(n * 6, dtype="float32").reshape(n, 6), np.zeros((n, 6), "float32")
        run(a, c)
        assert np.array_equal(c, a * 2)


def test_maps_of_blocks_with_sizes_that_are_refused():
    for step in (lambda sch: sch.transform_block_layout("C", lambda i, j: [i * 5 + j]),
                 lambda sch: sch.reindex_cache_read("C", 0, "local", lambda i, j: [j * 5 + i])):
        with pytest.raises(ScheduleError, match="no proved inverse|an index of its own"):
            step(tir.Schedule(rows_doubled))


def test_offsets_without_a_factor_are_any_number():
    text = '''
@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 2:vi * 2 + 2, 0:4])
            T.writes(B[vi * 2:vi * 2 + 2, 0:4])
            {declaration}
            for a, b in T.grid(2, 4):
                B[vi * 2 + a, b] = part[a, b]
'''
    stated = "start = T.int32(); part = T.match_buffer(A[vi * 2:vi * 2 + 2, 0:4], (2, 4), elem_offset=start{more})"
    free = "part = T.match_buffer(A[vi * 2:vi * 2 + 2, 0:4], (2, 4), offset_factor={factor})"

    def program(declaration):
        return pleat.script.from_source("from pleat.script import tir as T\n" + text.format(
            declaration=declaration.replace("; ", "\n            ")))
    pleat.ir.assert_structural_equal(program(stated.format(more="")), program(free.format(factor=1)))
    pleat.ir.assert_structural_equal(program(stated.format(more=", offset_factor=4")), program(free.format(factor=4)))
    assert not pleat.ir.structural_equal(program(stated.format(more="")), program(free.format(factor=4)))


def test_loops_without_iterations_access_nothing():
    @T.prim_func
    def nothing(A: T.Buffer((7, 5), "float32"), B: T.Buffer((0, 3), "float32")):
        for i, j in T.grid(0, 3):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
    sch = tir.Schedule(nothing)
    sch.blockize(sch.get_loops("B")[0])
    sch.fuse_axes("B", ("read", 0), [0, 1])
    assert "T.reads(A[0:0])" in sch.func.script()


def test_indices_of_two_types():
    """A layout of a small tensor has indices of 32 bits, and what is inlined had 64."""
    @T.prim_func
    def turned(A: T.Buffer((T.int64(9), T.int64(7)), "float32"), C: T.Buffer((T.int64(9), T.int64(7)), "float32")):
        for i, j in T.grid(T.int64(9), T.int64(7)):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, T.int64(6) - vj]
    sch = tir.Schedule(turned)
    numbers, = sch.cache_index("C", "global", cse_thresh=0)
    sch.transform_layout(numbers, ("write", 0), lambda i: [i], rewrite_loops=True)
    sch.cache_read("C", 1, "shared")
    sch.compute_inline(numbers)
    a, c = np.random.default_rng(4).random((9, 7), "float32"), np.zeros((9, 7), "float32")
    pleat.build(sch.mod)(a, c)
    assert np.array_equal(c, a[:, ::-1])


@pytest.mark.parametrize("tile, part", [((16, 8), (16, 16)), ((8, 12), (32, 24)), ((16, 48), (32, 16)), ((64, 1), (16, 3))])
def test_blocks_of_tiles_move_to_their_producers(tile, part):
    """reverse_compute_at of a block with a block inside, where an iteration completes whole tiles."""
    @T.prim_func
    def chain(A: T.Buffer((64, 48), "float32"), C: T.Buffer((64, 48), "float32")):
        B = T.alloc_buffer((64, 48))
        for i, j in T.grid(64, 48):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0
        for i, j in T.grid(64, 48):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1.0
    sch = tir.Schedule(chain)

    def tiled(block, sizes):
        (i, i_1), (j, j_1) = (sch.split(loop, [None, n]) for loop, n in zip(sch.get_loops(block), sizes))
        sch.reorder(i, j, i_1, j_1)
        return i_1, j
    outer = sch.blockize(tiled("C", tile)[0])
    _, loop = tiled("B", part)
    if part[0] % tile[0] or part[1] % tile[1]:
        with pytest.raises(ScheduleError, match="not proved to be tiles"):
            sch.reverse_compute_at(outer, loop)
        return
    sch.reverse_compute_at(outer, loop)
    assert [l.name for l in sch.get_loops(outer)][:2] == [l.name for l in sch.get_loops("B")][:2]
    a = np.random.default_rng(5).random((64, 48), "float32")
    c = np.zeros_like(a)
    pleat.build(sch.mod)(a, c)
    assert np.array_equal(c, a * 2 + 1)


@pytest.mark.parametrize("thing", ["C", None, 3, [1]])
def test_what_is_no_reference_is_refused(thing):
    schedule = tir.Schedule(matmul)
    for ask in (schedule.get, schedule.remove_rv):
        with pytest.raises(TypeError, match="expected a block, a loop or an integer of the schedule, not"):
            ask(thing)
    with pytest.raises(TypeError, match="'block' is a block, not LoopRV"):
        schedule.reindex_cache_write(schedule.get_loops("product")[0], 0, "local", lambda *i: i)


def test_steps_state_their_arguments():
    Schedule = pleat.tir.Schedule
    text = {name: str(inspect.signature(getattr(Schedule, name))) for name in ("split", "reorder", "fuse", "cache_read")}
    assert text == {
        "split": "(self, loop, factors, preserve_unit_iters=True, disable_predication=False)",
        "reorder": "(self, *loops)", "fuse": "(self, *loops, preserve_unit_iters=True)",
        "cache_read": "(self, block, read_buffer_index, storage_scope, consumer_blocks=[])"}
    assert "extents" in Schedule.split.__doc__
    assert list(inspect.signature(Schedule.annotate_buffer_access).parameters)[3] == "buf_type"
