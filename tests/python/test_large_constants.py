# SPDX-License-Identifier: Apache-2.0
"""The contents of large constants, which texts refer to by their names."""
import copy
import gc
import json

import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
import pleat  # noqa: E402
from pleat import relax  # noqa: E402
from pleat.ir import assert_structural_equal, load_json, save_json, structural_equal, structural_hash  # noqa: E402
from pleat.relax.dpl import is_op, wildcard  # noqa: E402
from pleat.script import from_source, ir as I, relax as R, tir as T  # noqa: E402

W = np.arange(40 * 29, dtype="float32").reshape(40, 29) / 7  # more elements than are printed


@I.ir_module
class Product:
    @R.function
    def main(x: R.Tensor((1, 40), "float32"), w: R.Tensor((40, 29), "float32")) -> R.Tensor((1, 29), "float32"):
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y


def bound(array=W):
    return relax.transform.BindParams("main", {"w": array})(Product)


def test_script_names_the_contents():
    module = bound()
    text = module.script()
    assert len(text) < 700 and 'R.const("constant:' in text and 'R.Tensor((40, 29), dtype="float32")' in text
    assert text.rstrip().endswith("# left out: the contents of 1 constants, which script(show_meta=True) writes")
    assert_structural_equal(from_source(text), module)
    whole = module.script(show_meta=True)
    assert "constant:" not in whole and "left out" not in whole
    assert_structural_equal(from_source(whole), module)
    assert structural_hash(from_source(whole)) == structural_hash(module)


def test_other_contents_are_not_equal():
    other = W.copy()
    other[17, 3] += 1
    assert not structural_equal(bound(), bound(other))
    assert bound().script() == bound(W.astype("float64").astype("float32")).script()
    with pytest.raises(pleat.PleatError, match="constant"):
        assert_structural_equal(bound(), bound(other))


def test_contents_are_of_the_time_of_binding():
    array = W.copy()
    module = bound(array)
    array[:] = 0
    constant = module["main"].body.blocks[0].bindings[0].value.args[1]
    np.testing.assert_array_equal(constant.data, W)
    with pytest.raises(ValueError, match="read-only"):
        constant.data[0, 0] = 1
    del module
    gc.collect()
    np.testing.assert_array_equal(constant.data, W)


def test_text_without_its_module_is_refused_when_compiled():
    text = bound(W + 5).script()
    gc.collect()
    module = from_source(text)
    with pytest.raises(pleat.PleatError, match="the contents of constant 'constant:.*' are not in this file"):
        pleat.compile(module)


def test_saved_and_copied():
    module = bound()
    saved = save_json(module)
    name, = json.loads(saved)["constants"]
    assert name in module.script()
    assert_structural_equal(load_json(saved), module)
    assert_structural_equal(copy.deepcopy(module), module)
    for damaged in (saved.replace(name, "constant:" + "0" * 32), saved.replace('": "A', '": "B'), saved.replace("==", "")):
        if damaged != saved:
            with pytest.raises(pleat.PleatError, match="damaged|not in this"):
                load_json(damaged)


def test_modules_take_functions_of_one_another():
    a, b = bound(), relax.transform.Normalize()(bound(W * 2))
    a.update_func("other", b["main"].with_attr("global_symbol", "other"))
    again = load_json(save_json(a))
    assert_structural_equal(again, a)
    assert len(json.loads(save_json(a))["constants"]) == 2


def test_passes_and_runs():
    x = np.arange(40, dtype="float32")[None] % 5
    module = bound()
    rules = [("my.product", is_op("relax.matmul")(wildcard(), wildcard()))]
    for kept in (True, False):
        fused = relax.transform.FuseOpsByPattern(rules, bind_constants=kept)(module)
        assert len(fused.script()) < 2000 and fused.script().count("constant:") == 1
    fused = relax.transform.LegalizeOps()(relax.transform.Normalize()(module))
    for one in (module, fused):
        np.testing.assert_allclose(pleat.compile(one)(x), x @ W, rtol=1e-5)


def test_captured_arrays():
    half, whole = W.astype("float16"), np.arange(1100) - 550

    @R.function
    def graph(x: R.Tensor((40, 29), "float16")):
        y = R.add(x, R.const(half, "float16"))
        z = R.astype(R.const(whole), "float32")
        return y, z

    text = graph.script()
    assert 'R.Tensor((40, 29), dtype="float16")' in text and 'R.Tensor((1100,), dtype="int32")' in text
    assert_structural_equal(from_source(graph.script(show_meta=True))["graph"], graph)

    table = whole.astype("int16")

    @T.prim_func
    def looked_up(A: T.Buffer((1100,), "int32")):
        K = T.allocate_const(table, "int32", [1100])
        for i in range(1100):
            A[i] = K[i] * 2
    assert "constant:" in looked_up.script()
    out = np.empty(1100, "int32")
    pleat.build(looked_up)(out)
    np.testing.assert_array_equal(out, whole * 2)

    held = looked_up.body  # its elements are no list of numbers
    assert len(held.data) == 1100 and held.data[3] == int(whole[3]) and not isinstance(held.data, list)
    np.testing.assert_array_equal(np.asarray(held.data), whole)
    assert_structural_equal(looked_up.with_body(held), looked_up)
    other = held.with_fields(data=whole + 1)
    assert not pleat.ir.structural_equal(other, held) and pleat.ir.structural_equal(other, other.with_fields())
    pleat.build(looked_up.with_body(other))(out)
    np.testing.assert_array_equal(out, whole * 2 + 2)
    with pytest.raises(pleat.PleatError, match="does not have 1100 items"):
        looked_up.with_body(held.with_fields(data=whole[1:]))

    far = whole * 100
    with pytest.raises(pleat.PleatError, match="-55000 does not fit int16"):
        @T.prim_func
        def refused(A: T.Buffer((1100,), "int16")):
            K = T.allocate_const(far, "int16", [1100])
            A[0] = K[0]


def test_files_of_tensor_programs(tmp_path):
    table = W.reshape(-1)
    n = table.size

    @T.prim_func
    def added(a: T.handle, b: T.handle):
        m = T.int32()
        A = T.match_buffer(a, (m, n), "float32")
        B = T.match_buffer(b, (m, n), "float32")
        K = T.allocate_const(table, "float32", [n])
        for i, j in T.grid(m, n):
            B[i, j] = A[i, j] + K[j]

    built = pleat.build(added)
    a, b = np.ones((2, n), "float32"), np.zeros((2, n), "float32")
    built(a, b)
    built.export_library(tmp_path / "added.pleat")
    fixed = pleat.build(added.specialize({added.params[0].shape[0]: 2}))
    assert len(fixed.get_source("py")) > 5 * n
    fixed.export_library(tmp_path / "added.so")
    del built, fixed, added
    gc.collect()
    for name, rows in (("added.pleat", 2), ("added.pleat", 3), ("added.so", 2)):
        loaded = pleat.load_module(tmp_path / name)
        a, b = np.ones((rows, n), "float32"), np.zeros((rows, n), "float32")
        loaded(a, b)
        np.testing.assert_array_equal(b, a + table)
        assert len(loaded.get_source("py")) > 5 * n


def test_free_sizes():
    @I.ir_module
    class Free:
        @R.function
        def main(x: R.Tensor(("n", 40), "float32"), w: R.Tensor((40, 29), "float32")):
            return R.matmul(x, w)

    model = pleat.compile(relax.transform.BindParams("main", {"w": W})(Free))
    gc.collect()
    x = np.ones((3, 40), "float32")
    np.testing.assert_allclose(model(x), x @ W, rtol=1e-5)
