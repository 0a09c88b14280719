# SPDX-License-Identifier: Apache-2.0
"""relax.dpl: patterns, and what takes the place of what they match."""
import pytest
from built import skip_sanitized

skip_sanitized()
np = pytest.importorskip("numpy")
pleat = pytest.importorskip("pleat")
from pleat import relax  # noqa: E402
from pleat.relax.dpl import (  # noqa: E402
    PatternContext, PatternMatchingRewriter, is_const, is_dfv, is_gv, is_op, is_shape, is_tuple,
    is_tuple_get_item, is_var, rewrite_bindings, rewrite_call, wildcard)
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402

X = np.arange(6, dtype="float32").reshape(2, 3) - 2.5


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w0: R.Tensor((3, 4), "float32"), w1: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w0)
            b = R.nn.relu(a)
            w = R.add(w1, w1)
            c = R.matmul(x, w)
            d = R.add(R.const(0.5, "float32"), c)
            out = R.concat((b, d), axis=1)
            R.output(out)
        return out


MAIN = Net["main"]
BY_NAME = {one.var.name: one.value for one in MAIN.body.blocks[0].bindings}
VALUES = relax.analysis.get_var2val(MAIN)


def outputs(function):
    random = np.random.default_rng(0)
    arrays = [X, *(random.uniform(-1, 1, (3, 4)).astype("float32") for _ in range(2))]
    return pleat.compile(pleat.IRModule({"main": function}))(*arrays)


def test_calls_match_through_variables():
    x, w = wildcard(), wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.matmul")(x, w))
    assert not pattern.match(BY_NAME["b"]) and pattern.match(BY_NAME["b"], VALUES)
    assert not pattern.match(BY_NAME["d"], VALUES)
    found = pattern.extract_matched_expr(BY_NAME["b"], VALUES)
    assert found[x] is MAIN.params[0] and found[pattern] is BY_NAME["b"] and found[w].name == "w0"
    assert is_op("relax.add")(w, w).match(BY_NAME["w"]) and not is_op("relax.matmul")(w, w).match(BY_NAME["a"])
    assert is_op("relax.add")(wildcard(), is_const()).match(BY_NAME["d"])  # sums match in either order
    assert (is_op("relax.nn.gelu") | is_op("relax.nn.relu"))(wildcard()).match(BY_NAME["b"])


def test_types_tuples_and_attributes():
    assert wildcard().has_shape((2, 4)).match(BY_NAME["a"]) and not wildcard().has_shape((2, 3)).match(BY_NAME["a"])
    assert (wildcard().has_dtype("float32") & ~is_const()).match(BY_NAME["a"])
    assert wildcard().has_ty(R.Tensor((2, 4))).match(BY_NAME["a"])
    pattern = is_op("relax.concat")(is_tuple([wildcard(), wildcard()]))
    assert pattern.has_attr({"axis": 1}).match(BY_NAME["out"]) and not pattern.has_attr({"axis": 0}).match(BY_NAME["out"])
    x = relax.Var("x", R.Tensor((2, "n"), "float32"))
    assert is_var("x").match(x) and not is_dfv().match(x) and not is_gv().match(x)
    assert is_tuple([is_const(), is_var()], unordered=True).match(relax.Tuple([x, relax.const(1)]))
    assert is_tuple_get_item(is_var(), 1).match(x[1]) and not is_tuple_get_item(is_var(), 0).match(x[1])
    assert is_shape([2, 3]).match(relax.ShapeExpr([2, 3]))
    with pytest.raises(IndexError):
        is_tuple([is_const()])[1]


def test_calls_are_rewritten_until_nothing_changes():
    x, w = wildcard(), wildcard()
    new = rewrite_call(is_op("relax.nn.relu")(x), lambda _, found: R.maximum(found[x], R.const(0.0, "float32")), MAIN)
    assert "relu" not in new.script() and "R.maximum(a," in new.script()
    twice = PatternMatchingRewriter.from_pattern(is_op("relax.add")(w, w), lambda _, found: relax.op.multiply(
        relax.op.negative(found[w]), relax.const(-2.0)))
    new = twice(pleat.IRModule({"main": new}))["main"]
    assert new.script().count("R.add(") == 1
    np.testing.assert_allclose(outputs(new), outputs(MAIN), 1e-6)
    assert rewrite_call(is_op("relax.add")(x, w), lambda call, _: call, MAIN).script() == MAIN.script()
    with pytest.raises(pleat.PleatError, match="do not come to an end"):
        rewrite_call(is_op("relax.add")(x, w), lambda _, found: relax.op.add(found[w], found[x]), MAIN)
    with pytest.raises(pleat.PleatError, match="after .* replacements in [1-9] rounds"):  # each gives two more
        rewrite_call(is_op("relax.add")(x, w), lambda call, found: relax.op.add(call, found[x]), MAIN)


def test_later_patterns_see_replacements():
    x = wildcard()
    relu = is_op("relax.nn.relu")(x)
    concat = is_op("relax.concat")(is_tuple([relu, wildcard()]))
    rules = PatternMatchingRewriter.from_pattern(relu, lambda _, found: relax.op.exp(found[x])) | \
        PatternMatchingRewriter.from_pattern(concat, lambda _, found: found[relu])
    assert "R.concat((b, d)" in rules(MAIN).script()


def test_casts_and_outputs_of_blocks():
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")):
        m = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.nn.relu(a)
            R.output(b)
        with R.dataflow():
            c = R.match_cast(b, R.Tensor((m, 3), "float32"))
            d = R.add(R.negative(b), R.zeros((m, 3), "float32"))
            e = R.add(c, d)
            R.output(e)
        return e
    x = wildcard()
    new = rewrite_call(is_op("relax.negative")(is_op("relax.nn.relu")(x)), lambda _, found: found[x], main).script()
    assert "R.match_cast(b, " in new and "R.output(a, b)" in new  # the second block reads `a`
    new = rewrite_call(is_op("relax.nn.relu")(x), lambda _, found: found[x], main).script()
    assert "R.match_cast(a, " in new
    with PatternContext() as context:
        relu = is_op("relax.nn.relu")(wildcard())
        relu >> is_op("relax.negative")(relu)
    assert rewrite_bindings(context, lambda found, _: {found[relu]: R.const(0.0)}, main).script() == main.script()


def test_what_is_not_used_any_more_goes():
    a, w = wildcard(), wildcard()
    new = rewrite_call(is_op("relax.nn.relu")(is_op("relax.matmul")(a, w)), lambda _, found: relax.op.matmul(
        relax.op.nn.relu(found[a]), found[w]), MAIN)
    assert new.script().count("R.matmul(") == 2 and "R.matmul(x, w0)" not in new.script()


def test_bindings_of_several_patterns_are_rewritten():
    with PatternContext() as context:
        x, w0, w1 = wildcard(), wildcard(), wildcard()
        first, second = is_op("relax.matmul")(x, w0), is_op("relax.matmul")(x, w1)
    assert {one.name for one in context.match_dfb(MAIN.body.blocks[0]).values()} == {"x", "w0", "w", "a", "c"}

    def rewriter(found, values):
        assert found[first] in values
        both = relax.op.matmul(found[x], R.concat([found[w0], found[w1]], axis=1))
        parts = relax.op.split(both, 2, 1)
        return {found[first]: parts[0], found[second]: parts[1]}
    new = rewrite_bindings(context, rewriter, MAIN)
    assert new.script().count("R.matmul(") == 1 and new.script().count("R.split(") == 1
    np.testing.assert_allclose(outputs(new), outputs(MAIN), 1e-6)


def test_only_one_user():
    with PatternContext() as context:
        product = is_op("relax.matmul")(wildcard(), wildcard())
        product >> is_op("relax.nn.relu")(product)
    assert context.match_dfb(MAIN.body.blocks[0])
    with PatternContext() as context:
        is_var("x") >> is_op("relax.matmul")(wildcard(), wildcard())
    assert context.match_dfb(MAIN.body.blocks[0]) is None  # two products use it


def test_rewriters_of_modules():
    @R.rewriter
    class Doubled:
        @R.function
        def pattern(x: R.Tensor((3, 4), "float32")):
            y = R.add(x, x)
            return y

        @R.function
        def replacement(x: R.Tensor((3, 4), "float32")):
            y = R.negative(x)
            return R.multiply(y, R.const(-2.0, "float32"))

    @R.rewriter
    class OneConcat:
        @R.function
        def pattern(a: R.Tensor("float32"), b: R.Tensor("float32")):
            return R.concat((a, b), axis=1)

        @R.function
        def replacement(a: R.Tensor("float32"), b: R.Tensor("float32")):
            return R.permute_dims(R.concat((R.permute_dims(a), R.permute_dims(b)), axis=0))
    new = (Doubled | OneConcat)(Net)
    assert "R.add(w1, w1)" not in new.script() and new.script().count("R.permute_dims(") == 3
    np.testing.assert_allclose(outputs(new["main"]), outputs(MAIN), 1e-6)
    with pytest.raises(KeyError, match="replacement"):
        PatternMatchingRewriter.from_module(pleat.IRModule({"pattern": MAIN}))
    with pytest.raises(ValueError, match="same signature"):
        PatternMatchingRewriter.from_module(pleat.IRModule({"pattern": MAIN, "replacement": MAIN.bind_params(
            {"w1": np.zeros((3, 4), "float32")})}))
