# SPDX-License-Identifier: Apache-2.0
"""Random models of one to three operators, at sizes that networks have and at odd ones."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, MOST_ELEMENTS, MOST_PRODUCTS = 17, 1 << 21, 1 << 28
UNARY = ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "Abs", "Neg")
BINARY = ("Add", "Mul", "Sub", "Div", "Max")


class Draw:
    """The nodes and constants of one model."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def pick(self, things):
        return things[int(self.rng.integers(len(things)))]

    def extent(self, most):
        """An extent, small ones as often as large ones; half of them are multiples of 8."""
        value = round(math.exp(self.rng.uniform(0, math.log(most))))
        return -(-value // 8) * 8 if value > 8 and self.pick((0, 1)) else value

    def shape(self, rank, most=MOST_ELEMENTS):
        shape = []
        for _ in range(rank):
            shape.append(min(self.extent(1024), max(most // math.prod(shape), 1)))
        return [shape[i] for i in self.rng.permutation(rank)]

    def node(self, operator, *inputs, **attributes):
        name = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def constant(self, array):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape):
        return self.constant(self.rng.standard_normal(shape, dtype=np.float32))


def convolution(d, x):
    channels, side, taps = d.extent(256), d.extent(64) + 7, d.pick((1, 1, 3, 3, 5, 7))
    filters = d.extent(256)
    while channels * filters * (side * taps) ** 2 > MOST_PRODUCTS:
        side, filters = max(side // 2, taps), max(filters // 2, 1)
    stride = d.pick((1, 1, 2))
    y = d.node("Conv", x, d.weight(filters, channels, taps, taps), pads=[taps // 2] * 4,
               strides=[stride] * 2)
    return [1, channels, side, side], activation(d, y)


def depthwise(d, x):
    channels, side, taps = d.extent(512), d.extent(64) + 7, d.pick((3, 5, 7))
    y = d.node("Conv", x, d.weight(channels, 1, taps, taps), pads=[taps // 2] * 4, group=channels,
               strides=[d.pick((1, 2))] * 2)
    return [1, channels, side, side], activation(d, y)


def product(d, x):
    rows, terms, columns = d.extent(512), d.extent(1024), d.extent(1024)
    y = d.node("MatMul", x, d.weight(terms, columns))
    return [rows, terms], activation(d, y)


def batched_product(d, x):
    batch, rows, terms = d.extent(16), d.extent(256), d.extent(128)
    return [batch, rows, terms], d.node("MatMul", x, d.node("Transpose", x, perm=[0, 2, 1]))


def activation(d, x):
    kind = d.pick(("none", "unary", "residual"))
    if kind == "unary":
        return d.node(d.pick(UNARY[:3]), x)
    return d.node("Add", x, d.node("Neg", x)) if kind == "residual" else x


def unary(d, x):
    return d.shape(d.pick((1, 2, 3, 4))), d.node(d.pick(UNARY), x)


def chain(d, x):
    y = x
    for _ in range(d.pick((2, 3, 4))):
        y = d.node(d.pick(BINARY), y, x) if d.pick((0, 1)) else d.node(d.pick(UNARY), y)
    return d.shape(d.pick((2, 3, 4))), y


def binary(d, x):
    shape = d.shape(d.pick((2, 3, 4)))
    other = [extent if d.pick((0, 1)) else 1 for extent in shape]
    return shape, d.node(d.pick(BINARY), x, d.weight(*other))


def transposition(d, x):
    shape = d.shape(d.pick((2, 3, 4)))
    return shape, d.node("Transpose", x, perm=[int(i) for i in d.rng.permutation(len(shape))])


def rows(d, x):
    shape = d.shape(d.pick((2, 3, 4)))
    axis = int(d.rng.integers(len(shape)))
    if d.pick((0, 1)):
        return shape, d.node("Softmax", x, axis=axis)
    return shape, d.node(d.pick(("ReduceMean", "ReduceMax")), x, axes=[axis])


def normalisation(d, x):
    shape = d.shape(3)
    return shape, d.node("LayerNormalization", x, d.weight(shape[-1]), d.weight(shape[-1]))


def pool(d, x):
    channels, side = d.extent(256), d.extent(64) + 7
    taps = d.pick((2, 3))
    y = d.node(d.pick(("MaxPool", "AveragePool")), x, kernel_shape=[taps] * 2,
               strides=[d.pick((1, 2))] * 2)
    return [1, channels, side, side], y


def pieces(d, x):
    shape = d.shape(d.pick((2, 3)))
    axis = int(d.rng.integers(len(shape)))
    start = d.constant(np.array([shape[axis] // 3], np.int64))
    stop = d.constant(np.array([shape[axis]], np.int64))
    part = d.node("Slice", x, start, stop, d.constant(np.array([axis], np.int64)))
    return shape, d.node("Concat", d.node(d.pick(UNARY[:3]), x), part, axis=axis)


KINDS = (convolution, convolution, depthwise, product, product, batched_product, unary, chain,
         binary, binary, transposition, transposition, rows, rows, normalisation, pool, pieces)


def model(seed):
    d = Draw(seed)
    shape, y = d.pick(KINDS)(d, "x")
    info = helper.make_tensor_value_info
    graph = helper.make_graph(d.nodes, "random", [info("x", TensorProto.FLOAT, shape)],
                              [info(y, TensorProto.FLOAT, None)], d.constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    return onnx.shape_inference.infer_shapes(made)


def write(folder, count, seed):
    """Writes `count` models to the folder."""
    for number in range(count):
        onnx.save(model([seed, number]), folder / f"random{seed}_{number}.onnx")
