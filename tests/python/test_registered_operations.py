# SPDX-License-Identifier: Apache-2.0
"""Operations that a program registers are read, printed and compared; rules say what calls of operations
mean on a target."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, tir  # noqa: E402
from pleat.ir import register_intrin_lowering, register_op_attr  # noqa: E402
from pleat.script import tir as T  # noqa: E402

register_op_attr("tir.test_blur", "TCallEffectKind", tir.CallEffectKind.UpdateState)
register_op_attr("tir.test_cube_root", "TCallEffectKind", tir.CallEffectKind.Pure)


def blur(data, offset):
    return tir.call_intrin("int32", "tir.test_blur", data, offset)


def both(a, b, c):
    return tir.all(tir.any(a, b), c)


@T.prim_func
def blurred(A: T.Buffer((11,), "float32")):
    for i in range(11):
        T.evaluate(blur(A.data, i + 1))
        T.evaluate(T.call_intrin("int32", "tir.test_blur", A.data, i))


@register_intrin_lowering("tir.test_cube_root", target="llvm")
def _(call):
    if call.dtype != "float32":
        return call
    return tir.call_pure_extern("float32", "cbrtf", call.args[0])


def test_calls_are_printed_and_read_again():
    text = blurred.script()
    assert 'T.Call("int32", tvm.ir.Op.get("tir.test_blur"), [A.data, i + 1])' in text
    again = pleat.script.from_source(text)
    pleat.ir.assert_structural_equal(again, blurred)
    again = tir.PrimFunc(blurred.params, blurred.body, buffer_map=blurred.buffer_map)
    again = again.with_attr("global_symbol", "blurred")
    pleat.ir.assert_structural_equal(again, blurred)
    call = blurred.body.body[0].value
    assert call.op == "tir.test_blur" and call.op.name == "tir.test_blur"


def test_an_operation_without_a_rule_does_not_run():
    with pytest.raises(pleat.PleatError, match="tir.test_blur has no meaning"):
        pleat.build(blurred)


def test_unknown_operations_are_refused():
    with pytest.raises(pleat.PleatError, match="there is no T.test_blurr"):
        pleat.script.from_source("""@T.prim_func
def f(A: T.Buffer((11,), "float32")):
    T.evaluate(T.call_intrin("int32", "tir.test_blurr", A.data, 1))
""")
    A = te.placeholder((5,), name="A")
    B = te.compute((5,), lambda i: tir.call_intrin("float32", "tir.test_blurr", A[i]), name="B")
    with pytest.raises(pleat.PleatError, match="tir.test_blurr"):
        te.create_prim_func([A, B])


def test_operations_by_their_names():
    """T.NAME(…), as in TVM 0.8: without a dtype, the call is a handle."""
    @T.prim_func
    def named(A: T.Buffer((11,), "float32")):
        T.evaluate(T.test_blur(A.data, A.shape[0], dtype="int32"))
        T.evaluate(T.test_blur(A.data, 1))

    calls = [one.value for one in named.body]
    assert [(str(call.op), call.dtype) for call in calls] == [("tir.test_blur", "int32"), ("tir.test_blur", "handle")]
    pleat.ir.assert_structural_equal(pleat.script.from_source(named.script()), named)


def test_a_rule_gives_a_meaning():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: tir.call_intrin(A.dtype, "tir.test_cube_root", A[i]) + 1, name="B")
    run = pleat.build(te.create_schedule(B.op), [A, B], "llvm", name="roots")
    a = np.linspace(-2, 3, 13, dtype="float32")
    b = np.zeros_like(a)
    run(a, b)
    np.testing.assert_allclose(b, np.cbrt(a) + 1, 1e-5)


def test_the_highest_level_counts():
    @T.prim_func
    def exponential(A: T.Buffer((7,), "float32"), B: T.Buffer((7,), "float32")):
        for i in range(7):
            B[i] = T.exp(A[i])

    a, b = np.linspace(0.5, 2, 7, dtype="float32"), np.zeros(7, "float32")
    register_intrin_lowering("tir.exp", "llvm", level=5,
                             f=lambda call: tir.call_pure_extern("float32", "logf", call.args[0]))
    register_intrin_lowering("tir.exp", "llvm", level=4, f=lambda call: call.args[0])
    try:
        pleat.build(exponential)(a, b)
        np.testing.assert_allclose(b, np.log(a), 1e-5, 1e-6)
        register_intrin_lowering("tir.exp", "llvm", level=6, f=lambda call: call.args[0].astype("float64"))
        with pytest.raises(TypeError, match="gives float64 for float32"):
            pleat.build(exponential)
    finally:
        pleat.ir.op._rules.pop(("tir.exp", "llvm"))
    pleat.build(exponential)(a, b)
    np.testing.assert_allclose(b, np.exp(a), 1e-5)


def test_a_rule_that_never_ends_is_refused():
    register_intrin_lowering("tir.test_blur", "llvm", f=lambda call: blur(call.args[0], call.args[1] + 1))
    try:
        with pytest.raises(ValueError, match="again and again"):
            pleat.build(blurred)
    finally:
        pleat.ir.op._rules.pop(("tir.test_blur", "llvm"))


def test_functions_of_conditions_take_expressions_of_a_script():
    @T.prim_func
    def conditions(A: T.Buffer((1,), "bool"), i: T.bool, j: T.bool, k: T.bool):
        A[0] = both(i, j, k)

    assert "A[0] = (i or j) and k" in conditions.script()


@pytest.mark.parametrize("target, fast", [("cuda", "__expf"), ("opencl", "native_exp")])
def test_functions_of_devices(target, fast):
    @T.prim_func
    def exponential(A: T.Buffer((70,), "float32"), B: T.Buffer((70,), "float32")):
        for b in T.thread_binding(10, thread="blockIdx.x"):
            for t in T.thread_binding(7, thread="threadIdx.x"):
                B[b * 7 + t] = T.exp(A[b * 7 + t])

    register_intrin_lowering("tir.exp", target, f=lambda call: tir.call_pure_extern("float32", fast, call.args[0]))
    try:
        built = pleat.build(exponential, target=target)
    except pleat.PleatError as error:
        pytest.skip(f"no {target}: {error}")
    finally:
        pleat.ir.op._rules.pop(("tir.exp", target))
    assert f"{fast}(A[" in built.imported_modules[0].get_source()
