# SPDX-License-Identifier: Apache-2.0
"""FuseOpsByPattern, MergeCompositeFunctions, RunCodegen and BindParams: parts of graphs for other generators of
code."""
import pytest
from built import skip_sanitized

skip_sanitized()
np = pytest.importorskip("numpy")
pleat = pytest.importorskip("pleat")
from pleat import relax  # noqa: E402
from pleat.relax.backend import get_pattern, get_patterns_with_prefix, register_patterns  # noqa: E402
from pleat.relax.dpl import is_op, is_tuple_get_item, wildcard  # noqa: E402
from pleat.relax.transform import (  # noqa: E402
    BindParams, FuseOpsByPattern, FusionPattern, MergeCompositeFunctions, RunCodegen)
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), w0: R.Tensor((3, 4), "float32"), w1: R.Tensor((3, 4), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.matmul(x, w0)
            b = R.nn.relu(a)
            w = R.add(w1, w1)
            c = R.matmul(x, w)
            d = R.nn.gelu(R.add(R.const(0.5, "float32"), c))
            e = R.nn.relu(R.matmul(R.concat((b, d), axis=0), R.permute_dims(w)))
            out = R.add(R.matmul(e, w), R.sum(a))
            R.output(out)
        return out


PRODUCT = is_op("relax.matmul")(wildcard(), wildcard())
PATTERNS = [("npu.matmul_relu", is_op("relax.nn.relu")(PRODUCT)), ("npu.matmul", PRODUCT),
            ("npu.add", is_op("relax.add")(wildcard(), wildcard()))]
ARRAYS = [np.random.default_rng(i).uniform(-1, 1, shape).astype("float32")
          for i, shape in enumerate([(5, 3), (3, 4), (3, 4)])]
EXPECTED = pleat.compile(Net)(*ARRAYS)


def with_attribute(module, name):
    return {str(key): one.attrs[name] for key, one in module.items() if name in one.attrs}


def check(module):
    result = relax.VirtualMachine(relax.build(pleat.IRModule(handle=module._handle)))["main"](*ARRAYS)
    np.testing.assert_allclose(result, EXPECTED, 1e-5, 1e-6)


def test_parts_become_functions():
    fused = FuseOpsByPattern(PATTERNS)(Net)
    # The products of n + n rows stay: n would not follow from the operands.
    assert with_attribute(fused, "Composite") == {
        "fused_relax_matmul_relax_nn_relu": "npu.matmul_relu", "fused_relax_add": "npu.add",
        "fused_relax_matmul": "npu.matmul", "fused_relax_add1": "npu.add"}
    function = fused["fused_relax_matmul_relax_nn_relu"]
    assert [one.name for one in function.params] == ["x", "w0"] and len(function.body.body) == 2  # a is used, too
    check(fused)
    lifted = FuseOpsByPattern(PATTERNS, bind_constants=False)(Net)
    assert [len(fused["fused_relax_add1"].params), len(lifted["fused_relax_add1"].params)] == [1, 2]
    check(lifted)
    assert FuseOpsByPattern(PATTERNS, entry_functions=["other"])(Net).script() == Net.script()


def test_a_check_decides():
    seen = []

    def has_four_columns(context):
        seen.append(sorted(one.name for one in context.matched_bindings))
        assert context.value_to_bound_var[context.matched_expr] in context.matched_bindings
        return context.annotated_expr["weight"].struct_info.shape[1] == 3
    weight = wildcard()
    product = is_op("relax.matmul")(wildcard(), weight)
    pattern = FusionPattern("npu.matmul", product, {"weight": weight}, has_four_columns)
    assert FuseOpsByPattern([pattern])(Net).script() == Net.script() and seen == [["c"], ["a"]]


def test_parts_that_use_one_another_are_merged():
    merged = MergeCompositeFunctions()(FuseOpsByPattern(PATTERNS)(Net))
    assert with_attribute(merged, "Codegen") == {
        "fused_relax_matmul_relax_nn_relu_npu": "npu", "fused_relax_add_relax_matmul_relax_add1_npu": "npu"}
    assert not with_attribute(merged, "Composite") and merged.script().count('"Composite"') == 4
    check(merged)


def test_local_functions_have_names_of_their_own():
    @I.ir_module
    class Named:
        @R.function
        def main(composite: R.Tensor((4,), "float32"), composite0: R.Tensor((4,), "float32")):
            with R.dataflow():
                composite1 = R.add(composite, composite0)
                result = R.nn.relu(R.add(composite1, composite))
                R.output(result)
            return result
    patterns = [("npu.add", is_op("relax.add")(wildcard(), wildcard())),
                ("npu.relu", is_op("relax.nn.relu")(wildcard()))]
    arrays = [np.float32([1, -2, 3, -4]), np.float32([-5, 6, 7, -8])]
    expected = pleat.compile(Named)(*arrays)
    for module in (FuseOpsByPattern(patterns, annotate_codegen=True)(Named),
                   MergeCompositeFunctions()(FuseOpsByPattern(patterns)(Named))):
        run = relax.VirtualMachine(relax.build(pleat.IRModule(handle=module._handle)))["main"]
        np.testing.assert_array_equal(run(*arrays), expected)


def test_parts_with_a_way_back_are_not_merged():
    @I.ir_module
    class Diamond:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.negative(a)
                c = R.add(a, b)
                R.output(c)
            return c
    patterns = [("npu.exp", is_op("relax.exp")(wildcard())), ("npu.add", is_op("relax.add")(wildcard(), wildcard()))]
    merged = MergeCompositeFunctions()(FuseOpsByPattern(patterns)(Diamond))
    assert list(with_attribute(merged, "Codegen")) == ["fused_relax_exp_npu", "fused_relax_add_npu"]
    whole = is_op("relax.add")(is_op("relax.exp")(wildcard()), is_op("relax.negative")(wildcard()))
    assert len(FuseOpsByPattern([("npu.all", whole)])(Diamond)) == 2
    part = is_op("relax.add")(is_op("relax.exp")(wildcard()), wildcard())
    assert len(FuseOpsByPattern([("npu.part", part)])(Diamond)) == 1  # negative is outside, between the two


def test_a_part_may_read_a_tuple():
    @I.ir_module
    class Halves:
        @R.function
        def main(x: R.Tensor((2, 4), "float32")):
            with R.dataflow():
                both = R.split(x, 2, axis=1)
                total = R.add(both[0], both[1])
                out = R.exp(total)
                R.output(total, out)  # nothing else uses the first one
            return out
    halves = [is_tuple_get_item(wildcard(), i) for i in (0, 1)]
    fused = FuseOpsByPattern([("npu.add", is_op("relax.exp")(is_op("relax.add")(*halves)))])(Halves)
    assert [one.name for one in fused["fused_relax_add_relax_exp"].params] == ["both"]
    assert "R.output(out)" in fused["main"].script()


def test_bindings_outside_of_dataflow_blocks_stay():
    @I.ir_module
    class Plain:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            a = R.exp(x)
            b = R.add(a, a)
            c = R.nn.relu(a)
            return (b, c)
    pattern = is_op("relax.nn.relu")(is_op("relax.exp")(wildcard()))
    assert FuseOpsByPattern([("npu.relu", pattern)])(Plain).script() == Plain.script()


def generator(functions, options, _):
    made = []
    for function in functions:
        model = pleat.compile(pleat.IRModule({"main": function.without_attr("Codegen")}))

        def run(*arrays, model=model, count=len(function.params)):
            results = model(*arrays[:count])
            for array, result in zip(arrays[count:], results if isinstance(results, (list, tuple)) else [results]):
                array[...] = result
        made.append(run)
    options["calls"] += len(made)
    return made


@pytest.mark.parametrize("annotate", [True, False])
def test_generated_code_is_called(annotate):
    partitioned = FuseOpsByPattern(PATTERNS, annotate_codegen=annotate)(Net)
    partitioned = partitioned if annotate else MergeCompositeFunctions()(partitioned)
    with pytest.raises(pleat.PleatError, match="no generator of code 'npu'.*relax.ext.npu"):
        RunCodegen()(partitioned)
    pleat.register_func("relax.ext.npu", generator)
    options = {"calls": 0}
    try:
        module = RunCodegen({"npu": options})(partitioned)
    finally:
        pleat.registry.remove_global_func("relax.ext.npu")
    assert options["calls"] == (4 if annotate else 2) and list(module) == ["main"]
    assert module.script().count("R.call_dps_packed(") == options["calls"]
    check(module)


def test_generated_code_of_two_modules():
    """Each calls its own, also where the parts have the same names."""
    def times(factor):
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.multiply(x, R.const(factor, "float32"))
                R.output(y)
            return y
        return FuseOpsByPattern([("npu.scale", is_op("relax.multiply")(wildcard(), wildcard()))],
                                annotate_codegen=True)(pleat.IRModule({"main": main}))
    pleat.register_func("relax.ext.npu", generator)
    try:
        modules = [RunCodegen({"npu": {"calls": 0}})(times(factor)) for factor in (2.0, 3.0)]
    finally:
        pleat.registry.remove_global_func("relax.ext.npu")
    results = [relax.VirtualMachine(relax.build(one))["main"](np.ones(4, "float32"))[0] for one in modules]
    assert results == [2, 3]


def test_parameters_become_constants():
    module = BindParams("main", {"w1": ARRAYS[2]})(Net)
    assert [one.name for one in module["main"].params] == ["x", "w0"]
    np.testing.assert_allclose(pleat.compile(module)(*ARRAYS[:2]), EXPECTED, 1e-5, 1e-6)
    sized = BindParams("main", {"x": ARRAYS[0]})(Net)  # n is 5
    assert "n = T.int64()" not in sized.script() and [one.name for one in sized["main"].params] == ["w0", "w1"]
    np.testing.assert_allclose(pleat.compile(sized)(*ARRAYS[1:]), EXPECTED, 1e-5, 1e-6)
    assert [one.name for one in Net["main"].bind_params({Net["main"].params[1]: ARRAYS[1]}).params] == ["x", "w1"]
    odd = np.float32([[np.nan, np.inf, -np.inf, 1]] * 3)
    assert 'R.const([[T.float32("nan"), T.float32("inf"), ' in BindParams("main", {"w0": odd})(Net).script()
    empty = pleat.compile(Net["main"].bind_params({"x": np.zeros((0, 3), "float32")}))(*ARRAYS[1:])
    assert empty.shape == (0, 4)
    for params, message in (({"w2": ARRAYS[2]}, "no parameter 'w2'"), ({"w1": ARRAYS[0]}, "the shape"),
                            ({"w1": ARRAYS[2].astype("float64")}, "is float32"), ({"x": [1, 2]}, "an array")):
        with pytest.raises(pleat.PleatError, match=message):
            BindParams("main", params)(Net)


def test_calls_leave_out_operands_that_become_constants():
    @I.ir_module
    class Called:
        @R.function(private=True)
        def scaled(by: R.Tensor((2,), "float32"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.multiply(x, by)
            return y

        @R.function
        def main(x: R.Tensor((2,), "float32"), by: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            cls = Called
            y = cls.scaled(by, x)
            return R.add(y, by)

    module = BindParams("scaled", {"by": np.float32([2, 3])})(Called)
    assert "cls.scaled(x)" in module.script()
    ones = np.ones(2, "float32")
    result = relax.VirtualMachine(relax.build(module))["main"](ones, ones)
    assert result.tolist() == [3, 4]


def test_a_part_may_read_a_shape():
    @I.ir_module
    class Wide:
        @R.function
        def main(x: R.Tensor((1, 4), "float32"), s: R.Shape(["n", 4])):
            n = T.int64()
            with R.dataflow():
                y = R.broadcast_to(x, s)
                z = R.nn.relu(y)
                R.output(z)
            return z

    pattern = is_op("relax.nn.relu")(is_op("relax.broadcast_to")(wildcard(), wildcard()))
    module = FuseOpsByPattern([("npu.wide", pattern)])(Wide)
    fused = next(name for name in module.keys() if "fused" in str(name))
    assert 's: R.Shape(["n", 4])' in module[fused].script() and f"cls.{fused}(x, s)" in module.script()


def test_registered_patterns():
    register_patterns(PATTERNS)
    assert [one.name for one in get_patterns_with_prefix("npu.matmul")] == ["npu.matmul", "npu.matmul_relu"]
    assert get_pattern("npu.add").pattern is PATTERNS[2][1] and get_pattern("npu.sub") is None


def test_sizes_become_numbers():
    module = relax.transform.BindSymbolicVars({"n": 5})(Net)
    assert [tuple(one.struct_info.shape) for one in module["main"].params] == [(5, 3), (3, 4), (3, 4)]
    assert "n = T.int64()" not in module.script()
    np.testing.assert_allclose(pleat.compile(module)(*ARRAYS), EXPECTED, 1e-5, 1e-6)
    size = Net["main"].params[0].struct_info.shape[0]
    assert Net["main"].bind_symbolic_vars({size: 5}).script() == module["main"].script()
    with pytest.raises(pleat.PleatError, match="has a size 'm'"):
        relax.transform.BindSymbolicVars({"m": 5})(Net)
    mixed = pleat.script.from_source("""
from pleat.script import relax as R
@R.function
def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("n * m + 1", "m"), "float32")):
    z = R.reshape(x, R.shape([m * n]))
    return (z, y)
""")
    bound = relax.transform.BindSymbolicVars({"n": 4})(mixed).script()
    assert 'R.Tensor((4, "m")' in bound and "n = T" not in bound and "R.shape([m * T.int64(4)])" in bound


def test_equal_values_are_computed_once():
    @I.ir_module
    class Twice:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.negative(a)
                c = R.exp(x)
                d = R.add(R.negative(c), b)
                R.output(b, d)
            return (b, d)
    module = relax.transform.EliminateCommonSubexpr()(Twice)
    assert module.script().count("R.exp(") == module.script().count("R.negative(") == 1
    x = np.arange(4, dtype="float32")
    for result, expected in zip(pleat.compile(module)(x), pleat.compile(Twice)(x)):
        np.testing.assert_array_equal(result, expected)


def test_passes_of_functions_and_analyses():
    @relax.transform.function_pass(opt_level=0, name="Renamed")
    class Renamed:
        def transform_function(self, function, module, context):
            return function.with_attr("kind", "net")
    assert Renamed()(Net)["main"].attrs["kind"] == "net"
    main = Net["main"]
    assert relax.analysis.free_vars(main) == [] and len(relax.analysis.bound_vars(main)) == len(
        relax.analysis.all_vars(main))
    assert relax.analysis.name_to_binding(main)["b"][0].value.op == "relax.nn.relu"
    assert [one.name for one in relax.analysis.free_vars(relax.analysis.name_to_binding(main)["b"][0].value)] == ["a"]
