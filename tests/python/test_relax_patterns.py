# SPDX-License-Identifier: Apache-2.0
"""relax.dpl: the patterns of expressions."""
import pytest

pytest.importorskip("pleat")
from pleat import relax  # noqa: E402
from pleat.relax.dpl import (  # noqa: E402
    is_const, is_dfv, is_gv, is_op, is_shape, is_tuple, is_tuple_get_item, is_var, wildcard)
from pleat.script import ir as I, relax as R  # noqa: E402

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
