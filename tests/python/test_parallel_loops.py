# SPDX-License-Identifier: Apache-2.0
"""Loops that threads share: where the outer loops of a kernel have few iterations, those inside them
are cut too, and each iteration may be run alone, in any order."""
import os

import numpy as np
import onnx
import pytest
from built import skip_sanitized
from command import pleat as command
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

skip_sanitized()
pleat = pytest.importorskip("pleat")
random = np.random.default_rng(3)


@pytest.fixture(scope="module", autouse=True)
def small_regions():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLEAT_REGION_CYCLES", "0")
        yield


class Backwards:
    """Runs the iterations one by one, the last first, and notes how many each loop has."""

    def __init__(self):
        self.counts = []

    def __call__(self, part, count):
        self.counts.append(count)
        for i in reversed(range(count)):
            part(i, i + 1)


def model_of(operator, shape, weights, output, **attributes):
    names = [f"weight{i}" for i in range(len(weights))]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", *names], ["y"], **attributes)], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
        [numpy_helper.from_array(w, n) for w, n in zip(weights, names)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def weights_of(*shape):
    return random.standard_normal(shape).astype(np.float32)


CASES = {
    "one row": ("MatMul", [1, 331], [weights_of(331, 1013)], [1, 1013], {}),
    "few rows": ("MatMul", [7, 97], [weights_of(97, 67)], [7, 67], {}),
    "rows of a product": ("MatMul", [331, 97], [weights_of(97, 37)], [331, 37], {}),
    "pointwise": ("Conv", [1, 24, 29, 31], [weights_of(37, 24, 1, 1)], [1, 37, 29, 31], {}),
    "3x3": ("Conv", [1, 16, 29, 31], [weights_of(16, 16, 3, 3)], [1, 16, 29, 31],
            {"pads": [1, 1, 1, 1]}),
    "dilated": ("Conv", [1, 13, 29, 31], [weights_of(11, 13, 3, 3)], [1, 11, 29, 31],
                {"pads": [3, 3, 3, 3], "dilations": [3, 3]}),
    "depthwise": ("Conv", [1, 16, 37, 41], [weights_of(16, 1, 5, 5)], [1, 16, 37, 41],
                  {"pads": [2, 2, 2, 2], "group": 16}),
    "pool": ("MaxPool", [1, 16, 37, 41], [], [1, 16, 19, 21],
             {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "transpose": ("Transpose", [1, 53, 19], [], [1, 19, 53], {"perm": [0, 2, 1]}),
    "softmax": ("Softmax", [3, 7, 101], [], [3, 7, 101], {"axis": -1}),
    "softmax of columns": ("Softmax", [101, 67], [], [101, 67], {"axis": 0}),
}


@pytest.mark.parametrize("layout", [None, "NCHW16c", "NHWC"])
@pytest.mark.parametrize("name", CASES)
def test_iterations_may_run_alone(name, layout):
    operator, shape, weights, output, attributes = CASES[name]
    if layout and (operator != "Conv" or len(shape) != 4):
        pytest.skip("layouts of images")
    made = model_of(operator, shape, weights, output, **attributes)
    onnx.checker.check_model(made)
    x = random.standard_normal(shape).astype(np.float32)
    constraints = {"desired_layouts": {"Conv": layout}} if layout else {}
    expected = ReferenceEvaluator(made).run(None, {"x": x})[0]
    pool = Backwards()
    found = pleat.compile(made.SerializeToString(), threads=4, parallel_for=pool, **constraints)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="schedules for one thread need no pieces")
@pytest.mark.parametrize("name", ["one row", "rows of a product", "pointwise", "depthwise"])
def test_threads_share_few_outer_iterations(name):
    operator, shape, weights, output, attributes = CASES[name]
    made = model_of(operator, shape, weights, output, **attributes)
    pool = Backwards()
    pleat.compile(made.SerializeToString(), threads=2, parallel_for=pool)(
        random.standard_normal(shape).astype(np.float32))
    assert pool.counts and min(pool.counts) >= 8


def test_the_number_of_threads_is_an_option(tmp_path):
    """`plan` and `compile` take the number of threads for which loops are divided."""
    operator, shape, weights, output, attributes = CASES["one row"]
    net = tmp_path / "net.onnx"
    onnx.save(model_of(operator, shape, weights, output, **attributes), net)
    for threads in (1, 2):
        steps = command("plan", net, "--schedules", "--threads", threads)
        assert steps.count("sch.parallel(") == threads
        program = tmp_path / f"{threads}.py"
        command("compile", net, "--threads", threads, "-o", program)
        assert program.read_text().count("T.parallel(") == threads
