# SPDX-License-Identifier: Apache-2.0
"""The parts of graph functions as Python objects, with TVM's classes and fields."""
import pytest
from built import skip_sanitized

skip_sanitized()
np = pytest.importorskip("numpy")
pleat = pytest.importorskip("pleat")
from pleat import relax  # noqa: E402
from pleat.script import from_source, relax as R  # noqa: E402

TEXT = """
from pleat.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function(private=True)
    def callee(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        return R.exp(x)

    @R.function(pure=False)
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool"),
             t: R.Tuple(R.Tensor((2,), "int8"), R.Shape(["m"])), e: R.Object, p: R.Prim("int64"),
             f: R.Callable((R.Object,), R.Object, False), u: R.Tensor("float16", ndim=3)):
        R.func_attr({"num_input": 2, "name": ["a", 1]})
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a, b = R.split(x, 2, axis=1)
            y = R.add(a, R.const([[1.0, 2.5]], "float32"))
            q = R.match_cast(t[0], R.Tensor((m,), "int8"))
            R.output(y, q)
        z = R.reshape(y, R.shape([n * 2]))
        if c:
            w = R.exp(z)
        else:
            k = R.negative(z)
            w = R.tanh(k)
        R.print(w, format="text")
        v = R.call_dps_packed("custom", (w,), out_sinfo=R.Tensor((n * 2,), "float32"))
        return (v, (q, R.prim_value(3)), Module.callee(x))
"""


def test_parameters_have_types():
    main, callee = (from_source(TEXT)[name] for name in ("main", "callee"))
    x, c, t, e, p, f, u = main.params
    assert isinstance(x, relax.Var) and x.name_hint == "x" and x.struct_info.dtype == "float32"
    assert [str(extent) for extent in x.struct_info.shape] == ["n", "4"] and x.struct_info.ndim == 2
    assert c.struct_info.shape == () and p.struct_info.dtype == "int64"
    assert [type(field) for field in t.struct_info.fields] == [relax.TensorStructInfo, relax.ShapeStructInfo]
    assert isinstance(e.struct_info, relax.ObjectStructInfo)
    assert isinstance(f.struct_info, relax.FuncStructInfo) and f.struct_info.purity is False
    assert u.struct_info.shape is None and u.struct_info.ndim == 3 and u.struct_info.dtype == "float16"
    assert main.attrs == {"num_input": 2, "name": ["a", 1]} and main.is_pure is False
    assert callee.is_pure and callee.ret_struct_info.ndim == 2 and main.ret_struct_info is None
    with pytest.raises(AttributeError, match="no attribute 'parameters'"):
        main.parameters


def test_bindings():
    main = from_source(TEXT)["main"]
    flow, rest = main.body.blocks
    assert type(flow) is relax.DataflowBlock and type(rest) is relax.BindingBlock
    by_name = {one.var.name_hint: one for block in (flow, rest) for one in block.bindings}
    y, q, w, v = (by_name[name] for name in "yqwv")
    assert y.value.op == pleat.ir.Op.get("relax.add") and y.value.args[0] is by_name["a"].var
    assert isinstance(y.value.args[1], relax.Constant) and y.value.args[1].data.tolist() == [[1.0, 2.5]]
    assert isinstance(by_name["a"].var, relax.DataflowVar) and type(y.var) is relax.Var
    assert isinstance(by_name["a"].value, relax.TupleGetItem) and by_name["b"].value.index == 1
    assert isinstance(q, relax.MatchCast) and q.struct_info.dtype == "int8"
    shape = by_name["z"].value.args[1]
    assert isinstance(shape, relax.ShapeExpr) and len(shape.values) == 1
    assert isinstance(w.value, relax.If) and w.value.cond is main.params[1]
    assert len(w.value.false_branch.blocks[0].bindings) == 2
    assert by_name["_"].value.attrs == {"format": "text"}
    assert v.value.args[0] == "custom" and v.value.attrs["out_sinfo"].ndim == 1
    result = main.body.body
    assert isinstance(result, relax.Tuple) and result[0] is v.var and len(result) == 3
    assert isinstance(result.fields[1][1], relax.PrimValue) and result[1][1].value == 3


def test_inferred_types():
    module = from_source("""
from pleat.script import ir as I, relax as R
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            z = R.exp(R.permute_dims(x))
            R.output(z)
        return z
""")
    bindings = relax.transform.Normalize()(module)["main"].body.blocks[0].bindings
    assert [one.var.struct_info.shape for one in bindings] == [(3, 2), (3, 2)]
    last = module["main"].body.blocks[0].bindings[-1]  # inferred where it is asked for
    assert last.var.struct_info.shape == last.value.struct_info.shape == (3, 2)


def test_visits_and_new_expressions():
    main = from_source(TEXT)["main"]
    seen = []
    relax.nodes.post_order_visit(main.body, lambda one: seen.append(one))
    calls = [one.op.name for one in seen if isinstance(one, relax.Call) and isinstance(one.op, pleat.ir.Op)]
    assert calls == ["relax.split", "relax.add", "relax.reshape", "relax.exp", "relax.negative", "relax.tanh",
                     "relax.print", "relax.call_dps_packed"]
    assert len({id(one) for one in seen}) == len(seen)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with builder.function("main", [x]):
        y = builder.emit(relax.op.reshape(x, relax.ShapeExpr([3, 2])))
        z = builder.emit(relax.op.add(y, relax.Constant(np.float32([[1.0, 2.0]]))))
        builder.emit_func_output(relax.Tuple([z, relax.TupleGetItem(relax.Tuple([y, z]), 0)]))
    made = builder.get()["main"]
    assert "R.reshape(x, R.shape([3, 2]))" in made.script() and 'R.const([[1.0, 2.0]], "float32")' in made.script()


def test_functions_have_attributes_and_are_made_of_expressions():
    main = from_source("""
from pleat.script import relax as R
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    y = R.exp(x)
    return y
""")["main"]
    named = main.with_attr({"Codegen": "other", "global_symbol": "net"})
    assert named.attrs == {"Codegen": "other"} and named.__name__ == "net"
    assert named.without_attr("Codegen").attrs == {} and "private=True" in named.without_attr("global_symbol").script()
    pleat.ir.assert_structural_equal(named.without_attr("Codegen"), main)
    assert pleat.ir.structural_hash(named.without_attr("Codegen")) == pleat.ir.structural_hash(main)
    x, y = (relax.Var(name, R.Tensor((2, 3), "float32")) for name in "xy")
    made = relax.Function([x, y], relax.op.add(x, y), ret_ty=R.Tensor((2, 3), "float32"))
    ones = np.ones((2, 3), "float32")
    np.testing.assert_array_equal(pleat.compile(pleat.IRModule({"main": made}))(ones, ones), 2 * ones)


def test_types_of_operators_with_several_results():
    main = from_source("""
from pleat.script import relax as R
@R.function
def main(x: R.Tensor((4, 6), "float32")):
    parts = R.split(x, [2], axis=1)
    last = parts[1]
    both = (last, parts[0])
    y = both[1]
    return (last, y)
""")["main"]
    types = {one.var.name: one.var.struct_info for one in main.body.blocks[0].bindings}
    assert [one.shape for one in types["parts"].fields] == [(4, 2), (4, 4)]
    assert types["last"].shape == (4, 4) and [one.struct_info.shape for one in main.body.body.fields] == [(4, 4), (4, 2)]
