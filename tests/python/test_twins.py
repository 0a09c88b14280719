# SPDX-License-Identifier: Apache-2.0
"""Networks that are written in two ways (twins.py) have equally good plans and the results that ONNX
Runtime gives, and no layout that a user asks for is cheaper than the plan."""
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from test_models import PLEAT, check  # noqa: E402
import twins  # noqa: E402

PAIRS = {name: models for name, *models in twins.pairs()}
STYLES = [make.__name__ for make in twins.STYLES]
VIEWS = [make.__name__ for make in twins.VIEWS]
SUMS = [*STYLES[:6], *VIEWS, "concat_odd", "dense"]  # with convolutions that have another algorithm
# Costs are rounded for each stage, and a tensor that has a layout of its own is a stage of its own.
ROUNDING = 2e-4


def planned(model, tmp_path, *options):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return twins.plan(PLEAT, path, *options)


@pytest.mark.parametrize("name", list(PAIRS))
@pytest.mark.parametrize("twin", [0, 1])
def test_results(name, twin, tmp_path):
    model = PAIRS[name][twin]
    if not model:
        pytest.skip("the network has no twin")
    check(model, tmp_path)


# The NHWC networks have NHWC inputs and outputs, which need no rewrite for their convolutions.
@pytest.mark.parametrize("name", STYLES)
def test_styles(name, tmp_path):
    last, first = (planned(model, tmp_path, "--cpu", "avx512") for model in PAIRS[name])
    if name != "shuffled":  # whose best plan is proved to within 2 % only
        assert all(plan["cost"] == plan["lower_bound"] for plan in (last, first))
    assert last["kernels"] <= first["kernels"]
    assert twins.at_run_time(last) <= twins.at_run_time(first)
    assert last["cost"] <= first["cost"]


@pytest.mark.parametrize("name", VIEWS)
def test_views_cost_nothing(name, tmp_path):
    views, without = (planned(model, tmp_path) for model in PAIRS[name])
    assert views["kernels"] == without["kernels"]
    assert twins.at_run_time(views) == twins.at_run_time(without)
    assert views["cost"] == pytest.approx(without["cost"], rel=ROUNDING)


@pytest.mark.parametrize("name, rewrites", [("concat_odd", 2), ("dense", 6), ("residual", 0),
                                            ("mobile", 1), ("branches", 0), ("padded", 0)])
def test_rewrites_that_are_left(name, rewrites, tmp_path):
    """The rewrites that are left are those of the input and the output, where these are NCHW, one of a
    small tensor that saves more than it costs, and those of 12 channels, which are computed in
    vectors of 16 and then copied to their part of a concatenation."""
    assert twins.at_run_time(planned(PAIRS[name][0], tmp_path)) <= rewrites


@pytest.mark.parametrize("name", SUMS)
def test_direct_sums_are_no_cheaper(name, tmp_path):
    for model in filter(None, PAIRS[name]):
        cost = planned(model, tmp_path)["cost"]
        assert planned(model, tmp_path, "--accuracy", "exact")["cost"] >= cost * (1 - ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("name, twin", [("concat_odd", 0), ("dense", 0), ("residual", 0),
                                        ("residual", 1), ("branches", 0), ("bias_between", 1),
                                        ("conv_views", 0), ("squeezed", 0)])
def test_no_request_is_cheaper(name, twin, tmp_path):
    model = PAIRS[name][twin]
    # A request that keeps a reshape makes fewer products possible, which reshapes hide.
    exact = ("--accuracy", "exact") if name == "conv_views" else ()
    cost = planned(model, tmp_path, *exact)["cost"]
    for node in model.graph.node[::max(4, len(model.graph.node) // 3)]:
        for layout in ("NCHW", "NHWC", "NCHW8c", "NCHW16c"):
            for operand in ("data", "output"):
                asked = f"{node.name}:{operand}={layout}"
                plan = planned(model, tmp_path, "--desired-layout", asked, *exact)
                assert not plan or plan["cost"] >= cost * (1 - ROUNDING), asked


def test_tiles_write_no_layout_that_cuts_an_axis_twice(tmp_path):
    """The columns of the product are (which, head, value), and the rows come before the values."""
    net = twins.Net()
    x = net("MatMul", net.input("x", [2, 49, 48]), net.weight(48, 96))
    x = net("Reshape", x, net.constant(np.array([2, 49, 3, 2, 16])))
    model = net.model(net("Tanh", net.transpose(x, [2, 0, 3, 1, 4])))
    check(model, tmp_path)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    done = subprocess.run([PLEAT, "run", path, "--fill", "random"], capture_output=True, text=True,
                          check=True)
    assert "not made of its axes" not in done.stdout


def test_filters_that_are_inputs(tmp_path):
    """They are laid out for the convolution at run time, as constant ones are while compiling."""
    net = twins.Net()
    x, w = net.input("x", [1, 64, 28, 28]), net.input("w", [64, 64, 3, 3])
    model = net.model(net("Conv", x, w, pads=[1, 1, 1, 1]))
    check(model, tmp_path)
    plan = planned(model, tmp_path)
    assert "w" in [r["tensor"] for r in plan["rewrites"]]
    assert plan["cost"] < 0.6 * plan["cost_unplanned"]


def test_groups_write_other_layouts(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(PAIRS["pooled"][1], path)
    done = subprocess.run([PLEAT, "plan", path, "--why", "mul10_0"], capture_output=True, text=True,
                          check=True)
    prices = {line.split()[0] for line in done.stdout.splitlines() if " 25088 " in line}
    assert {"NCHW", "NHWC"} < prices and "impossible" not in done.stdout
