# SPDX-License-Identifier: Apache-2.0
"""Pairs of networks that compute the same, one as PyTorch exports it (NCHW), one as converters of
TensorFlow models write it (NHWC tensors, with Transposes around every convolution), and networks
with views between operators, with the network that is left when the views are taken out.

    twins.py PLEAT [NAME ...]    kernels, rewrites and predicted cycles of both
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
TO_NCHW, TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]


class Net:
    """A graph in one of two styles; tensors are images in the style's order of axes."""

    def __init__(self, channels_last=False):
        self.last = channels_last
        self.random = np.random.default_rng(7)
        self.nodes, self.constants, self.inputs, self.count = [], [], [], 0

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def image(self, name, channels, size, batch=1):
        nchw = [batch, channels, size, size]
        return self.input(name, [nchw[i] for i in TO_NHWC] if self.last else nchw)

    def constant(self, values):
        self.count += 1
        values = np.asarray(values)
        values = values.astype(np.int64 if values.dtype.kind == "i" else np.float32)
        self.constants.append(numpy_helper.from_array(values, f"c{self.count}"))
        return f"c{self.count}"

    def weight(self, *shape):
        values = self.random.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5
        return self.constant(values.astype(np.float32))

    def __call__(self, op, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{op.lower()}{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"{op.lower()}{self.count}",
                                           **attributes))
        return names[0] if outputs == 1 else names

    def transpose(self, x, perm):
        return self("Transpose", x, perm=perm)

    # ---- Operators on images

    def conv(self, x, channels, filters, size=3, stride=1, groups=1, padded=True):
        weight = self.weight(filters, channels // groups, size, size)
        pads = [size // 2 if padded else 0] * 4
        return self.as_nchw("Conv", x, weight, pads=pads, strides=[stride] * 2, group=groups)

    def as_nchw(self, op, *inputs, **attributes):
        """An operator that ONNX defines on NCHW images, of which the first input is one."""
        if not self.last:
            return self(op, *inputs, **attributes)
        y = self(op, self.transpose(inputs[0], TO_NCHW), *inputs[1:], **attributes)
        return self.transpose(y, TO_NHWC)

    def pool(self, x, kind, size, stride):
        return self.as_nchw(kind, x, kernel_shape=[size] * 2, strides=[stride] * 2,
                            pads=[size // 2 if stride < size else 0] * 4)

    def twice_as_large(self, x):
        scales = [1, 2, 2, 1] if self.last else [1, 1, 2, 2]
        return self("Resize", x, "", self.constant(np.array(scales, np.float32)), mode="nearest",
                    coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def shuffle(self, x, channels, size, groups=2):
        """Groups of channels, transposed."""
        group = [groups, channels // groups]
        split = [1, size, size, *group] if self.last else [1, *group, size, size]
        whole = [1, size, size, channels] if self.last else [1, channels, size, size]
        y = self("Reshape", x, self.constant(np.array(split)))
        y = self.transpose(y, [0, 1, 2, 4, 3] if self.last else [0, 2, 1, 3, 4])
        return self("Reshape", y, self.constant(np.array(whole)))

    def per_channel(self, values):
        return self.constant(values if self.last else np.reshape(values, [-1, 1, 1]))

    def scale_bias(self, x, channels):
        scale = self.random.standard_normal(channels) * 0.1 + 1
        bias = self.random.standard_normal(channels) * 0.1
        return self("Add", self("Mul", x, self.per_channel(scale)), self.per_channel(bias))

    def relu6(self, x):
        return self("Clip", x, self.constant(np.float32(0)), self.constant(np.float32(6)))

    def pad(self, x, by):
        pads = [0, by, by, 0] if self.last else [0, 0, by, by]
        return self("Pad", x, self.constant(np.array(pads * 2)))

    def concat(self, *inputs):
        return self("Concat", *inputs, axis=3 if self.last else 1)

    def block(self, x, channels, filters, **attributes):
        return self("Relu", self.scale_bias(self.conv(x, channels, filters, **attributes), filters))

    def model(self, *outputs):
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "twin", self.inputs, results, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)],
                                 ir_version=8)


# ---- Networks in both styles

def residual(net):
    """Two convolutions with scale, bias and activation, and a residual."""
    x = net.image("x", 24, 28)
    a = net.block(x, 24, 32)
    b = net.scale_bias(net.conv(net.block(a, 32, 32), 32, 32), 32)
    y = net("Relu", net("Add", a, b))
    return net.model(net.block(y, 32, 16, size=1))


def mobile(net):
    """Depthwise and pointwise convolutions, with explicit padding before strides."""
    x, channels = net.image("x", 3, 64), 16
    x = net.relu6(net.scale_bias(net.conv(net.pad(x, 1), 3, 16, stride=2, padded=False), 16))
    for i, filters in enumerate([24, 24, 40, 40]):
        stride = 2 - i % 2
        y = net.relu6(net.scale_bias(net.conv(x, channels, 4 * channels, size=1), 4 * channels))
        if stride == 2:
            y = net.conv(net.pad(y, 1), 4 * channels, 4 * channels, stride=2,
                         groups=4 * channels, padded=False)
        else:
            y = net.conv(y, 4 * channels, 4 * channels, groups=4 * channels)
        y = net.relu6(net.scale_bias(y, 4 * channels))
        y = net.scale_bias(net.conv(y, 4 * channels, filters, size=1), filters)
        x = net("Add", x, y) if stride == 1 else y
        channels = filters
    return net.model(net("Relu", x))


def branches(net):
    """Two convolutions whose results are concatenated."""
    x = net.image("x", 32, 28)
    y = net.concat(net.block(x, 32, 48), net.block(x, 32, 16, size=1))
    return net.model(net.block(y, 64, 32))


def padded(net):
    """A padding between two convolutions."""
    x = net.image("x", 32, 28)
    y = net.pad(net.block(x, 32, 32), 1)
    return net.model(net.conv(y, 32, 32, padded=False))


def bias_between(net):
    """A bias between two convolutions."""
    x = net.image("x", 32, 28)
    bias = net.per_channel(np.arange(32, dtype=np.float32))
    return net.model(net.conv(net("Add", net.conv(x, 32, 32), bias), 32, 32))


def pooled(net):
    """A global mean and a product that scales channels."""
    x = net.image("x", 16, 28)
    a = net.block(x, 16, 32)
    axes = [1, 2] if net.last else [2, 3]
    gate = net("Sigmoid", net("ReduceMean", a, axes=axes, keepdims=1))
    return net.model(net.conv(net("Mul", a, gate), 32, 32))


def inception(net):
    """Convolutions and poolings that are concatenated, and a pooling with stride after them."""
    x = net.image("x", 32, 28)
    mean = net.block(net.pool(x, "AveragePool", 3, 1), 32, 16, size=1)
    wide = net.block(net.block(x, 32, 16, size=1), 16, 24, size=5)
    y = net.concat(net.block(x, 32, 24, size=1), wide, net.pool(x, "MaxPool", 3, 1), mean)
    return net.model(net.block(net.pool(y, "MaxPool", 2, 2), 96, 32))


def hourglass(net):
    """An image of half the size, enlarged and concatenated with what it was made of."""
    x = net.block(net.image("x", 16, 32), 16, 24)
    y = net.block(net.pool(x, "MaxPool", 2, 2), 24, 48)
    return net.model(net.block(net.concat(net.twice_as_large(y), x), 72, 24))


def pyramid(net):
    """Sums of images and of enlarged ones, each of which is an output."""
    a = net.block(net.image("x", 16, 32), 16, 24, stride=2)
    b = net.block(a, 24, 48, stride=2)
    top = net.conv(b, 48, 32, size=1)
    y = net("Add", net.twice_as_large(top), net.conv(a, 24, 32, size=1))
    return net.model(net.conv(top, 32, 32), net.conv(y, 32, 32))


def shuffled(net):
    """Convolutions in groups of channels, which are exchanged between them."""
    x = net.block(net.image("x", 16, 28), 16, 48)
    y = net.block(net.shuffle(net.block(x, 48, 48, size=1, groups=2), 48, 28), 48, 48)
    return net.model(net("Add", x, y))


def excited(net):
    """Channels scaled by a small network that reads their means."""
    x = net.block(net.image("x", 16, 28), 16, 48)
    means = net("ReduceMean", x, axes=[1, 2] if net.last else [2, 3], keepdims=1)
    gate = net("Relu", net.conv(means, 48, 12, size=1))
    gate = net("HardSigmoid", net.conv(gate, 12, 48, size=1))
    y = net("Mul", net("Mul", x, gate), net("HardSigmoid", x))
    return net.model(net.conv(y, 48, 32, size=1))


def classifier(net):
    """Means of channels, without their axes of one element, in a product."""
    x = net.block(net.block(net.image("x", 3, 32), 3, 32, stride=2), 32, 64)
    means = net("ReduceMean", x, axes=[1, 2] if net.last else [2, 3], keepdims=0)
    y = net("Gemm", means, net.weight(10, 64), net.constant(np.arange(10.0)), transB=1)
    return net.model(net("Softmax", y, axis=1))


def enlarged(net):
    """A transposed convolution between convolutions."""
    x = net.block(net.image("x", 16, 14), 16, 32)
    y = net.as_nchw("ConvTranspose", x, net.weight(32, 24, 2, 2), strides=[2, 2])
    return net.model(net.block(net("Relu", y), 24, 16))


STYLES = [residual, mobile, branches, padded, bias_between, pooled, inception, hourglass, pyramid,
          shuffled, excited, classifier, enlarged]


# ---- Networks with views, and without

def there_and_back(net, views):
    """Transpose, Relu, Transpose back, Tanh."""
    x = net.input("x", [1, 32, 56, 56])
    y = net("Relu", net.transpose(x, TO_NHWC) if views else x)
    return net.model(net("Tanh", net.transpose(y, TO_NCHW) if views else y))


def flat_and_back(net, views):
    """Reshape, Relu, Reshape back, Tanh."""
    x = net.input("x", [4, 32, 56, 56])
    y = net("Relu", net("Reshape", x, net.constant(np.array([4, 8, -1]))) if views else x)
    if views:
        y = net("Reshape", y, net.constant(np.array([4, 32, 56, 56])))
    return net.model(net("Tanh", y))


def conv_views(net, views):
    """A convolution whose result is flattened for an activation."""
    x = net.input("x", [1, 32, 28, 28])
    y = net.conv(x, 32, 32)
    if views:
        y = net("Reshape", y, net.constant(np.array([1, 32, 784])))
    y = net("Tanh", y)
    if views:
        y = net("Reshape", y, net.constant(np.array([1, 32, 28, 28])))
    return net.model(net.conv(y, 32, 32))


def squeezed(net, views):
    """A convolution whose result loses its axis of one element for an activation."""
    x = net.input("x", [1, 32, 28, 28])
    y = net.conv(x, 32, 32)
    if views:
        y = net("Squeeze", y, net.constant(np.array([0])))
    y = net("Relu", y)
    if views:
        y = net("Unsqueeze", y, net.constant(np.array([0])))
    return net.model(net.conv(y, 32, 32))


def rows_of_tokens(net, views):
    """A convolution whose result is a matrix of tokens for a bias of features and an activation."""
    x = net.input("x", [1, 32, 28, 28])
    y = net.conv(x, 32, 32)
    bias = np.linspace(-1, 1, 32, dtype=np.float32)
    if views:
        y = net("Transpose", y, perm=[0, 2, 3, 1])
        y = net("Reshape", y, net.constant(np.array([784, 32])))
    y = net("Add", y, net.constant(bias if views else bias.reshape(32, 1, 1)))
    y = net("Tanh", y)
    if views:
        y = net("Reshape", y, net.constant(np.array([1, 28, 28, 32])))
        y = net("Transpose", y, perm=[0, 3, 1, 2])
    return net.model(net.conv(y, 32, 32))


def product_of_tokens(net, views):
    """A product of a matrix of tokens, whose rows are an image for the windows of a convolution."""
    x = net.input("x", [784, 64] if views else [1, 28, 28, 64])
    weight = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    y = net("MatMul", x, net.constant(weight))
    y = net("Add", y, net.constant(np.linspace(-1, 1, 32, dtype=np.float32)))
    if views:
        y = net("Reshape", y, net.constant(np.array([1, 28, 28, 32])))
    y = net("Transpose", y, perm=[0, 3, 1, 2])
    return net.model(net.conv(y, 32, 32))


VIEWS = [there_and_back, flat_and_back, conv_views, squeezed, rows_of_tokens, product_of_tokens]


# ---- Networks on which a layout that a user asks for once was cheaper than the plan

def concat_odd():
    """A concatenation that no block of channels divides."""
    net = Net()
    x = net.input("x", [1, 64, 28, 28])
    y = net("Relu", net.concat(net.conv(x, 64, 58), net.conv(x, 64, 58)))
    return net.model(net.conv(y, 116, 64))


def dense():
    """Convolutions of 12 filters, each of which reads all results before."""
    net = Net()
    x, channels = net.input("x", [1, 24, 28, 28]), 24
    for _ in range(4):
        x = net.concat(x, net("Relu", net.conv(x, channels, 12)))
        channels += 12
    return net.model(net.conv(x, channels, 32, size=1))


ALONE = [concat_odd, dense]


def pairs():
    """(name, model, its twin or None)"""
    for make in STYLES:
        yield make.__name__, make(Net(channels_last=True)), make(Net())
    for make in VIEWS:
        yield make.__name__, make(Net(), True), make(Net(), False)
    for make in ALONE:
        yield make.__name__, make(), None


def plan(pleat, path, *options):
    """The plan as an object; None where the options cannot be met."""
    done = subprocess.run([pleat, "plan", str(path), "--json", *options], capture_output=True,
                          text=True, env={**os.environ, "PLEAT_CACHE": "off"})
    return json.loads(done.stdout) if done.returncode == 0 else None


def at_run_time(result):
    return sum(rewrite["when"] == "run" for rewrite in result["rewrites"])


def main():
    pleat, names = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        for name, *models in pairs():
            if names and name not in names:
                continue
            for model, which in zip(models, ["", " (twin)"]):
                if not model:
                    continue
                path = os.path.join(folder, "model.onnx")
                onnx.save(model, path)
                p = plan(pleat, path)
                print(f"{name + which:24} kernels {p['kernels']:3}  "
                      f"rewrites {at_run_time(p):2}  cycles {p['cost']:12.0f}  "
                      f"optimal {p['optimal']}")


if __name__ == "__main__":
    main()
