# SPDX-License-Identifier: Apache-2.0
"""Builds ONNX graphs node by node, with random weights that keep values near 1 in all layers.

Convolutional networks pass values as (name, channels); other networks pass names. With `width`
under 1 the network is narrow, and with `small` it is also short, for tests; it keeps all kinds of
layers. `scale` divides the images' sides further. Equal arguments produce equal bytes.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, SEED = 17, 2015


class Builder:
    """A graph to which nodes are added in order."""

    def __init__(self, width=1, small=False, scale=1):
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []
        self.rng = np.random.default_rng(SEED)
        self.width, self.small, self.scale, self.count = width, small, scale, 0

    def channels(self, count):
        """`count` channels, narrowed for small models to a number that no block divides."""
        return count if self.width == 1 else max(3, int(count * self.width) | 1)

    def blocks(self, count, least=1):
        """The repetitions of a block: `count`, or at most `least` in small models."""
        return min(count, least) if self.small else count

    # ---- Inputs, constants, nodes, outputs

    def input(self, name, shape, kind=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, name, array, dtype=np.float32):
        self.constants.append(numpy_helper.from_array(np.asarray(array).astype(dtype), name))
        return name

    def integers(self, values):
        """A constant of int64, without a name of its own."""
        self.count += 1
        return self.constant(f"ints{self.count}", np.asarray(values), np.int64)

    def scalar(self, value):
        self.count += 1
        return self.constant(f"scalar{self.count}", np.float32(value))

    def weight(self, name, *shape, scale=1.0):
        values = self.rng.standard_normal(shape, dtype=np.float32)
        return self.constant(name, values * np.float32(scale))

    def node(self, op, name, inputs, outputs=1, **attributes):
        names = [f"{name}_out"] if outputs == 1 else [f"{name}_out{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def __call__(self, op, *inputs, outputs=1, **attributes):
        """Adds a node with a generated name."""
        self.count += 1
        return self.node(op, f"{op.lower()}{self.count}", list(inputs), outputs, **attributes)

    def output(self, value, name, kind=TensorProto.FLOAT):
        """Makes a value the output `name`: renames the last node's result, or copies another's."""
        if self.nodes[-1].output[0] == value:
            self.nodes[-1].output[0] = name
        else:
            self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(helper.make_tensor_value_info(name, kind, None))

    # ---- Shapes

    def reshape(self, x, *shape):
        return self("Reshape", x, self.integers(shape))

    def transpose(self, x, *perm):
        return self("Transpose", x, perm=list(perm))

    def slice(self, x, axis, start, end, step=1):
        return self("Slice", x, self.integers([start]), self.integers([end]), self.integers([axis]),
                    self.integers([step]))

    def split(self, x, sizes, axis):
        return self("Split", x, self.integers(sizes), outputs=len(sizes), axis=axis)

    # ---- Layers of convolutional networks, on (name, channels)

    def conv(self, name, x, filters, size, stride=1, groups=1, gain=2.0, pads=None, axes=2,
             bias=True):
        """A convolution with a bias, padded to the size of its input when `pads` is None.

        `gain` 2 compensates for a ReLU. `size`, `stride` and `pads` are numbers, or lists with one
        number for each axis."""
        value, channels = x
        sizes, strides = ([v] * axes if isinstance(v, int) else list(v) for v in (size, stride))
        pads = [k // 2 for k in sizes] if pads is None else (
            [pads] * axes if isinstance(pads, int) else list(pads))
        shape = (filters, channels // groups, *sizes)
        inputs = [value, self.weight(name + ".weight", *shape,
                                     scale=np.sqrt(gain / np.prod(shape[1:])))]
        if bias:
            inputs.append(self.weight(name + ".bias", filters, scale=0.1))
        return self.node("Conv", name, inputs, kernel_shape=sizes, strides=strides, pads=pads * 2,
                         group=groups), filters

    def norm(self, name, x):
        """A batch normalisation that shifts and scales a little."""
        value, filters = x
        statistics = {
            "scale": self.rng.uniform(0.8, 1.2, filters), "shift": self.rng.normal(0, 0.1, filters),
            "mean": self.rng.normal(0, 0.1, filters),
            "variance": self.rng.uniform(0.8, 1.2, filters)}
        inputs = [value] + [self.constant(f"{name}.{key}", a) for key, a in statistics.items()]
        return self.node("BatchNormalization", name + ".norm", inputs, epsilon=1e-5), filters

    def conv_norm(self, name, x, filters, size, stride=1, groups=1, gain=2.0, pads=None, axes=2):
        return self.norm(name, self.conv(name, x, filters, size, stride, groups, gain, pads, axes,
                                         bias=False))

    def relu(self, name, x):
        return self.node("Relu", name, [x[0]]), x[1]

    def relu6(self, name, x):
        low = self.constant(name + ".low", np.array(0))
        high = self.constant(name + ".high", np.array(6))
        return self.node("Clip", name, [x[0], low, high]), x[1]

    def hard_swish(self, name, x):
        return self.node("HardSwish", name, [x[0]]), x[1]

    def silu(self, name, x):
        gate = self.node("Sigmoid", name + ".sigmoid", [x[0]])
        return self.node("Mul", name, [x[0], gate]), x[1]

    def leaky_relu(self, name, x):
        return self.node("LeakyRelu", name, [x[0]], alpha=0.1), x[1]

    def add(self, name, x, y):
        return self.node("Add", name, [x[0], y[0]]), x[1]

    def max_pool(self, x, size, stride, pads=0, axes=2):
        return self("MaxPool", x[0], kernel_shape=[size] * axes, strides=[stride] * axes,
                    pads=[pads] * 2 * axes), x[1]

    def average_pool(self, x, size, stride, pads=0):
        return self("AveragePool", x[0], kernel_shape=[size] * 2, strides=[stride] * 2,
                    pads=[pads] * 4, count_include_pad=1), x[1]

    def concat(self, *values):
        return self("Concat", *[v for v, _ in values], axis=1), sum(c for _, c in values)

    def squeeze_excite(self, name, x, inner, activate, gate, **attributes):
        y = self("GlobalAveragePool", x[0]), x[1]
        y = activate(name + ".act", self.conv(name + ".reduce", y, inner, 1))
        y = self.conv(name + ".expand", y, x[1], 1, gain=1.0)
        return self("Mul", x[0], self(gate, y[0], **attributes)), x[1]

    def dense(self, name, x, classes, gain=1.0):
        """A fully connected layer: Gemm."""
        return self.node("Gemm", name, [
            x[0], self.weight(name + ".weight", classes, x[1], scale=np.sqrt(gain / x[1])),
            self.weight(name + ".bias", classes, scale=0.1)], transB=1), classes

    def flat(self, x, pixels=1):
        return self.node("Flatten", f"flatten{self.count}", [x[0]], axis=1), x[1] * pixels

    def classifier(self, x, classes):
        value = self.node("GlobalAveragePool", "pool", [x[0]]), x[1]
        self.output(self.dense("classifier", self.flat(value), classes)[0], "logits")

    # ---- Layers of transformers, on names

    def linear(self, name, x, width, to, bias=True, gain=1.0):
        y = self("MatMul", x, self.weight(name + ".weight", width, to, scale=np.sqrt(gain / width)))
        return self.node("Add", name, [y, self.weight(name + ".bias", to, scale=0.1)]) if bias else y

    def layer_norm(self, name, x, width, epsilon=1e-5):
        scale = self.constant(name + ".scale", self.rng.uniform(0.8, 1.2, width))
        shift = self.weight(name + ".shift", width, scale=0.1)
        return self.node("LayerNormalization", name, [x, scale, shift], axis=-1, epsilon=epsilon)

    def gelu(self, x):
        """GELU by Erf, as PyTorch exports it before opset 20."""
        erf = self("Erf", self("Div", x, self.scalar(2 ** 0.5)))
        return self("Mul", self("Mul", x, self("Add", erf, self.scalar(1))), self.scalar(0.5))

    def gelu_tanh(self, x):
        cube = self("Mul", self("Mul", x, x), x)
        inner = self("Add", x, self("Mul", cube, self.scalar(0.044715)))
        tanh = self("Tanh", self("Mul", inner, self.scalar((2 / np.pi) ** 0.5)))
        return self("Mul", self("Mul", x, self.scalar(0.5)), self("Add", tanh, self.scalar(1)))

    def heads_of(self, x, lead, tokens, heads, width, perm=(0, 2, 1, 3)):
        return self.transpose(self.reshape(x, lead, tokens, heads, width // heads), *perm)

    def attention(self, name, x, width, heads, tokens, lead=1, adjust=None, joint=False):
        """Multi-head self-attention on [lead, tokens, width]. `adjust` changes the scores (masks,
        biases); with `joint`, one product makes queries, keys and values."""
        if joint:
            q, k, v = self.split(self.linear(name + ".qkv", x, width, 3 * width), [width] * 3, 2)
        else:
            q, k, v = (self.linear(f"{name}.{part}", x, width, width) for part in
                       ("query", "key", "value"))
        q = self.heads_of(q, lead, tokens, heads, width)
        k = self.heads_of(k, lead, tokens, heads, width, (0, 2, 3, 1))
        v = self.heads_of(v, lead, tokens, heads, width)
        scores = self("Div", self("MatMul", q, k), self.scalar((width // heads) ** 0.5))
        if adjust:
            scores = adjust(scores)
        mixed = self("MatMul", self("Softmax", scores, axis=-1), v)
        mixed = self.reshape(self.transpose(mixed, 0, 2, 1, 3), lead, tokens, width)
        return self.linear(name + ".out", mixed, width, width)

    def feed_forward(self, name, x, width, gelu=None):
        y = (gelu or self.gelu)(self.linear(name + ".up", x, width, 4 * width))
        return self.linear(name + ".down", y, 4 * width, width)

    def pre_norm_block(self, name, x, width, heads, tokens, gelu=None, **attention):
        """x + attention(norm(x)), then x + feed_forward(norm(x))."""
        y = self.attention(name + ".attention", self.layer_norm(name + ".norm1", x, width), width,
                           heads, tokens, **attention)
        x = self("Add", x, y)
        y = self.feed_forward(name + ".mlp", self.layer_norm(name + ".norm2", x, width), width, gelu)
        return self("Add", x, y)

    # ---- The model

    def model(self, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                 ir_version=8, producer_name="build.py")


def feeds(model, seed=9):
    """Random arrays for the model's inputs.

    Integer inputs are 0 or 1 for masks and token types, and otherwise numbers of words that every
    model has."""
    random, words = np.random.default_rng(seed), 31
    constants = {tensor.name for tensor in model.graph.initializer}
    arrays = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.name in constants:
            continue
        if value.type.tensor_type.elem_type == TensorProto.INT64:
            flags = "mask" in value.name or "type" in value.name
            arrays[value.name] = random.integers(0, 2 if flags else words, shape)
        else:
            arrays[value.name] = random.standard_normal(shape, dtype=np.float32)
    return arrays


def finished(model):
    """Infers the shapes of the model's outputs, and checks the model."""
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    del model.graph.value_info[:]
    onnx.checker.check_model(model)
    return model
