# SPDX-License-Identifier: Apache-2.0
"""Operators that functions of Python compute: their layouts, costs, exceptions, threads, and what
reports say about them."""
import json
import os
import subprocess
import threading

import numpy as np
import onnx
import pytest
from built import BUILD, ROOT, skip_sanitized
from onnx import TensorProto, helper

skip_sanitized()
pleat = pytest.importorskip("pleat")

DOMAIN = "com.example"


def model_of(nodes, inputs, outputs, weights=(), infos=()):
    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph(
        nodes, "g", [info(*one) for one in inputs], [info(*one) for one in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights],
        value_info=[info(*one) for one in infos])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17),
                                                   helper.make_opsetid(DOMAIN, 1)], ir_version=8)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


WEIGHTS = random(13, 5, 3, 3, seed=1), random(7, 13, 1, 1, seed=2)


def between(kernel_attributes=None, shape=(2, 5, 9, 11)):
    """Convolution, the custom operator, bias and relu, convolution."""
    n, c, h, w = shape
    return model_of(
        [helper.make_node("Conv", ["x", "a"], ["t"], "first", pads=[1, 1, 1, 1]),
         helper.make_node("Scale", ["t"], ["u"], "own", domain=DOMAIN,
                          **(kernel_attributes or {"alpha": 0.5})),
         helper.make_node("Relu", ["u"], ["v"], "relu"),
         helper.make_node("Conv", ["v", "b"], ["y"], "second")],
        [("x", [n, c, h, w])], [("y", [n, 7, h, w])],
        [("a", WEIGHTS[0]), ("b", WEIGHTS[1])])


def conv(x, w, pad):
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows.astype(np.float64), w)


def expected_between(x, alpha=0.5):
    t = conv(x, WEIGHTS[0], 1)
    return conv(np.maximum(t * alpha, 0), WEIGHTS[1], 0)


def scale(x, alpha=1.0):
    return x * np.float32(alpha)


X = random(2, 5, 9, 11, seed=3)


def way(layout, cycles):
    return {"inputs": [layout], "outputs": [layout], "cycles": cycles}


@pytest.mark.parametrize("ways", [
    None, [way(None, 10)], [way("NHWC", 10)], [way("NCHW16c", 10), way("NHWC", 1e7)],
    [way(lambda n, c, h, w: [n, h, w, c], 10)], [way("n, c, h, w -> w, h, (c + h) % 13, n", 10)],
    [{"inputs": ["NHWC"], "outputs": [None], "cycles": 5}, way("NCHW8c", 1e9)],
    [{"inputs": [None], "outputs": ["NCHW8c"]}],
])
@pytest.mark.parametrize("policy", ["optimal", "none", "forward", "backward"])
def test_layouts(ways, policy):
    def run(x, alpha, call, out):
        one = (ways or [{}])[call.way]
        layouts = [pleat.Layout(one.get(field, [None])[0] or "NCHW", shape=(2, 13, 9, 11))
                   for field in ("inputs", "outputs")]
        plain = layouts[0].unpack(x)
        out[0][...] = layouts[1].pack(plain * np.float32(alpha))
    op = pleat.Operator(run, infer=lambda x, **_: x, ways=ways)
    model = pleat.compile(between(), operators={f"{DOMAIN}::Scale": op}, policy=policy, cache=False)
    np.testing.assert_allclose(model(X), expected_between(X), rtol=1e-4, atol=1e-4)


def compiled(model, function, **options):
    return pleat.compile(model, operators={f"{DOMAIN}::Scale": function}, cache=False, **options)


LIKE_X = {"infer": lambda x, **_: x}


def test_types_declared_by_the_model():
    model = between()
    with pytest.raises(pleat.PleatError, match="the function does not infer it"):
        compiled(model, scale)
    model.graph.value_info.append(
        helper.make_tensor_value_info("u", TensorProto.FLOAT, [2, 13, 9, 11]))
    np.testing.assert_allclose(compiled(model, scale)(X), expected_between(X), 1e-4, 1e-4)


def test_attributes_and_call():
    seen = []

    def run(x, call, **attributes):
        seen.append((call, attributes))
        return x
    model = between({"alpha": 0.5, "axes": [3, -1], "mode": "up", "rates": [0.5, 2.0], "n": 7})
    compiled(model, pleat.Operator(run, **LIKE_X))(X)
    call, attributes = seen[0]
    assert attributes == {"alpha": 0.5, "axes": [3, -1], "mode": "up", "rates": [0.5, 2.0], "n": 7}
    assert (call.function, call.node, call.way) == (f"{DOMAIN}::Scale", "own", 0)
    assert call.inputs[0].shape == (2, 13, 9, 11) and call.inputs[0].dtype == np.float32


def test_the_planner_chooses_the_cheapest_way():
    used = []

    def run(x, alpha, call):
        used.append(call.way)
        return scale(x, alpha)

    def layout_of(ways):
        used.clear()
        op = pleat.Operator(run, ways=ways, **LIKE_X)
        compiled(between(), op)(X)
        plan = pleat.plan(between(), operators={f"{DOMAIN}::Scale": op})
        kernel = next(k for k in plan.kernels if "own" in k.operators)
        return used[0], [operand.layout for operand in kernel.operands]
    assert layout_of([way("NHWC", 10), way(None, 1e9)]) == (0, ["NHWC", "NHWC"])
    assert layout_of([way("NHWC", 1e9), way(None, 10)]) == (1, ["NCHW", "NCHW"])


@pytest.mark.parametrize("unused", [0, 1, 2])
def test_several_outputs(unused):
    def parts(x, bias):
        return x[:, :2] + bias, x[:, 2:] * 2, x.sum(axis=1)
    op = pleat.Operator(parts, infer=lambda x, bias: [((3, 2, 5, 1), x.dtype), ((3, 5, 5, 1), x.dtype),
                                                      ((3, 5, 1), x.dtype)])
    names = ["p", "q", "r"]
    names[unused] = ""
    kept = [name for name in names if name]
    nodes = [helper.make_node("Relu", ["x"], ["z"], "relu"),
             helper.make_node("Scale", ["z", "b"], names, "own", domain=DOMAIN)]
    nodes += [helper.make_node("Neg", [name], [f"{name}_out"], f"neg_{name}") for name in kept]
    shapes = {"p": [3, 2, 5, 1], "q": [3, 5, 5, 1], "r": [3, 5, 1]}
    model = model_of(nodes, [("x", [3, 7, 5, 1])], [(f"{n}_out", shapes[n]) for n in kept],
                     [("b", random(2, 5, 1, seed=5))])
    x = random(3, 7, 5, 1)
    results = parts(np.maximum(x, 0), random(2, 5, 1, seed=5))
    wanted = [-result for name, result in zip("pqr", results) if name != "pqr"[unused]]
    for result, expected in zip(compiled(model, op).run([x]), wanted):
        np.testing.assert_array_equal(result, expected)
    if unused != 0:  # an output of the graph, and one that a kernel reads too
        model.graph.output.append(helper.make_tensor_value_info("p", TensorProto.FLOAT, shapes["p"]))
        np.testing.assert_array_equal(compiled(model, op).run([x])[-1], results[0])


def test_layouts_of_further_outputs():
    def parts(x, call, out):
        nhwc = call.way == 0
        c = x.shape[3] if nhwc else x.shape[1]
        out[0][...] = x * 2
        plain = np.moveaxis(x, 3, 1) if nhwc else x
        out[1][...] = pleat.Layout("NCHW4c", shape=plain.shape).pack(plain * 3)
        assert c == 13
    for cheap in ("NHWC", "NCHW"):
        ways = [{"inputs": [one], "outputs": [one, "NCHW4c"], "cycles": 10 if one == cheap else 1e8}
                for one in ("NHWC", "NCHW")]
        op = pleat.Operator(parts, infer=lambda x: [x, x], ways=ways)
        nodes = [helper.make_node("Scale", ["x"], ["p", "q"], "own", domain=DOMAIN),
                 helper.make_node("Conv", ["p", "b"], ["y"], "c1"),
                 helper.make_node("Conv", ["q", "b"], ["z"], "c2")]
        model = model_of(nodes, [("x", [1, 13, 6, 5])],
                         [("y", [1, 7, 6, 5]), ("z", [1, 7, 6, 5])], [("b", WEIGHTS[1])])
        x = random(1, 13, 6, 5)
        y, z = compiled(model, op).run([x])
        np.testing.assert_allclose(y, conv(2 * x, WEIGHTS[1], 0), 1e-4, 1e-4)
        np.testing.assert_allclose(z, conv(3 * x, WEIGHTS[1], 0), 1e-4, 1e-4)
    op.ways = [{"outputs": ["NCHW", "NCHW"]}, {"outputs": ["NCHW", "NHWC"]}]
    with pytest.raises(pleat.PleatError, match="only the first output may have another layout"):
        compiled(model, op)


def test_constants_and_a_tensor_read_twice():
    def run(x, w, y, call):
        assert x.shape == y.shape == (2, 4, 3) and w.shape == (3, 5)
        return np.einsum("kmn,nj->kmj", x + y, w)
    op = pleat.Operator(run, infer=lambda x, w, y: ((4, 2, 5), x.dtype), ways=[
        {"inputs": ["i, j, k -> j, i, k", "i, j -> j, i", "i, j, k -> j, i, k"],
         "outputs": ["i, j, k -> j, i, k"]}])
    weights = random(5, 3, seed=4)
    model = model_of([helper.make_node("Exp", ["x"], ["z"], "exp"),
                      helper.make_node("Scale", ["z", "w", "z"], ["y"], "own", domain=DOMAIN)],
                     [("x", [4, 2, 3])], [("y", [4, 2, 5])], [("w", weights)])
    x = random(4, 2, 3)
    np.testing.assert_allclose(compiled(model, op)(x), 2 * np.exp(x) @ weights.T, 1e-4, 1e-4)
    op.ways = [{"inputs": ["i, j, k -> j, i, k", None, None]}]
    with pytest.raises(pleat.PleatError, match="reads twice would need two layouts"):
        compiled(model, op)


def test_no_inputs_scalars_and_empty_tensors():
    op = pleat.Operator(lambda: np.float32(3), infer=lambda: ((), np.float32))
    model = model_of([helper.make_node("Scale", [], ["s"], "own", domain=DOMAIN),
                      helper.make_node("Mul", ["x", "s"], ["y"], "mul")], [("x", [2, 3])], [("y", [2, 3])])
    np.testing.assert_array_equal(compiled(model, op)(np.ones((2, 3), np.float32)),
                                  np.full((2, 3), 3, np.float32))
    optional = pleat.Operator(lambda x, a, b: x if a is None else b, infer=lambda x, a, b: x)
    model = model_of([helper.make_node("Scale", ["x", "", "x"], ["y"], "own", domain=DOMAIN)],
                     [("x", [2, 3])], [("y", [2, 3])])
    x = random(2, 3)
    np.testing.assert_array_equal(compiled(model, optional)(x), x)


def test_errors():
    class Own(Exception):
        pass

    def fail(*_, **__):
        raise Own("no")
    for op in (pleat.Operator(scale, infer=fail), pleat.Operator(scale, ways=fail, **LIKE_X)):
        with pytest.raises(Own):
            compiled(between(), op)
    for run, error in ((fail, Own), (lambda x, **_: x[:, :1], ValueError),
                       (lambda x, **_: x.astype(np.float64), ValueError),
                       (lambda x, **_: (x, x), ValueError)):
        calls = []

        def sometimes(x, alpha, run=run, calls=calls):
            calls.append(1)
            return run(x) if len(calls) == 1 else scale(x, alpha)
        model = compiled(between(), pleat.Operator(sometimes, **LIKE_X))
        with pytest.raises(error):
            model(X)
        np.testing.assert_allclose(model(X), expected_between(X), 1e-4, 1e-4)
    refused = {
        "this layout has 1 axis, the tensor 4": [{"inputs": ["N H W C ?"]}],
        "not injective": [{"inputs": ["n, c, h, w -> n, h, w"]}],
        "a price of -1": [{"cycles": -1}],
    }
    for why, ways in refused.items():
        with pytest.raises(pleat.PleatError, match=why):
            compiled(between(), pleat.Operator(scale, ways=ways, **LIKE_X))
    with pytest.raises(ValueError, match="2 layouts for 1 inputs"):
        compiled(between(), pleat.Operator(scale, ways=[{"inputs": ["NHWC", None]}], **LIKE_X))
    with pytest.raises(pleat.PleatError, match="give a function for 'com.example::Scale'"):
        pleat.compile(between(), cache=False)
    with pytest.raises(pleat.PleatError, match="cannot be called|takes and gives other layouts"):
        compiled(between(), pleat.Operator(scale, ways=[way("NHWC", 1)], **LIKE_X), keep_layouts=["t"])
    with pytest.raises(pleat.PleatError, match="takes and gives other layouts"):
        compiled(between(), pleat.Operator(scale, ways=[way("NHWC", 1)], **LIKE_X),
                 desired_layouts={"own": "NCHW8c"})


ATTRIBUTES = {"alpha": 0.1, "axes": [3, -1], "mode": "up", "rates": [0.5, 2.0], "n": 7}


@pytest.mark.parametrize("layout", [None, "NHWC", "NCHW16c",
                                    "n, c, h, w -> w, h, (c + h) % 13, n"])
def test_saved_models_call_the_functions_that_are_given_again(tmp_path, layout):
    path, seen = tmp_path / "model.pleat", []

    def run(x, call, **attributes):
        seen.append((call, attributes))
        return x * np.float32(attributes["alpha"])
    op = pleat.Operator(run, **LIKE_X, ways=[way(layout, 10), way(None, 1e9)])
    model = compiled(between(ATTRIBUTES), op)
    model.save(path)
    loaded = pleat.load(path, operators={f"{DOMAIN}::Scale": op})
    np.testing.assert_array_equal(loaded(X), model(X))
    np.testing.assert_allclose(loaded(X), expected_between(X, 0.1), rtol=1e-4, atol=1e-4)
    assert seen[0] == seen[1] and seen[1][1] == seen[2][1]
    loaded.save(tmp_path / "again.pleat")
    assert (tmp_path / "again.pleat").read_bytes() == path.read_bytes()
    again = pleat.load(path.read_bytes(), operators={f"{DOMAIN}::Scale": op, "other": scale})
    np.testing.assert_array_equal(pleat.Session(again)(X), model(X))


def test_saved_models_refuse_other_functions(tmp_path):
    path, name = tmp_path / "model.pleat", f"{DOMAIN}::Scale"
    compiled(between(), pleat.Operator(scale, **LIKE_X, ways=[way(None, 1e9), way("NHWC", 1)])).save(path)
    for operators in (None, {}, {"com.example::Other": scale}):
        with pytest.raises(pleat.PleatError, match=f"'{name}', which is not given; give it with operators="):
            pleat.load(path, operators=operators)

    def load(ways):
        return pleat.load(path, operators={name: pleat.Operator(scale, ways=ways)})
    with pytest.raises(pleat.PleatError, match="has 1 ways, and the model was saved with way 1"):
        load([way("NHWC", 1)])
    with pytest.raises(pleat.PleatError, match="takes input 0 't' in another layout in way 1"):
        load([way(None, 1), way("NCHW8c", 1)])
    with pytest.raises(pleat.PleatError, match="takes output 0 in another layout in way 1"):
        load([way(None, 1), {"inputs": ["NHWC"], "outputs": [None], "cycles": 1}])

    def ways(*_, **__):
        raise KeyError("no ways")
    with pytest.raises(KeyError, match="no ways"):
        load(ways)
    np.testing.assert_allclose(load([{}, way("n, c, h, w -> n, h, w, c", 1)])(X),
                               expected_between(X), rtol=1e-4, atol=1e-4)


def test_saved_calls_with_absent_inputs_and_two_outputs(tmp_path):
    model = model_of([helper.make_node("Two", ["x", "", "a"], ["s", "d"], "two", domain=DOMAIN),
                      helper.make_node("Relu", ["s"], ["y"], "relu")],
                     [("x", [3, 7])], [("y", [3, 7]), ("d", [3, 7])], [("a", random(7, seed=5))])
    op = pleat.Operator(lambda x, none, a: (x + a, x - a) if none is None else None,
                        infer=lambda x, *_: [x, x])
    built = pleat.compile(model, operators={"Two": op}, cache=False)
    built.save(tmp_path / "m.pleat")
    x = random(3, 7, seed=6)
    for got, expected in zip(pleat.load(tmp_path / "m.pleat", operators={"Two": op})(x), built(x)):
        np.testing.assert_array_equal(got, expected)


LIBRARY = """
#include <pleat/pleat.h>
#include <string.h>
static int infer(void *env, const PleatCall *call, PleatTensorType *outputs, char *message) {
  const PleatArgument *x = call->inputs[0];
  outputs[0].element = x->element;
  outputs[0].rank = x->rank;
  memcpy(outputs[0].shape, x->shape, sizeof(int64_t) * x->rank);
  return PLEAT_OK;
}
static int run(void *env, const PleatCall *call, int way, const PleatTensor *inputs,
               PleatTensor *outputs, char *message) {
  int64_t count = 1;
  for (int i = 0; i < inputs->rank; i++) count *= inputs->shape[i];
  for (int64_t i = 0; i < count; i++)
    ((float *)outputs->data)[i] =
        ((float *)inputs->data)[i] * (float)call->attributes[0]->numbers[0];
  return PLEAT_OK;
}
const PleatOperator *const *pleat_operators(size_t *count) {
  static const PleatOperator scale = {sizeof scale, "com.example::Scale", infer, NULL, run, NULL};
  static const PleatOperator *const list[] = {&scale};
  *count = 1;
  return list;
}
"""


def command(*arguments, fails=False):
    done = subprocess.run([BUILD / "pleat", *arguments], capture_output=True, text=True)
    assert bool(done.returncode) == fails, done.stderr
    return done.stderr if fails else done.stdout


def test_libraries_of_the_command(tmp_path):
    (tmp_path / "scale.c").write_text(LIBRARY)
    library, model, saved, y = (str(tmp_path / n) for n in ("scale.so", "m.onnx", "m.pleat", "y.npz"))
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{ROOT / 'include'}", "-o", library,
                    str(tmp_path / "scale.c")], check=True)
    onnx.save(between(), model)
    np.save(tmp_path / "x.npy", X)
    given = "-i", f"x={tmp_path / 'x.npy'}", "-o", y
    command("run", model, "--operators", library, *given)
    np.testing.assert_allclose(np.load(y)["y"], expected_between(X), rtol=1e-4, atol=1e-4)
    assert "com.example::Scale" in command("plan", model, "--operators", library, "--json")
    assert "own" in command("inspect", model, "--operators", library)
    command("verify", model, "--operators", library)
    command("compile", model, "--operators", library, "-o", saved)
    os.remove(y)
    command("run", saved, "--operators", library, *given)
    np.testing.assert_allclose(np.load(y)["y"], expected_between(X), rtol=1e-4, atol=1e-4)
    assert "\ncalls           com.example::Scale\n" in command("inspect", saved)
    assert json.loads(command("inspect", saved, "--json"))["functions"] == ["com.example::Scale"]
    assert "give it with --operators" in command("run", saved, *given, fails=True)
    assert "cannot open" in command("run", model, "--operators", "no.so", *given, fails=True)
    empty = tmp_path / "empty.so"
    subprocess.run(["cc", "-shared", "-o", empty, "-x", "c", os.devnull], check=True)
    assert "has no function pleat_operators" in command("run", model, "--operators", empty, *given,
                                                        fails=True)


def test_files_of_code_are_refused(tmp_path):
    model = compiled(between(), pleat.Operator(scale, **LIKE_X))
    for name in ("model.so", "model.c"):
        with pytest.raises(pleat.PleatError, match="which a file cannot hold"):
            model.write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_sessions_in_threads():
    threads = set()

    def run(x, alpha):
        threads.add(threading.get_ident())
        return scale(x, alpha)
    model = compiled(between(), pleat.Operator(run, ways=[way("NHWC", 1)], **LIKE_X))
    inputs, results = [random(2, 5, 9, 11, seed=i) for i in range(8)], [None] * 8

    def work(i):
        session = model.session(threads=1)
        for _ in range(5):
            results[i] = session(inputs[i])
    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for x, result in zip(inputs, results):
        np.testing.assert_allclose(result, expected_between(x), 1e-4, 1e-4)
    session = model.session()
    del model
    np.testing.assert_allclose(session(X), expected_between(X), 1e-4, 1e-4)
    assert threading.get_ident() in threads


def test_free_sizes():
    model = between()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    own = compiled(model, pleat.Operator(scale, ways=[way("NHWC", 1)], **LIKE_X))
    for n in (1, 3):
        x = random(n, 5, 9, 11)
        np.testing.assert_allclose(own(x), expected_between(x), 1e-4, 1e-4)


def test_verify_and_reports():
    op = pleat.Operator(lambda x, alpha: np.moveaxis(x, 3, 1) * np.float32(alpha),
                        ways=[{"inputs": ["NHWC"], "cycles": 1234}], **LIKE_X)
    model = compiled(between(), op)
    verification = model.verify({"x": X})
    assert verification.agrees and {t.name for t in verification.tensors} >= {"y"}
    plan = model.plan()
    kernel = next(k for k in plan.kernels if "own" in k.operators)
    assert kernel.cycles == 1234 and kernel.function == f"{DOMAIN}::Scale"
    assert f"called: 1 time '{DOMAIN}::Scale', from NHWC to NCHW: 1.2 k cycles\n" in str(plan)
    assert not plan.cycles_own_kernels and plan["cost_own_kernels"] == 0
    assert "a function outside of the model" in next(
        k for k in plan.kernels if "first" in k.operators).because
    why = pleat.plan_tensor(between(), "u", operators={f"{DOMAIN}::Scale": op})
    assert {use.layout for use in why.uses if use.is_written} == {"NCHW"}
    other = next(price for price in why.prices if not price.chosen)
    assert f"the function '{DOMAIN}::Scale' does not give it" == other.because
    profile = model.profile([X], repeat=2)
    assert any(k.name == "own" for k in profile.kernels)


def test_profile_of_a_failing_function():
    def run(x, alpha):
        raise KeyError("gone")
    model = compiled(between(), pleat.Operator(run, **LIKE_X))
    with pytest.raises(KeyError):
        model.profile([X], repeat=2)
    with pytest.raises(KeyError):
        model.verify({"x": X})


SCRIPT = """
from pleat.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((5, 7), "float32"), w: R.Tensor((7, 3), "float32")):
        a = R.nn.relu(x)
        b = R.call_dps_packed("twice", (a,), out_sinfo=R.Tensor((5, 7), "float32"))
        c = R.call_pure_packed("twice", b, R.prim_value(3), sinfo_args=(R.Tensor((5, 7), "float32"),))
        p = R.call_dps_packed("halves", (c,), out_sinfo=[R.Tensor((5, 3), "float32"), R.Tensor((5, 4), "float32")])
        left = p[0]
        right = p[1]
        y = R.matmul(c, w)
        return (R.add(y, left), R.negative(right))
"""


def test_packed_functions_of_scripts(tmp_path):
    path = tmp_path / "graph.py"
    path.write_text(SCRIPT)
    twice = pleat.operator(lambda x, arg1=2: x * np.float32(arg1),
                           ways=[{"inputs": ["i, j -> j, i"], "outputs": ["i, j -> j, i"]}])
    own = pleat.compile(path, operators={"twice": twice, "halves": lambda x: (x[:, :3], x[:, 3:])},
                        cache=False)
    x, w = random(5, 7), random(7, 3, seed=1)
    c = np.maximum(x, 0) * 6
    a, b = own(x, w)
    np.testing.assert_allclose(a, c @ w + c[:, :3], 1e-4, 1e-4)
    np.testing.assert_array_equal(b, -c[:, 3:])
    assert own.verify().agrees
    with pytest.raises(pleat.PleatError, match="give it with operators="):
        pleat.compile(path, operators={"halves": scale}, cache=False)


def test_a_function_in_place_of_a_standard_operator():
    model = model_of([helper.make_node("Relu", ["x"], ["y"], "relu")], [("x", [3])], [("y", [3])])
    own = pleat.compile(model, operators={"ai.onnx::Relu": lambda x: -x}, cache=False)
    np.testing.assert_array_equal(own(np.float32([1, 2, 3])), np.float32([-1, -2, -3]))
    usual = pleat.compile(model, operators={"Relu": lambda x: -x}, cache=False)
    np.testing.assert_array_equal(usual(np.float32([1, 2, 3])), np.float32([1, 2, 3]))


def test_pieces_of_a_concatenation():
    weights = random(16, 16, 1, 1, seed=7)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "c1"),
             helper.make_node("Scale", ["a"], ["b"], "own", domain=DOMAIN),
             helper.make_node("Conv", ["b", "w"], ["c"], "c2"),
             helper.make_node("Concat", ["a", "b", "c"], ["d"], "all", axis=1),
             helper.make_node("Relu", ["d"], ["y"], "relu")]
    model = model_of(nodes, [("x", [1, 16, 7, 9])], [("y", [1, 48, 7, 9])], [("w", weights)])
    x = random(1, 16, 7, 9)
    a = conv(x, weights, 0)
    for layout in (None, "NHWC", "NCHW16c"):
        op = pleat.Operator(lambda x: x * np.float32(2), ways=[way(layout, 1)], **LIKE_X)
        expected = np.concatenate([a, 2 * a, conv(2 * a, weights, 0)], axis=1)
        np.testing.assert_allclose(compiled(model, op)(x), np.maximum(expected, 0), 1e-4, 1e-4)
