# SPDX-License-Identifier: Apache-2.0
"""Prices of kernels follow how they are scheduled: rows of several axes, short rows, padding."""
import math

import numpy as np
import pytest
from built import skip_sanitized
from onnx import TensorProto, helper, numpy_helper

skip_sanitized()
pleat = pytest.importorskip("pleat")

OPSET = 17


def kernels(shape, nodes, **constants):
    """The prices of the kernels of a model of one input, on AVX-512, with row-major tensors."""
    floats = {name: numpy_helper.from_array(np.ones(dims, np.float32), name)
              for name, dims in constants.items()}
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "prices", [info("x", TensorProto.FLOAT, shape)],
                              [info("y", TensorProto.FLOAT, None)], floats.values())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    plan = pleat.plan(model.SerializeToString(), cpu="avx512", threads=1, keep_layouts=[""])
    return [kernel.cycles for kernel in plan.kernels]


def price(operator, shape, *operands, **attributes):
    names = {f"c{i}": dims for i, dims in enumerate(operands)}
    node = helper.make_node(operator, ["x", *names], ["y"], name="a", **attributes)
    return sum(kernels(shape, [node], **names))


@pytest.mark.parametrize("shape, other", [
    ((24, 2, 280, 3), (24, 1, 280, 3)),  # two axes of the constant make one row
    ((214, 24, 3), (214, 1, 1)),         # two axes that do not move the constant
    ((7, 1, 41, 5), (7, 1, 41, 5)),
])
def test_axes_that_run_as_one_loop_make_long_rows(shape, other):
    flat = (math.prod(shape),)
    assert price("Mul", shape, other) < 1.6 * price("Mul", flat, flat)


def test_axes_that_are_broadcast_in_turn_make_short_rows():
    assert price("Mul", (214, 24, 3), (1, 24, 1)) > 1.5 * price("Mul", (214, 24, 3), (214, 1, 1))


@pytest.mark.parametrize("operator", ["Softmax", "LayerNormalization"])
def test_rows_of_seven_cost_more_than_rows_of_eight(operator):
    """Seven elements take a vector of four, one of two, and one of one."""
    operands = {n: [(n,)] if operator == "LayerNormalization" else [] for n in (7, 8)}
    seven, eight = (price(operator, (512, n), *operands[n], axis=1) for n in (7, 8))
    assert seven > 1.5 * eight


def test_the_rest_of_a_long_row_costs_what_waits():
    """Behind a reduction of few vectors the rest of the row waits for the end of the reduction."""
    short, long = (price("Softmax", (2048 // n, n), axis=1) / 2048 for n in (32, 1024))
    assert short > 1.3 * long


def test_an_extreme_that_keeps_nan_costs_more_than_a_sum():
    assert price("ReduceMax", (64, 512), axes=[1]) > 1.5 * price("ReduceMean", (64, 512), axes=[1])


def test_divisions_of_integers_and_remainders_are_not_vectors():
    flat = (1 << 12,)
    assert price("Mod", flat, flat, fmod=1) > 20 * price("Mul", flat, flat)
    assert price("Div", flat, flat) < 3 * price("Mul", flat, flat)


@pytest.mark.parametrize("rows, columns", [(512, 16), (1024, 8), (2048, 4)])
def test_tiles_that_are_copied_cost_their_shuffles(rows, columns):
    """Cycles for an element, with those of starting the kernel: measured on AMD Zen 5."""
    cycles = price("Transpose", (rows, columns), perm=[1, 0]) / (rows * columns)
    assert 0.1 < cycles < 0.5
