# SPDX-License-Identifier: Apache-2.0
"""Modules and functions as Python objects: parts, comparison, attributes, passes, nodes, JSON."""
import pickle
import re

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import ir, tir  # noqa: E402
from pleat.script import from_source, tir as T  # noqa: E402
from pleat.tir import analysis, nodes, stmt_functor, transform  # noqa: E402


@T.prim_func
def matmul(A: T.Buffer((5, 7), "float32"), B: T.Buffer((7, 11), "float32"),
           C: T.Buffer((5, 11), "float32")):
    for i, j, k in T.grid(5, 11, 7):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def add(A: T.Buffer(("n",), "int32"), B: T.Buffer(("n",), "int32"), k: T.int32):
    for i in range(A.shape[0]):
        B[i] = A[i] + k


SCRIPTS = {
    "scalar": "def f(A: T.Buffer((), 'float32')):\n    A[()] = T.exp(A[()])\n",
    "one": "def f(A: T.Buffer((1, 1), 'int8')):\n    A[0, 0] = T.int8(1)\n",
    "empty": "def f(A: T.Buffer((0, 3), 'float64')):\n    for i, j in T.grid(0, 3):\n"
             "        A[i, j] = T.float64(1)\n",
    "vector": "def f(A: T.Buffer((16,), 'float32')):\n    A[0:4] = T.Broadcast(A[5], 4)\n",
    "let": "def f(A: T.Buffer((13,), 'int32')):\n    x = A[3]\n    if x > 0:\n        A[0] = x\n"
           "    else:\n        A[1] = T.Select(x == 0, 1, 2)\n",
    "storage": "def f(A: T.Buffer((13,), 'int32')):\n    B = T.decl_buffer((13,), 'int32')\n"
               "    for i in T.vectorized(13):\n        B[i] = A[i]\n    while A[0] < 3:\n"
               "        A[0] = A[0] + B[0]\n    assert A[0] == 3, 'three'\n",
    "call": "def f(A: T.Buffer((3,), 'float32')):\n    T.evaluate(T.call_extern('int32', 'g', A.data))\n",
    "threads": "def f(A: T.Buffer((8,), 'int32')):\n"
               "    for i in T.thread_binding(8, thread='threadIdx.x'):\n"
               "        A[i] = T.if_then_else(i < 4, 1.0 < 2.0 and True, False)\n",
}


def script(name):
    text = "@T.prim_func\n" + SCRIPTS[name]
    return from_source(text.replace("1.0 < 2.0 and True, False", "1, 2"))


ALL = [matmul, add, *map(script, SCRIPTS)]


# ---- Modules --------------------------------------------------------------------------------------

def test_modules_hold_functions():
    module = pleat.IRModule({"main": matmul})
    module["second"] = add
    assert list(module) == ["main", "second"] and "main" in module and len(module) == 2
    assert ir.structural_equal(module["main"], matmul)
    assert module["second"].__name__ == "second"
    other = module.clone()
    del module["main"]
    assert list(module) == ["second"] and list(other) == ["main", "second"]
    module.update({"main": matmul})
    assert ir.structural_equal(module, other)
    with pytest.raises(KeyError, match="no function 'third'; it has second, main"):
        module["third"]
    assert ir.structural_equal(pleat.IRModule.from_expr(add)["add"], add)
    assert [v.name_hint for v in module.get_global_vars()] == ["second", "main"]
    assert module.functions[module.get_global_var("main")].__name__ == "main"
    with pytest.raises(KeyError):
        module.get_global_var("third")
    assert "class Module:" in str(module) and "def second(" in repr(module)


def test_functions_print(capsys):
    matmul.show()
    shown = capsys.readouterr().out
    assert shown.strip() == matmul.script().strip()
    assert "T.sblock(" in matmul.script(newer_names=True)
    assert "import" not in matmul.script(no_imports=True)


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_json_and_pickle(function):
    for copy in (ir.load_json(ir.save_json(function)), pickle.loads(pickle.dumps(function)),
                 from_source(function.script()), from_source(function.script(newer_names=True))):
        assert ir.structural_equal(copy, function)
        assert ir.structural_hash(copy) == ir.structural_hash(function)
    with pytest.raises(pleat.PleatError, match="line 1"):
        ir.load_json("{")


# ---- Comparing ------------------------------------------------------------------------------------

def test_the_first_difference_is_shown_in_both_texts():
    other = from_source(matmul.script().replace("T.float32(0.0)", "T.float32(1.0)"))
    assert not ir.structural_equal(matmul, other)
    ir.assert_structural_equal(matmul, matmul)
    texts = [f"from pleat.script import tir as T\n@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer("
             f"a, (4,), elem_offset={offset})\n    A[0] = A[1]" for offset in (0, "T.int64(0)", "T.int64(4)")]
    none, wide, other_offset = map(from_source, texts)
    assert ir.structural_equal(none, wide) and not ir.structural_equal(wide, other_offset)
    with pytest.raises(ValueError) as error:
        ir.assert_structural_equal(matmul, other)
    text = str(error.value)
    assert text.startswith("value of the store: 0 and 1")
    first, second = text.split("second:")
    assert "C[vi, vj] = T.float32(0.0)" in first and "C[vi, vj] = T.float32(1.0)" in second
    assert first.count("^") and second.count("^")


def test_hashes_differ_where_programs_do():
    hashes = {ir.structural_hash(function) for function in ALL}
    assert len(hashes) == len(ALL)
    for old, new in (("i, j, k in T.grid(5, 11, 7)", "j, i, k in T.grid(11, 5, 7)"),
                     ("SSR", "SSR\", [i, j, k])  # \"")):
        changed = from_source(matmul.script().replace(old, new))
        same = ir.structural_equal(changed, matmul)
        assert same == (ir.structural_hash(changed) == ir.structural_hash(matmul))
    renamed = from_source(matmul.script().replace("vk", "inner").replace("A", "Left"))
    assert ir.structural_equal(renamed, matmul)
    assert ir.structural_hash(renamed) == ir.structural_hash(matmul)


def test_names_of_blocks_do_not_count():
    other = from_source(matmul.script().replace('T.block("', 'T.block("other_'))
    assert other.script() != matmul.script()
    for a, b in ((matmul, other), (ir.IRModule({"f": matmul}), ir.IRModule({"f": other}))):
        ir.assert_structural_equal(a, b)
        assert ir.structural_hash(a) == ir.structural_hash(b)


def test_attributes_of_both_generations_are_equal():
    classic, newer = (matmul.with_attr(key, True) for key in ("tir.noalias", "tirx.noalias"))
    assert ir.structural_equal(classic, newer) and ir.structural_equal(newer, classic)
    assert ir.structural_hash(classic) == ir.structural_hash(newer)
    assert not ir.structural_equal(classic, matmul.with_attr("tirx.noalias", False))
    assert not ir.structural_equal(matmul, newer)


def test_nodes_are_compared_up_to_what_they_define():
    again = from_source(matmul.script())
    assert not ir.structural_equal(matmul.body, again.body)  # the buffers are parameters
    assert ir.structural_equal(matmul.body, again.body, map_free_vars=True)
    i, k, A = tir.Var("i"), tir.Var("k"), tir.decl_buffer(4, "int32", "A")

    def loop(var, index):
        return tir.For(var, 0, 4, 0, tir.BufferStore(A, 1, [index]))
    assert ir.structural_equal(loop(i, i), loop(k, k))
    assert not ir.structural_equal(loop(i, i), loop(k, i))
    assert not ir.structural_equal(loop(i, i), loop(k, i), map_free_vars=True)


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="expected an IRModule or a function, not str"):
        ir.structural_equal(matmul, "matmul")


# ---- Attributes and specialization ----------------------------------------------------------------

def test_attributes():
    f = matmul.with_attr("tir.noalias", True).with_attr({"sizes": [1, 2], "name": "x", "f": 0.5})
    assert f.attrs == {"global_symbol": "matmul", "tir.noalias": True, "sizes": [1, 2], "name": "x",
                       "f": 0.5}
    assert f.with_attr("global_symbol", "main").__name__ == "main"
    for key in ("tir.noalias", "sizes", "name", "f"):
        f = f.without_attr(key)
    assert ir.structural_equal(f, matmul)
    with pytest.raises(pleat.PleatError):
        matmul.with_attr("x", object())


@pytest.mark.parametrize("function", [add])
def test_attributes_of_modules(function):
    module = pleat.IRModule({"f": function}, attrs={"level": 1})
    assert module.attrs == {"level": 1} and module.get_attr("level") == 1
    assert module.get_attr("other") is None and module.get_attr("other", 3) == 3
    more = module.with_attr("names", ["a", {"b": 2.5}]).with_attrs({"level": 2, "x": None})
    assert more.attrs == {"level": 2, "names": ["a", {"b": 2.5}], "x": None}
    assert module.attrs == {"level": 1}  # a new module has the changes
    assert "I.module_attrs({" in more.script()
    assert pleat.ir.load_json(pleat.ir.save_json(more)).attrs == more.attrs
    assert pleat.tir.transform.Simplify()(more).attrs == more.attrs
    assert not pleat.ir.structural_equal(more, module)
    fewer = more.without_attr("names").without_attr("x").with_attr("level", 1)
    assert pleat.ir.structural_equal(fewer, module)
    assert pleat.IRModule.from_expr(function).with_attr("z", True).attrs == {"z": True}
    assert list(more.without_attr("absent").attrs) == list(more.attrs)
    with pytest.raises(TypeError, match="the name of an attribute is a string, not 3"):
        module.with_attr(3, 1)


def test_targets_are_objects_in_attributes():
    @T.prim_func
    def bound(A: T.Buffer((4,), "float32")):
        T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80"}, host="llvm"), "list": ["a", 1]})
        A[0] = T.float32(1)
    target = bound.attrs["target"]
    assert isinstance(target, pleat.target.Target) and target.kind.name == "cuda"
    assert target.host.kind.name == "llvm" and target.attrs == {"arch": "sm_80"}
    assert bound.with_attr("target", target).script() == bound.script()
    made = tir.PrimFunc(bound.params, bound.body, None, bound.buffer_map, bound.attrs)
    assert ir.structural_equal(made, bound) and made.attrs["list"] == ["a", 1]
    module = pleat.IRModule({"bound": bound}, attrs={"target": target})
    assert module.attrs == {"target": target}


def test_a_function_without_a_symbol_is_private():
    @T.prim_func
    def named(A: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main"})
        A[0] = T.float32(1)

    @T.prim_func(private=True)
    def private(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)
    assert pleat.ir.structural_equal(named.without_attr("global_symbol"), private)
    main = pleat.script.from_source(named.script().replace("def named", "def main").replace(
        'T.func_attr({"global_symbol": "main"})', "pass"))
    assert "global_symbol" not in main.script() and pleat.ir.structural_equal(named, main)
    assert not pleat.ir.structural_equal(main, named.with_attr("tir.noalias", True))
    other = named.with_attr("global_symbol", "other")
    assert other.attrs == {"global_symbol": "other"} and other.__name__ == "other"
    assert "main" not in other.script()


def test_names_are_listed():
    names = {pleat: "build", pleat.tir: "For", pleat.tirx: "Schedule", pleat.te: "exp",
             pleat.tir.transform: "FlattenBuffer", pleat.arith: "Analyzer", pleat.relax: "BlockBuilder"}
    for module, name in names.items():
        assert name in dir(module)
        for shown in dir(module):
            assert shown.startswith("__") or hasattr(module, shown), shown


@pytest.mark.parametrize("function", [add])
def test_options_of_printing(function):
    assert function.script(show_meta=True, verbose_expr=True) == function.script()
    with pytest.raises(TypeError, match="script.* has no option 'colour'"):
        function.script(colour=1)


def test_values_that_do_not_fit_are_refused():
    @T.prim_func
    def double(A: T.Buffer(("n",), "float32"), n: T.int32):
        for i in range(n):
            A[i] = A[i] * T.float32(2)
    for value, message in ((1 << 33, "8589934592 is no value of 'n', which has the type int32"),
                           (-1, "extent -1 in axis 0 of buffer 'A' is negative")):
        with pytest.raises(pleat.PleatError, match=message):
            double.specialize({"n": value})


def test_specialization():
    n = add.buffer_map[add.params[0]].shape[0]
    for given in ({"n": 13, "k": 3}, {n: 13, add.params[2]: 3}):
        f = add.specialize(given)
        assert len(f.params) == 2 and f.buffer_map[f.params[0]].shape[0] == 13
        assert "A[i] + 3" in f.script()
    for name, message in (("m", "'add' has no size 'm'; it has n, k"),
                          ("A", "'A' is the buffer 'A' of 'add'; give another buffer, or the values")):
        with pytest.raises(pleat.PleatError, match=message):
            add.specialize({name: 1})


@T.prim_func
def strided(a: T.handle, b: T.handle, k: T.int32):
    n, m, s, o = T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32", strides=[s, 1], elem_offset=o)
    B = T.match_buffer(b, (n, m), "float32")
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j] + T.Cast("float32", k)


def test_specialization_by_buffers_and_expressions():
    from pleat import tir
    a, b, k = strided.params
    f = strided.specialize({a: tir.decl_buffer((4, 6), strides=[8, 1], elem_offset=4)})
    A = f.buffer_map[f.params[0]]
    assert [int(one) for one in (*A.shape, *A.strides, A.elem_offset)] == [4, 6, 8, 1, 4]
    assert "T.grid(4, 6)" in f.script()
    n = strided.buffer_map[b].shape[0]
    doubled = strided.specialize({n: tir.Var("x", "int32") * 2})
    assert "(x * 2, m)" in doubled.script() and "T.grid(x * 2, m)" in doubled.script()
    assert len(strided.specialize({k: n}).params) == 2
    assert strided.specialize({}) is strided
    for given, message in (({a: tir.decl_buffer((4, 6), "int32", strides=[8, 1])}, "another type"),
                           ({b: tir.decl_buffer((4,))}, "other axes"), ({k: tir.decl_buffer((4,))}, "no parameter"),
                           ({a: tir.decl_buffer((4, 6), strides=[8, 2], elem_offset=4)}, "A has 1 where"),
                           ({n: 5, b: tir.decl_buffer((4, 6))}, "'n' gets 5 and 4")):
        with pytest.raises(ValueError, match=message):
            strided.specialize(given)


# ---- Passes ---------------------------------------------------------------------------------------

def test_passes_are_those_of_the_library():
    assert list(transform.passes())[0] == "lower_intrinsics"
    for name in transform.passes():
        assert callable(getattr(transform, name.title().replace("_", "")))
    for own, (arguments, names) in transform._texts().items():
        assert own in transform.passes() or own == "lower"
        assert all(callable(getattr(transform, name)) for name in names)
    with pytest.raises(AttributeError, match="no pass 'NoSuchPass'"):
        transform.NoSuchPass
    assert not hasattr(transform, "_private")


@T.prim_func
def short_loops(A: T.Buffer((7,), "float32")):
    for i in range(3):
        A[i] = T.float32(1)
    for i in T.vectorized(2):
        A[i] = T.float32(2)


def test_layouts_of_an_attribute_are_applied():
    """RFC 39's ApplyBufferTransform, as TVM 0.9 had it."""
    @T.prim_func
    def transposed(A: T.Buffer((3, 5), "float32"), C: T.Buffer((5, 3), "float32")):
        B = T.alloc_buffer((3, 5))
        for i, j in T.grid(3, 5):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(3, 5):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vj, vi] = B[vi, vj]

    maps = {"B": [tir.IndexMap.from_func(lambda i, j: [j, i]),
                  tir.IndexMap.from_func(lambda j, i: [j // 2, i, j % 2])]}
    result = transform.ApplyLayoutTransforms()(transposed.with_attr("layout_transform_map", maps))
    assert "B = T.alloc_buffer((3, 3, 2)" in result.script() and "layout" not in result.script()
    param = transposed.params[0]
    for key in ("A", param, transposed.buffer_map[param], transposed.buffer_map[param].data):
        one = transposed.with_attr("layout_transform_map", {key: lambda i, j: [j, i]})
        assert "A: T.Buffer((5, 3)" in transform.ApplyLayoutTransforms()(one).script()
    with pytest.raises(TypeError, match="text or a buffer as a key of an attribute, saw 3"):
        transposed.with_attr("layout_transform_map", {3: lambda i, j: [j, i]})
    x, y = np.arange(15, dtype="float32").reshape(3, 5), np.zeros((5, 3), "float32")
    pleat.build(result)(x, y)
    assert (y == 2 * x.T).all()


def test_options_of_passes():
    def loops(function):
        found = []
        stmt_functor.post_order_visit(function.body, lambda node: found.append(node.kind)
                                      if isinstance(node, tir.For) else None)
        return found

    serial, vectorized, unrolled = (tir.ForKind.SERIAL, tir.ForKind.VECTORIZED,
                                    tir.ForKind.UNROLLED)
    assert loops(transform.UnrollLoop()(short_loops)) == [serial, vectorized]
    assert loops(transform.UnrollLoop(3)(short_loops)) == [vectorized]
    assert loops(transform.UnrollLoop(auto_max_step=2)(short_loops)) == [serial, vectorized]
    for key in ("tir.UnrollLoop", "tirx.UnrollLoop", "s_tir.UnrollLoop"):
        config = {key: {"auto_max_step": 3, "explicit_unroll": False}, "other": 5}
        with transform.PassContext(config=config):
            assert loops(transform.UnrollLoop()(short_loops)) == [unrolled, vectorized]
            assert loops(transform.UnrollLoop(auto_max_step=2)(short_loops)) == [serial, vectorized]
    assert loops(transform.VectorizeLoop(False)(short_loops)) == [serial, serial]
    with pytest.raises(TypeError, match="UnrollLoop has no argument 'step'; it has: auto_max_step, "):
        transform.UnrollLoop(step=3)
    with pytest.raises(TypeError, match="FlattenBuffer takes at most 0 arguments"):
        transform.FlattenBuffer(3)
    with transform.PassContext(config={"tir.UnrollLoop": {"step": 3}}):
        with pytest.raises(pleat.PleatError, match="no argument 'step'; it has: auto_max_step, "):
            transform.UnrollLoop()(short_loops)
    with pytest.raises(pleat.PleatError, match="auto_max_extent is an integer .* saw a string"):
        transform.UnrollLoop(auto_max_extent="3")(short_loops)


@T.prim_func
def independent(A: T.Buffer((4, 6), "float32"), index: T.Buffer((4,), "int32")):
    for f in T.parallel(24):
        A[f // 6, f % 6] = T.float32(0)
    for i in T.parallel(4):
        A[index[i], 0] = T.cast(i, "float32")


@T.prim_func
def meeting(A: T.Buffer((4, 6), "float32")):
    flat = T.decl_buffer((24,), "float32", data=A.data)
    for i in T.parallel(12):
        A[i // 6, i % 6] = flat[i + 6]


def test_accesses_are_checked_with_their_places():
    """Loops whose iterations are independent, and one whose iterations meet in a second buffer over
    the same memory."""
    found = analysis.accesses(independent)
    assert found["bounds"] == "guarded"
    assert [loop["races"] for loop in found["loops"]] == ["none", "undecided"]
    assert found["loops"][1]["access"] == "A[index[i], 0]"
    with pytest.raises(pleat.PleatError, match="iterations i = 5 and i = 11") as error:
        analysis.accesses(meeting)
    assert "test_tir_module.py" in str(error.value)


@T.prim_func
def aliased(A: T.Buffer((4, 6), "float32")):
    flat = T.decl_buffer((24,), "float32", data=A.data)
    tail = T.decl_buffer((2, 6), "float32", data=A.data, elem_offset=12)
    flat[0] = tail[0, 0]


def test_aliases_agree_with_the_bytes():
    """The bytes that buffers have in common, and the place of each element in another buffer,
    against NumPy's view of the same memory."""
    memory = np.arange(24 * 4, dtype="uint8")
    views = {"A": memory.view("float32").reshape(4, 6), "flat": memory.view("float32"),
             "tail": memory.view("float32")[12:].reshape(2, 6)}
    found = {(pair["a"], pair["b"]): pair for pair in analysis.aliases(aliased)[0]["pairs"]}
    for (a, b), pair in found.items():
        assert np.shares_memory(views[a], views[b]) == (pair["relation"] != "disjoint")
        assert pair["bytes"] == min(views[a].nbytes, views[b].nbytes)
        inner, outer = re.fullmatch(r"(\w+)\[.*\] is (\w+)\[.*\]", pair["elements"]).groups()
        names = dict(zip("ijk", np.indices(views[inner].shape)))
        there = eval(re.sub(r".* is \w+", "view", pair["elements"]),
                     {**names, "view": views[outer]})
        assert (there.view("uint32") == views[inner].view("uint32")).all()
    assert len(found) == 3


def test_strided_aliases_move_together():
    """A layout of a buffer of n rows changes the accesses of a declared half of each row too."""
    module = from_source("""
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    C = T.match_buffer(c, (n, 8), "float32")
    B = T.alloc_buffer((n, 8), "float32")
    right = T.decl_buffer((n, 4), "float32", data=B.data, strides=(8, 1), elem_offset=4)
    for i, j in T.grid(n, 8):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i, j in T.grid(n, 4):
        with T.block("twice"):
            vi, vj = T.axis.remap("SS", [i, j])
            right[vi, vj] = right[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 8):
        with T.block("out"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]
""")
    schedule = tir.Schedule(module)
    schedule.transform_layout("copy", ("write", 0), lambda i, j: [j // 4, i, j % 4])
    assert "B[1, vi, vj] * T.float32(2.0)" in schedule.mod.script()
    a, c = np.random.default_rng(1).random((2, 3, 8), dtype="float32")
    pleat.build(schedule.mod)(a, c)
    np.testing.assert_array_equal(c, a * np.repeat([1, 2], 4).astype("float32"))


def test_passes_on_functions_and_modules():
    loops = transform.LowerOpaqueBlock()(matmul)
    parts = transform.Sequential([
        transform.LowerInitBlock(), transform.PlanAndUpdateBufferAllocationLocation(),
        transform.ConvertBlocksToOpaque(), transform.LowerMatchBuffer()])(matmul)
    assert not ir.structural_equal(parts, matmul)
    assert ir.structural_equal(transform.LowerOpaqueBlock()(parts), loops)
    assert isinstance(loops, tir.PrimFunc) and "T.block" not in loops.script()
    module = transform.Sequential([transform.LowerOpaqueBlock(), transform.Simplify(),
                                   transform.FlattenBuffer()])(pleat.IRModule({"main": matmul}))
    assert isinstance(module, pleat.IRModule)
    assert "T.block" not in module.script() and "* 11" in module.script()
    assert ir.structural_equal(transform.FlattenBuffer()(module), module)  # again: no change
    with pytest.raises(pleat.PleatError, match="run convert_blocks .LowerOpaqueBlock. first"):
        transform.FlattenBuffer()(matmul)


def test_copies_of_buffers_get_an_axis():
    before = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 5), "float32"), C: T.Buffer((6, 5), "float32")):
    for i in range(3):
        for t in T.thread_binding(2, thread="vthread"):
            B = T.decl_buffer((5,), "float32", scope="local")
            with T.attr(B.data, "double_buffer_scope", 1):
                for j in range(5):
                    B[j] = A[i * 2 + t, j] * T.float32(2)
            for j in range(5):
                C[i * 2 + t, j] = B[4 - j]
""")
    threads = transform.InjectVirtualThread()(before)
    assert "thread_binding" not in threads.script() and "(2, 5)" in threads.script()
    doubled = transform.InjectDoubleBuffer()(threads)
    assert "(2, 2, 5)" in doubled.script() and "double_buffer_scope" not in doubled.script()
    unrolled = transform.UnrollLoop()(doubled)
    shared = transform.CommonSubexprElim()(unrolled)
    assert "cse_v1" in shared.script() and shared.script() == transform.CommonSubexprElimTIR()(unrolled).script()
    values = np.arange(30, dtype="float32").reshape(6, 5)
    for program in (before, threads, doubled, shared):
        out = np.zeros((6, 5), "float32")
        pleat.build(program, target="llvm")(values, out)
        assert (out == 2 * values[:, ::-1]).all()


def test_allocations_share_memory():
    before = from_source("""
@T.prim_func
def main(X: T.Buffer((5, 7), "float32"), Y: T.Buffer((5, 7), "float32")):
    for k in range(2):
        A = T.decl_buffer((5, 7), "float32")
        B = T.decl_buffer((7, 5), "float32")
        D = T.decl_buffer((35,), "float32")
        for i, j in T.grid(5, 7):
            A[i, j] = X[i, j] + T.float32(k)
        for i, j in T.grid(5, 7):
            B[j, i] = A[i, j] * T.float32(2)
        for i, j in T.grid(5, 7):
            D[i * 7 + j] = B[6 - j, 4 - i]
        for i, j in T.grid(5, 7):
            Y[i, j] = D[i * 7 + j]
""")
    after = transform.StorageRewrite()(before)
    assert "data=A.data" in after.script() and ir.structural_equal(
        transform.StorageRewrite()(after), after)
    values = np.arange(35, dtype="float32").reshape(5, 7)
    for target in ("llvm", "c"):
        out = np.zeros((5, 7), "float32")
        pleat.build(after, target=target)(values, out)
        assert (out == 2 * (values + 1)[::-1, ::-1]).all()


def test_flattening_as_tvm_does():
    """The program has a 2-d allocation in a loop, and parameters of two axes."""
    before = from_source("""
@T.prim_func
def main(A: T.Buffer((6, 5), "float32"), C: T.Buffer((6, 5), "float32")):
    for i in range(6):
        B = T.decl_buffer([1, 5], "float32")
        for j in range(5):
            B[0, j] = A[i, j] + 1.0
        for j in range(5):
            C[i, j] = B[0, j] * 2.0
""")
    expected = from_source("""
@T.prim_func
def main(a: T.Buffer((6, 5), "float32"), c: T.Buffer((6, 5), "float32")):
    A = T.Buffer(30, "float32", data=a.data)
    C = T.Buffer(30, "float32", data=c.data)
    for i in range(6):
        data = T.allocate([5], "float32", "global")
        B = T.Buffer([5], "float32", data=data)
        for j in range(5):
            B[j] = A[i * 5 + j] + 1.0
        for j in range(5):
            C[i * 5 + j] = B[j] * 2.0
""")
    flat = pleat.transform.Sequential([transform.FlattenBuffer(), transform.Simplify()])(before)
    ir.assert_structural_equal(flat, expected)


def test_pass_contexts():
    log = []

    class Instrument:
        def enter_pass_ctx(self):
            log.append("enter")

        def exit_pass_ctx(self):
            log.append("exit")

        def should_run(self, module, info):
            return info.name != "tir.UnrollLoop"

        def run_before_pass(self, module, info):
            log.append(info.name)

        def run_after_pass(self, module, info):
            log.append("after " + info.name)

    @transform.prim_func_pass(opt_level=1)
    def mark(function, module, context):
        return function.with_attr("seen", context.config["seen"])
    with transform.PassContext(instruments=[Instrument()], config={"seen": 7},
                               disabled_pass=["Simplify"]):
        result = transform.Sequential([transform.LowerOpaqueBlock(), transform.Simplify(),
                                       transform.UnrollLoop(), mark], name="all")(matmul)
    assert log == ["enter", "all", "tir.LowerOpaqueBlock", "after tir.LowerOpaqueBlock", "mark",
                   "after mark", "after all", "exit"]
    assert result.attrs["seen"] == 7
    log.clear()
    with transform.PassContext(instruments=[Instrument()]):
        transform.PassContext.current().override_instruments([Instrument()])
        transform.PassContext.current().override_instruments(None)
        transform.Simplify()(matmul)
    assert log == ["enter", "exit", "enter", "exit"]


def test_passes_have_the_names_of_their_dialect():
    """TVM's names, which its instruments and users compare."""
    made = [pleat.tir.transform.Simplify(), pleat.tirx.transform.StmtSimplify(),
            pleat.tirx.transform.ForceNarrowIndexToInt32(), pleat.s_tir.transform.RemoveUndef(),
            pleat.s_tir.transform.CanonicalizeLoop(), pleat.tirx.transform.Apply(lambda one: one)]
    assert [one.info.name for one in made] == [
        "tir.Simplify", "tirx.StmtSimplify", "tirx.NarrowDataType", "s_tir.RemoveStoreUndef",
        "s_tir.CanonicalizeLoop", "Apply"]
    module = pleat.IRModule({"main": matmul})
    for name in ("tir.Simplify", "Simplify"):
        with transform.PassContext(disabled_pass=[name]):
            assert made[0](module) is module
    with pytest.raises(AttributeError, match="module 'pleat.tirx.transform' has no pass 'Simplifies'"):
        pleat.tirx.transform.Simplifies()


@pytest.mark.parametrize("function", [add])
def test_passes_refuse_other_objects(function):
    simplify = pleat.tir.transform.Simplify()
    with pytest.raises(TypeError, match="Simplify: expected an IRModule or a function, not str"):
        simplify("function")
    with pytest.raises(TypeError, match="sequential: expected passes, not 3"):
        pleat.transform.Sequential([simplify, 3])
    with pleat.transform.PassContext(config={"tir.UnrollLoop": 3}):
        with pytest.raises(TypeError, match="options of tir.UnrollLoop are a dictionary, not 3"):
            pleat.tir.transform.UnrollLoop()(pleat.IRModule({"f": function}))
    with pytest.raises(TypeError, match="expected a text of TVMScript, not NoneType"):
        pleat.script.from_source(None)


@pytest.mark.parametrize("call, message", [
    (lambda: pleat.IRModule("f"), "a dictionary from names to functions, not 'f'"),
    (lambda: ir.load_json(b"{}"), "load_json: expected a text, not bytes"),
    (lambda: pleat.transform.module_pass(3), "made of a function or a class, not of 3"),
    (lambda: analysis.verify_well_formed("f"), "expected an IRModule or a function, not str"),
    (lambda: analysis.accesses(3), "expected an IRModule or a function, not int"),
    (lambda: pleat.compile(nodes.const(3)), "expected a model, a module or a function"),
    (lambda: pleat.Session("model"), "a session runs a pleat.Model, not 'model'"),
    (lambda: pleat.build(add, target=1.5), "a target is a text or a dictionary, not 1.5"),
    (lambda: tir.NE(None, 1), "NE of expressions, not of None"),
    (lambda: list(tir.decl_buffer((4,))), "not iterable"),
    (lambda: 3 in pleat.te.placeholder((4,)), "not iterable|not a container"),
    (lambda: list(pleat.te.placeholder((4, 5))[0]), "not iterable"),
])
def test_other_objects_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_expressions_are_hoisted_by_flags():
    @T.prim_func
    def choice(A: T.Buffer((3, 4), "float32"), n: T.int32):
        for i, j in T.grid(3, 4):
            A[i, j] = T.if_then_else(i < 2 and n > 3, T.float32(1), T.float32(2))
    module, kinds = pleat.IRModule({"choice": choice}), transform.HoistedConditionals
    for kept, first in ((kinds.All, "if n > 3:"), (kinds.IfElseExpr, "for i in range(3):"), (kinds.Never, "for i, j in")):
        options = {"hoisted_conditionals": kept.value, "hoisted_let_bindings": transform.HoistedLetBindings.All.value}
        with pleat.transform.PassContext(config={"s_tir.HoistExpression": options}):
            after = transform.HoistExpression()(module)
        assert after["choice"].script(no_imports=True).splitlines()[2].strip().startswith(first)


def test_operations_are_counted():
    assert analysis.estimate_tir_flops(matmul) == 2 * 5 * 7 * 11
    assert analysis.estimate_tir_flops(pleat.IRModule({"a": matmul, "b": matmul})) == 4 * 5 * 7 * 11


def test_verification():
    assert analysis.verify_well_formed(matmul)
    assert analysis.verify_well_formed(pleat.IRModule({"main": add}))


# ---- Nodes ----------------------------------------------------------------------------------------

def test_fields_have_the_names_of_tvm():
    root = matmul.body
    assert isinstance(root, tir.BlockRealize) and root.block.name_hint == "root"
    loop = root.block.body
    assert isinstance(loop, tir.For) and loop.kind == nodes.ForKind.SERIAL
    assert loop.loop_var.name == "i" and loop.min == 0 and int(loop.extent) == 5
    assert loop.thread_binding is None and loop.annotations == {}
    realize = loop.body.body.body
    block = realize.block
    assert [v.name for v in realize.iter_values] == ["i", "j", "k"] and bool(realize.predicate)
    assert [v.iter_type for v in block.iter_vars] == [nodes.IterVar.DataPar] * 2 + \
        [nodes.IterVar.CommReduce]
    assert [int(v.dom.extent) for v in block.iter_vars] == [5, 11, 7]
    assert [r.buffer.name for r in block.reads] == ["A", "B"]
    store = block.body
    assert isinstance(store, tir.BufferStore) and isinstance(store.value, tir.Add)
    product = store.value.b
    assert isinstance(product, tir.Mul) and isinstance(product.a, tir.BufferLoad)
    assert product.a.indices[1] is block.iter_vars[2].var and product.dtype == "float32"
    assert block.init.value == 0.0
    buffer = matmul.buffer_map[matmul.params[0]]
    assert buffer is product.a.buffer and buffer.scope() == "global"
    assert (buffer.dtype, [int(e) for e in buffer.shape], buffer.strides) == ("float32", [5, 7], [])


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_all_nodes_are_readable(function):
    count = [0]

    def visit(node):
        count[0] += 1
        assert repr(node) and node.same_as(node)
    stmt_functor.post_order_visit(function.body, visit)
    assert count[0] > 2
    assert nodes.nodes_equal(function.node, from_source(function.script()).node)
    for other in ALL:
        assert nodes.nodes_equal(function.body, other.body) == (other is function)


def test_kinds_of_statements():
    def kinds(name):
        found = set()
        stmt_functor.post_order_visit(script(name).body, lambda node: found.add(type(node)))
        return found
    assert {tir.LetStmt, tir.IfThenElse, nodes.Select, tir.EQ} <= kinds("let")
    assert {tir.AllocBuffer, tir.DeclBuffer, tir.While, tir.AssertStmt, tir.SeqStmt} <= kinds("storage")
    assert {tir.Evaluate, tir.Call, tir.StringImm} <= kinds("call")
    assert {tir.Ramp, tir.Broadcast} <= kinds("vector")
    storage = script("storage").body.body.body
    assert len(storage) == 3 and isinstance(storage[0], tir.For) and storage[1] in list(storage)
    loop = script("threads").body
    assert loop.thread_binding.thread_tag == "threadIdx.x"
    assert loop.kind == nodes.ForKind.THREAD_BINDING


def test_walks():
    order = []
    stmt_functor.post_order_visit(matmul.body, order.append)
    assert order[-1] is matmul.body and len({id(n) for n in order}) == len(order)
    position = {id(n): i for i, n in enumerate(order)}
    for node in order:
        if isinstance(node, tir.Add):
            assert position[id(node.a)] < position[id(node)]
    seen = []
    stmt_functor.pre_order_visit(matmul.body,
                                 lambda n: (seen.append(n), not isinstance(n, tir.For))[1])
    assert sum(isinstance(n, tir.For) for n in seen) == 1


def test_free_variables():
    loop = matmul.body.block.body
    assert {v.name for v in analysis.undefined_vars(loop)} == {"A", "B", "C"}
    inner = loop.body
    assert loop.loop_var in analysis.undefined_vars(inner)
    assert loop.loop_var not in analysis.undefined_vars(inner, [loop.loop_var])
    store = loop.body.body.body.block.body
    assert analysis.expr_deep_equal(store.value, store.value)
    assert not analysis.expr_deep_equal(store.indices[0], store.indices[1])
    assert not ir.structural_equal(store.indices[0], store.indices[1])
    assert ir.structural_equal(store.indices[0], store.indices[1], map_free_vars=True)
    ir.assert_structural_equal(store.indices[0], store.indices[1], map_free_vars=True)
    assert not ir.structural_equal(store.indices[0] + store.indices[1],
                                   store.indices[0] + store.indices[0], map_free_vars=True)
    with pytest.raises(ValueError, match="not equal"):
        ir.assert_structural_equal(store.value.a, store.value.b)


def test_flat_accesses_name_the_logical_ones():
    flat = transform.Sequential([transform.LowerOpaqueBlock(), transform.FlattenBuffer()])(
        pleat.IRModule({"main": matmul}))
    lines = [line.strip() for line in flat["main"].script(annotate=True).splitlines()]
    assert any(line.startswith("# C[i, j] <- C[i, j], A[i, k], B[k, j]") for line in lines), lines
    assert not [line for line in flat["main"].script().splitlines() if "# C[" in line]


def test_block_variables_are_ordered():
    """RFC 41, "Reference-level explanation"."""
    def with_axes(first, second):
        return pleat.script.from_source(f"""
@T.prim_func
def f(A: T.Buffer((512, 512)), B: T.Buffer((512, 512)), C: T.Buffer((512, 512))):
    for i, jo, ji, k in T.grid(512, 32, 16, 512):
        with T.block("A"):
            vi = T.axis.S(512, i)
            {first}
            {second}
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
""")
    vj, vk = "vj = T.axis.S(512, jo * 16 + ji)", "vk = T.axis.R(512, k)"
    assert ir.structural_equal(with_axes(vj, vk), with_axes(vj, vk))
    assert not ir.structural_equal(with_axes(vj, vk), with_axes(vk, vj))


@pytest.mark.parametrize("function", [add])
def test_a_function_is_no_module(function):
    module = pleat.IRModule({"add": function})
    assert not ir.structural_equal(function, module) and not ir.structural_equal(module, function)
    with pytest.raises(ValueError, match="a function and a module"):
        pleat.ir.assert_structural_equal(function, module)


def test_pass_contexts_refuse_unknown_options():
    context = pleat.transform.PassContext
    with pytest.raises(AttributeError, match="no option 'tir.UnrolLoop'; did you mean 'tir.UnrollLoop'[?]"):
        context(config={"tir.UnrolLoop": {}})
    with pytest.raises(AttributeError, match="no option 's_tir.abc'[.] Options have the dialect .* disable_vectorize"):
        context(config={"s_tir.abc": 3})
    assert context.list_configs()["tirx.LoopPartition"] == {"type": "dict"}
    assert context(config={"mine": 3}).config == {"mine": 3}  # for the passes of the caller


def test_nodes_print_as_scripts():
    @T.prim_func
    def program(A: T.Buffer((8, 4), "float32"), n: T.int32):
        for i in range(8):
            A[i, n] = A[i, n] * 2.0
    n, loop = tir.Var("n", "int32"), program.body
    assert str(loop) == loop.script() == "for i in range(8):\n    A[i, n] = A[i, n] * T.float32(2.0)"
    assert str(loop.body.value) == "A[i, n] * T.float32(2.0)"
    assert str(tir.floormod(n * 4, 3) < n + 1) == "n * 4 % 3 < n + 1" and str(tir.exp(n.astype("float32"))) == \
        'T.exp(T.Cast("float32", n))'
    assert repr(loop).startswith("For(loop_var=i, min=0, extent=8")
    assert str(pleat.ir.Range(0, n)) == "I.Range(0, n)" and str(pleat.ir.Range(2, 5)) == "I.Range(2, 5)"
    region = tir.BufferRegion(loop.body.buffer, [pleat.ir.Range(0, 3), pleat.ir.Range.from_min_extent(n, 1)])
    assert str(region) == "A[0:3, n]"
    with pytest.raises(TypeError, match="^n > 3 is known only when the program runs"):
        bool(n > 3)


def test_names_of_tvm():
    assert pleat.instrument.PassTimingInstrument is ir.instrument.PassTimingInstrument
    assert isinstance(transform.Simplify(), pleat.transform.ModulePass) and transform.PrimFuncPass
    assert [str(make(1)) for make in (pleat.metal, pleat.rocm, pleat.vulkan)] == ["metal:1", "rocm:1", "vulkan:1"]
    assert pleat.target.Target.from_device("cpu").kind.name == "llvm"
    assert pleat.target.Target.from_device(pleat.cuda(0)).kind.name == "cuda"
    assert ir.structural_equal(tir.vscale() * 4, from_source(
        "@T.prim_func\ndef f():\n    T.evaluate(T.vscale() * 4)").body.value)
    analyzer = pleat.arith.Analyzer()
    assert analyzer.simplify(4) == 4
    with pytest.raises(TypeError, match="expected an expression or a number, not"):
        analyzer.simplify("x + 0")
