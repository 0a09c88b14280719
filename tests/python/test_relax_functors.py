# SPDX-License-Identifier: Apache-2.0
"""Classes that look at the calls of graph functions and replace them, and passes made of them."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import relax  # noqa: E402
from pleat.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor  # noqa: E402
from pleat.script import ir as I, relax as R, tir as T  # noqa: E402


@I.ir_module
class Net:
    @T.prim_func
    def double(X: T.Buffer((3, 7), "float32"), Y: T.Buffer((3, 7), "float32")):
        for i, j in T.grid(3, 7):
            Y[i, j] = X[i, j] * T.float32(2)

    @R.function
    def main(x: R.Tensor((3, 5), "float32"), w: R.Tensor((5, 7), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            product = R.matmul(x, w)
            twice = R.call_tir(cls.double, (product,), out_sinfo=R.Tensor((3, 7), "float32"))  # noqa: F821
            positive = R.nn.relu(twice)
            out = R.add(positive, R.const(1.5, "float32"))
            R.output(out)
        return out


X, W = (np.random.default_rng(i).standard_normal(shape, "float32") for i, shape in enumerate(((3, 5), (5, 7))))


def outputs(module):
    result = pleat.compile(module)(X, W)
    return result[0] if isinstance(result, (list, tuple)) else result


@mutator
class ReluRewriter(PyExprMutator):
    def visit_call_(self, call: relax.Call) -> relax.Expr:
        if call.op == pleat.ir.Op.get("relax.nn.relu"):
            return relax.op.nn.leakyrelu(call.args[0], alpha=0.25)
        return super().visit_call_(call)


@pleat.transform.module_pass(opt_level=0, name="ReluToLeaky")
class ReluToLeaky:
    """Replaces each relu."""

    def transform_module(self, mod, context):
        assert isinstance(context, pleat.transform.PassContext)
        rewriter = ReluRewriter(mod)
        for name, function in mod.functions_items():
            if isinstance(function, relax.Function):
                rewriter.builder_.update_func(name, rewriter.visit_expr(function))
        return rewriter.builder_.get()


def test_a_call_is_replaced():
    new = ReluToLeaky()(Net)
    assert "R.nn.relu" not in new.script() and "R.nn.leakyrelu(twice, alpha=0.25)" in new.script()
    assert '"num_input": 1' in new.script() and "R.nn.relu" in Net.script()
    twice = 2 * (X @ W)
    np.testing.assert_allclose(outputs(Net), np.maximum(twice, 0) + 1.5, 1e-5, 1e-6)
    np.testing.assert_allclose(outputs(new), np.where(twice > 0, twice, twice / 4) + 1.5, 1e-5, 1e-6)
    again = pleat.transform.Sequential([ReluToLeaky(), relax.transform.AnnotateTIROpPattern(),
                                        relax.transform.FuseOps(), relax.transform.FuseTIR()])(Net)
    np.testing.assert_allclose(outputs(again), outputs(new), 1e-5, 1e-6)


def test_without_changes_the_function_is_equal():
    class Same(PyExprMutator):
        pass
    pleat.ir.assert_structural_equal(Same(Net).visit_expr(Net["main"]), Net["main"])


def test_bindings_are_added():
    @mutator
    class Split(PyExprMutator):
        def visit_call_(self, call):
            if call.op.name == "relax.add":
                half = self.builder_.emit(relax.op.multiply(call.args[1], relax.const(0.5, "float32")))
                return relax.op.add(relax.op.add(call.args[0], half), half)
            return super().visit_call_(call)
    new = Net.clone()
    new["main"] = Split(Net).visit_expr(Net["main"])
    assert new.script().count("R.add(") == 2
    np.testing.assert_allclose(outputs(new), outputs(Net), 1e-6)


def test_operators_become_calls_of_functions():
    class ToDouble(PyExprMutator):
        def visit_call_(self, call):
            if call.op.name == "relax.nn.relu":
                return relax.Call(pleat.ir.Op.get("relax.nn.relu"),
                                  [relax.call_tir("double", (call.args[0],), out_sinfo=R.Tensor((3, 7), "float32"))])
            return call
    new = Net.clone()
    new["main"] = ToDouble(Net).visit_expr(Net["main"])
    np.testing.assert_allclose(outputs(new), np.maximum(4 * (X @ W), 0) + 1.5, 1e-5, 1e-6)


def test_calls_are_visited():
    @visitor
    class Names(PyExprVisitor):
        def __init__(self):
            super().__init__()
            self.names, self.attrs = [], []

        def visit_call_(self, call):
            self.names.append(getattr(call.op, "name", str(call.op)))
            self.attrs.append(sorted(call.attrs))
            super().visit_call_(call)
    names = Names()
    names.mod = Net
    assert names.visit_expr(Net["main"]) is None
    assert names.names == ["relax.matmul", "relax.call_tir", "relax.nn.relu", "relax.add"]
    assert names.attrs[1] == ["out_sinfo"]


def test_nested_calls_are_visited():
    function = pleat.script.from_source("""
@R.function
def main(x: R.Tensor((3, 5), "float32"), w: R.Tensor((5, 7), "float32")):
    if R.const(True, "bool"):
        y = R.nn.relu(R.nn.relu(x))
    else:
        y = x
    return R.matmul(y, w)
""")
    function = function["main"] if isinstance(function, pleat.IRModule) else function
    assert ReluRewriter().visit_expr(function).script().count("leakyrelu") == 2


def test_passes_as_classes_take_arguments():
    @pleat.tir.transform.prim_func_pass(opt_level=1)
    class Rename:
        def __init__(self, suffix):
            self.suffix = suffix

        def transform_function(self, function, module, context):
            return function.with_attr("note", function.__name__ + self.suffix)

    made = Rename("_new")
    assert made.info.name == "Rename" and made.info.opt_level == 1
    assert made(Net)["double"].attrs["note"] == "double_new"
