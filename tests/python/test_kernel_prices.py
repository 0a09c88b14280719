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


def kernels(shape, nodes, *, cpu="avx512", keep_layouts=("",), input_layouts=None,
            output_layouts=None, accuracy="default", **constants):
    """The prices of the kernels of a model of one input, on AVX-512, with row-major tensors."""
    floats = {name: numpy_helper.from_array(np.ones(dims, np.float32), name)
              for name, dims in constants.items()}
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "prices", [info("x", TensorProto.FLOAT, shape)],
                              [info("y", TensorProto.FLOAT, None)], floats.values())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    plan = pleat.plan(model.SerializeToString(), cpu=cpu, threads=1, keep_layouts=keep_layouts,
                      input_layouts=input_layouts, output_layouts=output_layouts,
                      accuracy=accuracy)
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


@pytest.mark.parametrize("shape", [(1, 32, 28, 28), (784, 32), (32, 784)])
def test_no_convolution_costs_less_than_its_products(shape):
    """Also where rows and columns of the image are one axis, so that the borders of its windows are
    not those of an axis, and vectors along the columns of a window are taken apart."""
    channels_last = shape == (784, 32)
    image = np.array([1, 28, 28, 32] if channels_last else [1, 32, 28, 28])
    nodes = [helper.make_node("Constant", [], ["i"], value=numpy_helper.from_array(image)),
             helper.make_node("Reshape", ["x", "i"], ["r"]),
             helper.make_node("Transpose", ["r"], ["t"], perm=[0, 3, 1, 2]),
             helper.make_node("Conv", ["t" if channels_last else "r", "w"], ["y"], pads=[1] * 4)]
    cycles = kernels(shape, nodes, cpu="avx2", keep_layouts=(), accuracy="exact",
                     w=(32, 32, 3, 3))
    assert sum(cycles) > 32 * 784 * 32 * 9 / 16


@pytest.mark.parametrize("operator", ["Softmax", "LayerNormalization"])
def test_rows_of_seven_cost_more_than_rows_of_eight(operator):
    """Seven elements take a vector of four, one of two, and one of one."""
    operands = {n: [(n,)] if operator == "LayerNormalization" else [] for n in (7, 8)}
    seven, eight = (price(operator, (512, n), *operands[n], axis=1) for n in (7, 8))
    assert seven > 1.5 * eight


def test_the_rest_of_a_long_row_costs_what_waits():
    """Behind a reduction of few vectors the rest of the row waits for the end of the reduction."""
    short, long = (price("Softmax", (2048 // n, n), axis=1) / 2048 for n in (32, 1024))
    assert short > 1.2 * long


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


def pad(mode, shape, pads):
    constant = numpy_helper.from_array(np.array(pads, np.int64), "pads")
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
    info = helper.make_tensor_value_info
    graph = helper.make_graph([node], "prices", [info("x", TensorProto.FLOAT, shape)],
                              [info("y", TensorProto.FLOAT, None)], [constant])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    plan = pleat.plan(model.SerializeToString(), cpu="avx512", threads=1, keep_layouts=[""])
    return sum(kernel.cycles for kernel in plan.kernels)


def test_padding_by_the_edge_along_rows_loads_each_element():
    """Its index is limited; with rows that are padded as wholes, vectors are loaded."""
    along, across = pad("edge", [64, 64], [0, 2, 0, 2]), pad("edge", [64, 64], [2, 0, 2, 0])
    assert along > 4 * across


def test_long_strides_load_each_element():
    """Vectors are shuffled out of those that they span where these are few."""
    prices = []
    for step in (1, 2, 7):
        node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1], strides=[step])
        prices.append(sum(kernels([1, 32, 64 * step], [node])))
    assert 1.2 * prices[0] < prices[1] and 1.2 * prices[1] < prices[2]


def test_rows_of_two_are_stored_together():
    wide, narrow = price("Transpose", (30, 2, 40), perm=[0, 2, 1]), price("Relu", (30, 80))
    assert wide < 7 * narrow


def test_masked_padding_costs_more_than_whole_vectors():
    prices = []
    for columns in (32, 33):
        node = helper.make_node("Relu", ["x"], ["y"], name="a")
        info = helper.make_tensor_value_info
        graph = helper.make_graph([node], "prices", [info("x", TensorProto.FLOAT, (40, columns))],
                                  [info("y", TensorProto.FLOAT, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=8)
        plan = pleat.plan(model.SerializeToString(), cpu="avx512", threads=1, keep_layouts=["x"],
                          output_layouts={"y": "aB16b"})
        prices.append(plan["cost"])
    assert prices[1] > 1.5 * prices[0]


def test_axes_of_one_element_at_the_end_do_not_hide_vectors():
    """The channels of space-to-depth of two columns are read as one axis, before an axis of one."""
    shape = numpy_helper.from_array(np.array([1, 208, 1], np.int64), "shape")
    scale = numpy_helper.from_array(np.ones([208, 1], np.float32), "scale")
    nodes = [helper.make_node("SpaceToDepth", ["x"], ["s"], blocksize=2),
             helper.make_node("Reshape", ["s", "shape"], ["r"]),
             helper.make_node("Mul", ["r", "scale"], ["y"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "prices", [info("x", TensorProto.FLOAT, (1, 13, 8, 2))],
                              [info("y", TensorProto.FLOAT, None)], [shape, scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    for options in ({}, {"policy": "none"}):
        plan = pleat.plan(model.SerializeToString(), cpu="avx512", **options)
        assert not any(kernel.slow for kernel in plan.kernels)


def test_each_member_of_a_group_loads_elements_apart():
    """A normalization along the columns of its output loads its input three times, in vectors of
    elements that are far apart."""
    prices = []
    for layout in ("abc", "acb"):
        scale = numpy_helper.from_array(np.ones(96, np.float32), "scale")
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            [helper.make_node("LayerNormalization", ["x", "scale"], ["y"], axis=-1)], "prices",
            [info("x", TensorProto.FLOAT, (64, 64, 96))], [info("y", TensorProto.FLOAT, None)],
            [scale])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                  ir_version=8)
        plan = pleat.plan(model.SerializeToString(), cpu="avx512", threads=1,
                          output_layouts={"y": layout})
        prices.append(plan["cost"])
    assert prices[1] > 1.3 * prices[0]


def test_integers_are_added_by_an_operation_of_its_own():
    """Products of floats are added by the same one."""
    shape, prices = [32, 100, 64], []
    for last in ([], [helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT32)]):
        factors = ["i", "j"] if last else ["x", "w"]
        cast = [helper.make_node("Cast", ["w"], ["j"], to=TensorProto.INT32)] if last else []
        product = helper.make_node("MatMul", factors, ["p"])
        back = helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT)
        prices.append(max(kernels(shape, [*last, *cast, product, back], w=(32, 64, 48))))
    assert 1.3 * prices[0] < prices[1] < 1.7 * prices[0]


def convolution_price(layout, channels, results, size, taps=1, group=1, **attributes):
    """The price of a convolution on AVX2 that reads and writes `layout`."""
    weights = numpy_helper.from_array(np.ones((results, channels // group, taps, taps), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", group=group,
                            pads=[taps // 2] * 4, **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph([node], "conv", [info("x", TensorProto.FLOAT, (1, channels, size, size))],
                              [info("y", TensorProto.FLOAT, None)], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    plan = pleat.plan(model.SerializeToString(), cpu="avx2", threads=1, accuracy="exact",
                      desired_layouts={"Conv": layout}, input_layouts={"x": layout}, output_layouts={"y": layout})
    return sum(kernel.cycles for kernel in plan.kernels)


def test_columns_in_vectors_cost_more_at_borders():
    """The rows of a window are in the cache since the tile before; borders fall into vectors of
    columns, which takes twice the time of vectors of channels."""
    blocks, columns = (convolution_price(layout, 96, 96, 56, taps=7, group=96)
                       for layout in ("NCHW8c", "NCHW"))
    assert columns > 1.3 * blocks


def test_windows_over_few_cache_sets_cost_lost_lines():
    """Columns of 384 channels are 1536 bytes apart, and share eight sets of the first cache; the
    windows of a row do not stay there. Those of 392 are in all sets."""
    few, all_sets = (convolution_price("NHWC", channels, channels, 14, taps=7, group=channels) / channels
                     for channels in (384, 392))
    assert few > 1.3 * all_sets


def test_a_stride_reads_only_a_part():
    """Rows and columns that a stride leaves out are not read from memory."""
    left_out = convolution_price("NHWC", 4096, 64, 14, strides=[2, 2])
    assert left_out < 1.25 * convolution_price("NHWC", 4096, 64, 7)


def test_rows_whose_stride_shares_a_set_are_few():
    """With a stride of 2, columns of 512 channels are 4096 bytes apart, so that a tile has no more
    rows than a set has ways."""
    shared, apart = (convolution_price("NHWC", channels, 1024, 14, strides=[2, 2]) / channels
                     for channels in (512, 504))
    assert shared > 1.02 * apart


def test_a_part_that_each_row_reads_again_comes_from_the_second_cache():
    """For each of 1024 filters, all 16 rows of a batch are read: 8 KiB of 128 channels stay in the first
    cache, 64 KiB of 1024 channels do not."""
    node = helper.make_node("Einsum", ["x", "w"], ["y"], equation="tic,tfc->tfi", name="products")
    near, far = (kernels((4, 16, n), [node], cpu="avx2", w=(4, 1024, n))[0] / n for n in (128, 1024))
    assert far > 1.1 * near


def test_elements_of_many_pieces_are_far():
    """A sum over channels jumps between the pieces of a layout at each step: two are streams that the
    first cache holds, sixteen are not."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv")
    whole, two, sixteen = (
        kernels((1, 512, 14, 14), [node], cpu="avx2", input_layouts={"x": layout}, w=(64, 512, 1, 1))[0]
        for layout in ("NHWC", *(f"lambda n, c, h, w: [c % {n}, n, h, w, c // {n}]" for n in (2, 16))))
    assert two == whole and sixteen > 1.5 * whole


def test_many_blocks_beyond_the_second_cache_cost_jumps():
    """The prefetcher follows 64 blocks of channels that a sum runs through, but not 512."""
    assert convolution_price("NCHW8c", 4096, 256, 14) > 1.3 * convolution_price("NHWC", 4096, 256, 14)
    assert convolution_price("NCHW8c", 512, 64, 56) < 1.1 * convolution_price("NHWC", 512, 64, 56)


def test_blocks_of_a_group_cost_jumps():
    """Each group runs through 512 blocks of its own."""
    assert (convolution_price("NCHW8c", 8192, 512, 14, group=2) >
            1.2 * convolution_price("NHWC", 8192, 512, 14, group=2))


@pytest.mark.parametrize("operator, operands", [("MaxPool", []), ("Conv", [(32, 1, 3, 3)])])
@pytest.mark.parametrize("output", ["NCHW", "NHWC"])
def test_a_window_costs_as_much_with_its_axes_exchanged(operator, operands, output):
    """The tensor is larger than the first cache, and one axis of the window moves far in it."""
    names = {f"c{i}": dims for i, dims in enumerate(operands)}
    attributes = {"group": 32} if operands else {}
    node = helper.make_node(operator, ["x", *names], ["y"], kernel_shape=[3, 3], **attributes)
    exchanged = str.maketrans("HW", "WH")
    prices = [sum(kernels((1, 32, 21, 21), [node], cpu="avx2", keep_layouts=[],
                          input_layouts={"x": "NHWC".translate(letters)},
                          output_layouts={"y": output.translate(letters)}, **names))
              for letters in ({}, exchanged)]
    assert prices[0] == pytest.approx(prices[1], rel=1e-3)
