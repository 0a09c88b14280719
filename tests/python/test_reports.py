# SPDX-License-Identifier: Apache-2.0
"""Reports about models of the Python package: profiles, verifications and plans."""
import numpy as np
import pytest
from built import ROOT, skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
MATMUL = ROOT / "examples" / "kernels" / "matmul.py"


@pytest.fixture(name="model", scope="module")
def make_model():
    return pleat.compile(DIGITS, threads=1)


@pytest.fixture(name="image")
def make_image():
    return np.random.default_rng(7).random((1, 1, 8, 8), "float32")


# ---- Profiles

def check_profile(profile, runs):
    assert profile.runs == runs and profile.threads == 1
    assert profile.p10 <= profile.median <= profile.p90
    assert [kernel.step for kernel in profile.kernels] == list(range(len(profile.kernels)))
    assert all(kernel.seconds > 0 and kernel.gbytes_per_second > 0 for kernel in profile.kernels)
    total = profile.around + sum(kernel.seconds for kernel in profile.kernels)
    assert total == pytest.approx(profile.seconds, rel=1e-6)
    assert profile.slow == [kernel for kernel in profile.kernels if kernel.slow]


def test_a_lookup_moves_the_rows_that_it_reads(tmp_path):
    onnx = pytest.importorskip("onnx")
    table = np.random.default_rng(7).random((5003, 61), "float32")
    nodes = [onnx.helper.make_node("Gather", ["table", "at"], ["rows"]),
             onnx.helper.make_node("Relu", ["rows"], ["y"])]
    values = [onnx.helper.make_tensor_value_info("at", onnx.TensorProto.INT64, [7]),
              onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [7, 61])]
    graph = onnx.helper.make_graph(nodes, "lookup", values[:1], values[1:],
                                   [onnx.numpy_helper.from_array(table, "table")])
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "m.onnx")
    model = pleat.compile(tmp_path / "m.onnx", threads=1)
    (kernel,) = model.profile([np.arange(7)], repeat=3).kernels
    assert kernel.gbytes_per_second * kernel.seconds * 1e9 == pytest.approx(7 * 8 + 2 * 7 * 61 * 4)


def test_a_profile_is_a_table(model, image):
    profile = model.profile(image, repeat=3)  # the array of the only input
    check_profile(profile, 3)
    lines = str(profile).splitlines()
    assert lines[0].split()[:3] == ["#", "kernel", "time"]
    assert lines[1].split()[1] == profile.kernels[0].name
    assert "\n" not in repr(profile) and f"median={profile.median}" in repr(profile)


def test_sessions_and_loaded_models_are_profiled(model, image, tmp_path):
    check_profile(model.session().profile({"image": image}, repeat=2), 2)
    model.save(tmp_path / "digits.pleat")
    loaded = pleat.load(tmp_path / "digits.pleat", threads=1).profile()
    check_profile(loaded, 10)
    assert [k.name for k in loaded.kernels] == [k.name for k in model.profile().kernels]


def test_kernels_are_profiled():
    kernel = pleat.compile(MATMUL, threads=1)
    (row,) = kernel.profile(repeat=2).kernels
    assert row.name == "matmul" and row.gflops > 0


def test_a_profile_is_cancelled(model):
    parts = []
    model.profile(repeat=3, progress=lambda *part: parts.append(part))
    assert parts == [("measuring", i, 3) for i in range(3)]
    with pytest.raises(pleat.PleatCancelled):
        model.profile(progress=lambda what, done, count: done < 2)
    with pytest.raises(ZeroDivisionError):
        model.profile(progress=lambda *_: 1 // 0)
    check_profile(model.profile(), 10)


def test_wrong_profiles_are_refused(model, image):
    with pytest.raises(pleat.PleatError, match="is 5000, expected 0 to 1000"):
        model.profile(repeat=5000)
    with pytest.raises(ValueError, match="has shape"):
        model.profile([image[:, :, 1:]])
    with pytest.raises(TypeError, match="no input picture"):
        model.profile({"image": image, "picture": image})


# ---- Verifications

def test_a_model_is_verified(model, image):
    result = model.verify()
    assert result and result.agrees and result.differs is None
    assert str(result).startswith("agrees with the interpreter, within 1e-4 relative")
    assert [tensor.name for tensor in result.outputs] == [a.name for a in model.outputs]
    assert all(tensor.agrees and tensor.index is None for tensor in result.tensors)
    assert result.outputs[0].shape == model.outputs[0].shape
    assert "agrees=True" in repr(result) and "\n" not in repr(result)
    assert model.verify({"image": image}, definitions=True).reference == "the definitions"
    assert model.verify(image, atol=1e-4).tolerance == "within 0.0001 absolute"


def test_a_difference_is_located(model):
    result = pleat.verify(DIGITS, exact=True, threads=1)
    assert not result and result.rounding and result.part in ("stages", "schedule", "pass", "code")
    assert result.differs.differing > 0 and len(result.differs.index) == len(result.differs.shape)
    assert result.kernel.startswith("kernel ") and result.cause in str(result)
    assert [tensor.name for tensor in result.outputs] == [a.name for a in model.outputs]


def test_expected_outputs_are_compared(model, image):
    (name,) = (argument.name for argument in model.outputs)
    expected = model(image)
    assert model.verify([image], expected={name: expected})
    wrong = expected.copy()
    wrong[0, 3] += 1
    result = model.verify([image], expected={name: wrong})
    assert not result and result.differs.is_given and result.differs.index == (0, 3)
    assert result.outputs[0].agrees and not result.outputs[0].is_given
    with pytest.raises(pleat.PleatError, match="there is no output 'digit'"):
        model.verify(expected={"digit": expected})


def quantized_model(seed):
    """A model whose numbers are near the boundaries between steps before they are rounded."""
    onnx = pytest.importorskip("onnx")
    random, helper, nodes = np.random.default_rng(seed), onnx.helper, []
    values = {"ws": np.float32(0.1), "s": np.float32(0.06), "z": np.int8(2), "wz": np.int8(0),
              "w": random.integers(-5, 6, (7, 3, 3, 3)).astype("int8")}
    nodes.append(helper.make_node("QuantizeLinear", ["x", "ws", "wz"], ["steps"]))
    nodes.append(helper.make_node("QLinearConv", ["steps", "ws", "wz", "w", "ws", "wz", "s", "z"],
                                  ["more"]))
    nodes.append(helper.make_node("DequantizeLinear", ["more", "s", "z"], ["numbers"]))
    nodes.append(helper.make_node("DynamicQuantizeLinear", ["numbers"], ["y", "scale", "zero"]))
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 11, 11])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, None),
         helper.make_tensor_value_info("numbers", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()])
    image = random.integers(-30, 31, (1, 3, 11, 11)) * np.float32(0.05)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)],
                             ir_version=8), image.astype("float32")


@pytest.mark.parametrize("seed", range(4))
def test_quantized_models_agree(seed):
    model, image = quantized_model(seed)
    for how in {}, {"definitions": True}, {"max_ulp": 8, "atol": 1e-5}:
        result = pleat.verify(model, {"x": image}, **how)
        assert result, str(result)


def test_kernels_are_verified():
    result = pleat.verify(MATMUL, max_ulp=8, atol=1e-5)
    assert result and {tensor.function for tensor in result.tensors} == {"matmul"}
    kernel = pleat.compile(MATMUL)
    a = np.ones(kernel.inputs[0].shape, "float32")
    assert kernel.verify({kernel.inputs[0].name: a}, exact=False)
    with pytest.raises(pleat.PleatError, match="definitions: error"):
        kernel.verify(definitions=True)


def test_a_verification_is_cancelled(model):
    parts = set()
    pleat.verify(DIGITS, progress=lambda what, *_: parts.add(what))
    assert "verifying" in parts
    with pytest.raises(pleat.PleatCancelled):
        pleat.verify(DIGITS, progress=lambda what, *_: what != "verifying")


def test_wrong_verifications_are_refused(model, image, tmp_path):
    with pytest.raises(pleat.PleatError, match="rtol: error: is -1"):
        model.verify(rtol=-1)
    with pytest.raises(pleat.PleatError, match="exact: error"):
        model.verify(exact=True, atol=1)
    with pytest.raises(pleat.PleatError, match="does not fit the shape"):
        model.verify([image[:, :, 1:]])
    with pytest.raises(pleat.PleatError, match="no such input"):
        model.verify({"picture": image})
    with pytest.raises(TypeError, match="expected arrays by name"):
        pleat.verify(DIGITS, image)
    with pytest.raises(TypeError, match="'image' .* is missing; given are picture"):
        model(picture=image)
    with pytest.raises(TypeError, match="expected layouts by name"):
        pleat.compile(DIGITS, input_layouts="NHWC")
    with pytest.raises(pleat.PleatError, match="'image' is not of the input's type, float32"):
        pleat.compile(DIGITS, known={"image": image.astype("float64")})
    with pytest.raises(TypeError, match="expected shapes by name"):
        pleat.compile(DIGITS, shapes=(1, 1, 8, 8))
    model.save(tmp_path / "digits.pleat")
    with pytest.raises(pleat.PleatError, match="was loaded"):
        pleat.load(tmp_path / "digits.pleat").verify()


# ---- Plans

def test_a_plan_is_an_object():
    plan = pleat.plan(DIGITS, threads=1, cpu="baseline")
    assert str(plan).startswith("#  tensor") and repr(plan).startswith("Plan(")
    assert plan["kernels"] == len(plan.kernels) and plan["cost"] == pytest.approx(plan.cycles)
    assert plan.machine == "baseline" and plan.policy == "optimal"
    assert plan.optimal == (plan.gap == 0 and not plan.fusions_decided)
    assert plan.gap == pytest.approx(plan.cycles / plan.lower_bound - 1, abs=1e-3)
    assert plan.cycles <= min(plan.cycles_forward, plan.cycles_backward, plan.cycles_row_major)
    for kernel, row in zip(plan.kernels, plan["joins"]):
        assert kernel.name == row["name"] and kernel.writes == row["writes"]
        assert [number + 1 for number in kernel.readers] == row["read_by"]
        assert kernel.operators == row["operators"] and kernel.because == row["because"]
    for rewrite, row in zip(plan.rewrites, plan["rewrites"]):
        assert (rewrite.tensor, rewrite.source, rewrite.target) == (row["tensor"], row["from"],
                                                                     row["to"])
        assert rewrite.folded == (rewrite.kernel is None) == (row["when"] == "folded")
    layouts = {tensor.name: tensor.layouts for tensor in plan.tensors}
    for kernel in plan.kernels:
        assert all(operand.layout in layouts[operand.tensor] for operand in kernel.operands)
    assert {tensor.name: tensor.shape for tensor in plan.tensors}["image"] == (1, 1, 8, 8)


def test_a_rewrite_at_run_time_has_a_kernel():
    plan = pleat.plan(DIGITS, desired_layouts={"Conv": "NHWC"}, input_layouts={"image": "NCHW4c"})
    runs = [rewrite for rewrite in plan.rewrites if not rewrite.folded]
    assert runs and all(plan.kernels[rewrite.kernel].is_rewrite for rewrite in runs)
    assert all(rewrite.cycles > 0 and rewrite.bytes > 0 and rewrite.because for rewrite in runs)


def test_a_tensor_has_prices():
    plan = pleat.plan(DIGITS, cpu="baseline")
    name = next(kernel.writes for kernel in plan.kernels if kernel.readers)
    tensor = pleat.plan_tensor(DIGITS, name, cpu="baseline")
    assert tensor.tensor.name == tensor["tensor"] == name and name in repr(tensor)
    assert [use.kernel + 1 for use in tensor.uses] == [use["kernel"] for use in tensor["uses"]]
    assert [use.is_written for use in tensor.uses].count(True) == 1
    chosen = [price for price in tensor.prices if price.chosen]
    assert chosen and all(price.cycles == pytest.approx(plan.cycles) for price in chosen)
    assert all(price.cycles >= plan.cycles * 0.999 for price in tensor.prices if price.possible)
    assert [price.layout for price in tensor.prices] == [row["layout"] for row in tensor["layouts"]]
    with pytest.raises(pleat.PleatError, match="has no tensor"):
        pleat.plan_tensor(DIGITS, "nothing")


# ---- Why a tensor does not have a layout

def between():
    """A convolution, then an operator that writes its elements in an order, then a convolution."""
    pytest.importorskip("onnx")
    from test_models import Builder
    b = Builder(x=[1, 32, 14, 14])
    a = b.conv("x", 32, 32, 3)
    y = b("CumSum", a, b.constant(np.int64(1)))
    z = b("Concat", y, a, axis=1)
    return b.model(b.conv(z, 64, 32, 3)), a, y, z


def prices_of(model, tensor, **options):
    found = pleat.plan_tensor(model, tensor, cpu="avx2", accuracy="exact", **options)
    return {price.layout: price for price in found.prices}, found


def test_a_layout_is_forbidden_by_an_operator():
    model, _, y, _ = between()
    prices, _ = prices_of(model, f"{y}=NCHW4c")
    forbidden = prices["NCHW4c"]
    assert not forbidden.possible and forbidden.cycles is None
    assert "writes its elements in an order" in forbidden.because


def test_a_cut_block_is_named():
    pytest.importorskip("onnx")
    from test_models import Builder
    b = Builder(x=[1, 30, 6, 6], y=[1, 34, 6, 6])
    a = b("Concat", b("Relu", "x"), b("Relu", "y"), axis=1)
    prices, _ = prices_of(b.model(b("Neg", b("MaxPool", a, kernel_shape=[2, 2]))), f"{a}=NCHW16c")
    assert not prices["NCHW16c"].possible
    assert "would cut a block of 16 at index 30" in prices["NCHW16c"].because


def test_prices_name_what_costs_more():
    model, a, _, _ = between()
    prices, _ = prices_of(model, f"{a}=NCHW4c")
    other = prices["NCHW4c"]
    assert other.possible and not other.chosen and " +" in other.because
    reader = next(node.name for node in model.graph.node if node.op_type == "CumSum")
    prices, _ = prices_of(model, f"{a}=NCHW2h")
    because = prices["NCHW2h"].because
    assert f"{a} is rewritten for {reader}" in because
    assert f"({reader} writes its elements in an order)" in because


def test_any_layout_has_a_price():
    model, _, _, z = between()
    for layout in ("NCHW2c", "lambda n, c, h, w: [n, c ^ (h % 4), h, w]", "WHCN"):
        _, found = prices_of(model, f"{z}={layout}")
        usual, _ = prices_of(model, z)
        assert len(found.prices) == len(usual) + 1
        assert all(price.possible for price in found.prices)
    with pytest.raises(pleat.PleatError, match="has 2 axes, the tensor 4"):
        prices_of(model, f"{z}=NC-")


def test_a_layout_that_is_the_same_memory_stands_for_another():
    model, _, _, z = between()
    usual, _ = prices_of(model, z)
    prices, _ = prices_of(model, f"{z}=NCHW64c")
    assert len(prices) == len(usual) and "NHWC" not in prices
    assert prices["NCHW64c"].cycles == usual["NHWC"].cycles


def test_a_kept_tensor_says_so():
    model, a, _, z = between()
    _, found = prices_of(model, a, keep_layouts=[a])
    assert found.no_more_because == found["no_more_layouts_because"] == "it keeps its layout"
    assert len(found.prices) == 1
    _, found = prices_of(model, a, keep_layouts=True)
    assert found.no_more_because == "every tensor keeps its layout"
    with pytest.raises(pleat.PleatError, match="keeps its layout"):
        prices_of(model, f"{a}=NHWC", keep_layouts=[a])
    reader = model.graph.node[-1].name
    prices, _ = prices_of(model, z, desired_layouts={reader: {"data": "NHWC"}})
    assert any(f"{reader} is asked to read it as NHWC" in price.because
               for price in prices.values())


def test_a_copy_in_place_is_a_tensor(tmp_path):
    """A concatenation reads one tensor twice: the second part is a copy, which is listed too."""
    onnx = pytest.importorskip("onnx")
    import command
    from onnx import helper, numpy_helper
    weights = [numpy_helper.from_array(np.ones(shape, "float32"), name)
               for name, shape in (("w", (16, 3, 3, 3)), ("v", (7, 32, 1, 1)))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "first"),
             helper.make_node("Concat", ["a", "a"], ["b"], "cat", axis=1),
             helper.make_node("Conv", ["b", "v"], ["y"], "last")]
    model = command.make_model(nodes, [command.value_info("x", [1, 3, 20, 18])],
                               [command.value_info("y", [1, 7, 18, 16])], weights)
    plan = pleat.plan(model)
    operands = [operand for kernel in plan.kernels for operand in kernel.operands]
    assert {operand.tensor_number for operand in operands} == set(range(len(plan.tensors)))
    assert all(plan.tensors[o.tensor_number].name == o.tensor for o in operands)
    onnx.save(model, tmp_path / "model.onnx")
    command.pleat("plan", tmp_path / "model.onnx", "--html", tmp_path / "plan.html")
    assert "first" in (tmp_path / "plan.html").read_text()
