# SPDX-License-Identifier: Apache-2.0
"""Softmax and normalisations along any axes: one kernel each, in the layout of the convolutions
around them, with the results of ONNX Runtime at every level of the processor."""
import json
import subprocess

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
from test_models import (  # noqa: E402
    FIRST_LEVEL, LEVELS, PLEAT, Builder, check, level_here, random_feeds, run_pleat)



def axes(b, *of):
    return b.constant(np.array(of, np.int64))


def number(b, value):
    return b.constant(np.float32(value))


def softmax(axis):
    return lambda b, x, shape: b("Softmax", x, axis=axis)


def written_norm(*reduced):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, operator by operator."""

    def grow(b, x, shape):
        d = b("Sub", x, b("ReduceMean", x, axes=list(reduced), keepdims=1))
        v = b("ReduceMean", b("Pow", d, number(b, 2)), axes=list(reduced), keepdims=1)
        y = b("Div", d, b("Sqrt", b("Add", v, number(b, 1e-3))))
        per = [shape[i] if i == 1 else 1 for i in range(len(shape))]
        return b("Add", b("Mul", y, b.weight(*per)), b.weight(*per))

    return grow


def instance_norm(b, x, shape):
    return b("InstanceNormalization", x, b.weight(shape[1]), b.weight(shape[1]))


def group_norm(groups):
    """As PyTorch exports it."""

    def grow(b, x, shape):
        y = b("Reshape", x, axes(b, shape[0], groups, -1))
        y = b("InstanceNormalization", y, b.constant(np.ones(groups, np.float32)),
              b.constant(np.zeros(groups, np.float32)))
        y = b("Reshape", y, axes(b, *shape))
        return b("Add", b("Mul", y, b.weight(shape[1], 1, 1)), b.weight(shape[1], 1, 1))

    return grow


def transposed_norm(b, x, shape):
    y = b("LayerNormalization", b("Transpose", x, perm=[0, 2, 3, 1]), b.weight(shape[1]),
          b.weight(shape[1]), axis=-1)
    return b("Transpose", y, perm=[0, 3, 1, 2])


def with_residual(group):
    return lambda b, x, shape: b("Relu", b("Add", group(b, x, shape), x))


GROUPS = {"softmax": softmax(1), "layer": written_norm(1), "image": written_norm(2, 3),
          "all": written_norm(1, 2, 3), "row": written_norm(2), "instance": instance_norm,
          "transposed": transposed_norm, "residual": with_residual(written_norm(1))}


def between_convolutions(group, channels, size, window=3):
    b = Builder(x=[1, channels, *size])
    y = group(b, b.conv("x", channels, channels, window), [1, channels, *size])
    return b.model(b.conv(y, channels, channels, window))


def plan_of(path, *options):
    done = subprocess.run([PLEAT, "plan", str(path), "--json", *options], capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def rewritten(plan):
    return [rewrite["tensor"] for rewrite in plan["rewrites"] if rewrite["when"] == "run"]


@pytest.mark.parametrize("group", [*GROUPS, "groups"])
@pytest.mark.parametrize("cpu", ["avx512", "avx2"])
def test_no_rewrites_around(group, cpu, tmp_path):
    """The convolutions' layout goes through the group, or through its members as kernels of their
    own: only the graph's ends are rewritten, or a tensor for which that costs about as much as none."""
    grow = GROUPS.get(group) or group_norm(8)
    model = between_convolutions(grow, 64, (28, 28), 1)
    onnx.save(model, tmp_path / "case.onnx")
    plan = plan_of(tmp_path / "case.onnx", "--cpu", cpu)
    for row in plan["rewrites"]:
        if row["when"] != "run" or row["tensor"] in ("x", model.graph.output[0].name):
            continue
        writer = next(node.name for node in model.graph.node if row["tensor"] in node.output)
        # t3_0 is an image, whose rows a view is written for.
        to = "ABCD" if (row["tensor"], row["to"]) == ("t3_0", "ABC") else row["to"]
        other = plan_of(tmp_path / "case.onnx", "--cpu", cpu, "--desired-layout",
                        f"{writer}:output={to}")
        assert row["tensor"] not in rewritten(other) and other["cost"] < 1.02 * plan["cost"]
    assert plan["kernels"] - len(rewritten(plan)) >= 3


def test_no_layout_that_is_asked_for_costs_less(tmp_path):
    """The solver needs all of its time for the first plan, and the plan is looked for without its
    decisions all the same."""
    model = between_convolutions(group_norm(8), 64, (28, 28), 1)
    onnx.save(model, tmp_path / "case.onnx")
    least = plan_of(tmp_path / "case.onnx", "--cpu", "avx512")["cost"]
    for layout in ("NCHW", "NHWC", "NCHW8c", "NCHW16c"):
        asked = plan_of(tmp_path / "case.onnx", "--cpu", "avx512", "--desired-layout", f"n3:output={layout}")
        assert least <= asked["cost"] * 1.0001


def test_vectors_of_rows(tmp_path):
    """An instance norm in channels last has vectors of rows in its reductions and their inits."""
    model = between_convolutions(instance_norm, 64, (28, 28), 1)
    onnx.save(model, tmp_path / "case.onnx")
    kernels = plan_of(tmp_path / "case.onnx")["joins"]
    kernel = next(k["kernel"] for k in kernels if k["by_rows"])
    done = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx"), "--schedules", "--kernel",
                           str(kernel)], capture_output=True, text=True, check=True)
    assert done.stdout.count("sch.vectorize") >= 5


def test_transforms_stay_outside(tmp_path):
    """A convolution that is computed by transforms of tiles has these in kernels of their own."""
    model = between_convolutions(instance_norm, 64, (56, 56))
    onnx.save(model, tmp_path / "case.onnx")
    last = model.graph.node[-1].name
    kernels = plan_of(tmp_path / "case.onnx")["joins"]
    assert not [k for k in kernels if k["by_rows"] and last in k["operators"]]


SIZES = [(6, (5, 7)), (17, (9, 4)), (1, (3, 1)), (32, (1, 19))]


@pytest.mark.parametrize("number, level", [
    *((number, FIRST_LEVEL) for number in range(len(SIZES))),
    *(pytest.param(i % 2, level, marks=pytest.mark.slow)
      for i, level in enumerate(filter(level_here, LEVELS)) if level != FIRST_LEVEL)])
def test_results(number, level, tmp_path):
    """All sizes at the best level of this processor, and one of two at each other level."""
    channels, size = SIZES[number]
    groups = dict(GROUPS, groups=group_norm(2 if channels % 2 == 0 else channels))
    for group in groups.values():
        check(between_convolutions(group, channels, size), tmp_path, "--cpu", level)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 5, 19), (16, 33, 64), (1, 40, 7), (13, 1, 97)])
def test_any_axis(axis, shape, tmp_path):
    """Without layouts to choose, vectors run along memory, within rows or across them."""
    for level in filter(level_here, LEVELS):
        b = Builder(x=list(shape))
        check(b.model(b("Softmax", "x", axis=axis)), tmp_path, "--cpu", level)


@pytest.mark.parametrize("asked", [
    "NHWC", "NCHW16c", "lambda n, c, h, w: [n, h // 4, c, w, h % 4]",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("HWNC", "WHCN4n"))])
@pytest.mark.parametrize("group", [*GROUPS, "groups"])
def test_asked_layouts(group, asked, tmp_path):
    """Rows of any axes are written in any layout that is asked for, padding included."""
    shape = [2, 10, 7, 6]
    grow = GROUPS.get(group) or group_norm(5)
    b = Builder(x=shape)
    y = grow(b, b("Relu", "x"), shape)
    model = b.model(b("Transpose", y, perm=[0, 2, 3, 1]))
    node = next(n.name for n in model.graph.node if y in n.output)
    check(model, tmp_path, "--desired-layout", f"{node}:output={asked}")


@pytest.mark.slow
@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("group", GROUPS)
def test_poisoned_padding(group, block, tmp_path):
    """The content of the padding of the input never reaches a result."""
    shape = [1, 17, 5, 7]
    b = Builder(x=shape)
    model = b.model(GROUPS[group](b, "x", shape))
    path = tmp_path / "case.onnx"
    onnx.save(model, path)
    feeds = random_feeds(model)
    blocks = -(-17 // block)
    physical = np.full((1, blocks * block, 5, 7), np.nan, np.float32)
    physical[:, :17] = feeds["x"]
    physical = physical.reshape(1, blocks, block, 5, 7).transpose(0, 1, 3, 4, 2)
    layout = f"NCHW{block}c"
    name = model.graph.output[0].name
    for level in filter(level_here, LEVELS):
        want = run_pleat(path, feeds, tmp_path, "--cpu", level)[name]
        for options in ([], ["--output-layout", f"{name}={layout}"]):
            got = run_pleat(path, {"x": physical}, tmp_path, "--cpu", level, "--input-layout",
                            f"x={layout}", *options)[name]
            if options:
                got = got.transpose(0, 1, 4, 2, 3).reshape(1, blocks * block, 5, 7)[:, :17]
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cpu", ["avx512", "avx2"])
@pytest.mark.parametrize("operator, size", [
    ("Softmax", 384), ("Softmax", 96), ("LayerNormalization", 384), ("LayerNormalization", 100),
    ("ReduceMean", 777)])
def test_partial_results_stay_in_registers(operator, size, cpu, tmp_path):
    b = Builder(x=[40, size])
    if operator == "LayerNormalization":
        b(operator, "x", b.weight(size), axis=-1)
    else:
        b(operator, "x", **{"axes": [1]} if operator == "ReduceMean" else {"axis": 1})
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(b.nodes, "rows", b.inputs,
                                   [info(b.nodes[-1].output[0], 1, None)], b.weights)
    path = tmp_path / "rows.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)],
                                     ir_version=8), path)
    said = subprocess.run([PLEAT, "run", path, "--fill", "random", "--cpu", cpu], check=True,
                          capture_output=True, text=True).stdout
    assert "stayed in memory" not in said and "lane by lane" not in said
