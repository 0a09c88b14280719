# SPDX-License-Identifier: Apache-2.0
"""A read is priced by the level of memory that the tensor has left by the time it is read, because
other kernels wrote and read more in between."""
import json

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
from command import pleat, save_model, value_info  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

ROWS, COLUMNS = 61, 384  # 94 KB: the second cache holds them, and a copy


def weights(name, *shape):
    return numpy_helper.from_array(np.full(shape, 0.01, np.float32), name)


def kernels_of(path, nodes, inputs, outputs, constants, *options):
    save_model(path, nodes, [value_info(*i) for i in inputs], [value_info(*o) for o in outputs],
               constants)
    plan = json.loads(pleat("plan", path, "--cpu", "avx512", *options, "--json"))
    return {k["name"]: k["cycles"] for k in plan["joins"]}


def rewritten(path, steps):
    """The cycles of rewriting the result of a product that reads this many rows of weights."""
    kernels = kernels_of(path, [helper.make_node("MatMul", ["x", "w"], ["y"], "product")],
                         [("x", (ROWS, steps))], [("y", (ROWS, COLUMNS))],
                         [weights("w", steps, COLUMNS)], "--keep-layout=product",
                         "--output-layout", "y=lambda a, b: [b // 16 % 3, a, b // 48, b % 16]")
    return kernels["rewrite_y"]


def negated(path, steps):
    """The cycles of negating x behind a product that reads x too, and this many columns of weights."""
    nodes = [helper.make_node("Relu", ["a"], ["x"]),
             helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
             helper.make_node("Neg", ["x"], ["z"], "minus")]
    kernels = kernels_of(path, nodes, [("a", (ROWS, COLUMNS))],
                         [("y", (ROWS, steps)), ("z", (ROWS, COLUMNS))],
                         [weights("w", COLUMNS, steps)])
    return kernels["minus"]


def read_after(path, rows):
    """The cycles of negating an input beside a sum of another input of this many rows."""
    nodes = [helper.make_node("Neg", ["a"], ["y"], "minus"),
             helper.make_node("ReduceSum", ["b"], ["z"], "sum")]
    kernels = kernels_of(path, nodes, [("a", (ROWS, COLUMNS)), ("b", (rows, COLUMNS))],
                         [("y", (ROWS, COLUMNS)), ("z", (1, 1))], [])
    return kernels["minus"]


@pytest.mark.parametrize("measured", [rewritten, negated, read_after])
def test_weights_that_pass_in_between(measured, tmp_path):
    few, some, many = (measured(tmp_path / "m.onnx", steps) for steps in (48, 96, 4099))
    assert few == some
    assert 1.2 * few < many < 4 * few


def test_inputs_are_rewritten_when_they_are_read(tmp_path):
    """The caches then still hold the rewritten tensor."""
    nodes = [helper.make_node("MatMul", ["a", "w"], ["c"], "first"),
             helper.make_node("MatMul", ["c", "w"], ["d"], "second"),
             helper.make_node("MatMul", ["b", "w"], ["e"], "third"),
             helper.make_node("MatMul", ["e", "w"], ["f"], "fourth")]
    shape = (ROWS, COLUMNS)
    kernels = kernels_of(tmp_path / "m.onnx", nodes, [("b", shape), ("a", shape)],
                         [("d", shape), ("f", shape)], [weights("w", COLUMNS, COLUMNS)],
                         "--desired-layout", "third:data=lambda r, c: [c // 16, r, c % 16]",
                         "--desired-layout", "first:data=lambda r, c: [c // 16, r, c % 16]")
    assert list(kernels) == ["rewrite_a", "first", "second", "rewrite_b", "third", "fourth"]


def test_rows_read_their_input_again_for_each_filter(tmp_path):
    """A convolution of 1x1 whose output is contiguous along columns has a tile: in rows, the input
    would come from the second cache for each of 2048 filters."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv", strides=[2, 2])
    path = save_model(tmp_path / "m.onnx", [node], [value_info("x", (1, 1024, 14, 14))],
                      [value_info("y", (1, 2048, 7, 7))], [weights("w", 2048, 1024, 1, 1)])
    assert "rfactor" not in pleat("plan", path, "--cpu", "avx2", "--schedules")
