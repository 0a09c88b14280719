#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ResNet-50 or MobileNet-V2 as ONNX, with random weights and statistics.

  build.py resnet50 out.onnx             25.6 M weights, 1x3x224x224 to 1x1000
  build.py mobilenetv2 out.onnx           3.5 M weights
  build.py resnet50 small.onnx --small   the same topology, narrow and on 64x64, for tests
  build.py resnet50 tiny.onnx --small --scale 2   narrower still by 2, on 32x32

Topology and sizes are those of "Deep Residual Learning for Image Recognition" (He and others, 2015;
with the stride of a bottleneck in its 3x3 convolution, as everyone builds it since) and of
"MobileNetV2: Inverted Residuals and Linear Bottlenecks" (Sandler and others, 2018). The same
arguments give the same bytes. Weights are scaled so that activations stay near 1 throughout; batch
normalisations stay nodes of their own and shift and scale a little. Needs numpy and onnx.
"""
import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, SEED = 17, 2015


class Builder:
    """Adds nodes in order; values are (name, channels)."""

    def __init__(self, width):
        self.nodes, self.constants = [], []
        self.rng = np.random.default_rng(SEED)
        self.width = width

    def channels(self, count):
        """`count` channels, narrowed for small models to a number that no block divides."""
        return count if self.width == 1 else max(3, int(count * self.width) | 1)

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def node(self, op, name, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name + "_out"], name=name, **attributes))
        return name + "_out"

    def conv_norm(self, name, x, filters, size, stride=1, groups=1, gain=2.0):
        """Convolution without bias, then batch normalisation. `gain` 2 makes up for a ReLU."""
        value, channels = x
        fan_in = channels // groups * size * size
        weight = self.rng.normal(0, np.sqrt(gain / fan_in),
                                 (filters, channels // groups, size, size))
        y = self.node("Conv", name, [value, self.constant(name + ".weight", weight)],
                      kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4,
                      dilations=[1, 1], group=groups)
        statistics = {
            "scale": self.rng.uniform(0.8, 1.2, filters), "shift": self.rng.normal(0, 0.1, filters),
            "mean": self.rng.normal(0, 0.1, filters),
            "variance": self.rng.uniform(0.8, 1.2, filters)}
        inputs = [y] + [self.constant(f"{name}.{key}", a) for key, a in statistics.items()]
        return self.node("BatchNormalization", name + ".norm", inputs, epsilon=1e-5), filters

    def relu(self, name, x):
        return self.node("Relu", name, [x[0]]), x[1]

    def relu6(self, name, x):
        low = self.constant(name + ".low", np.array(0))
        high = self.constant(name + ".high", np.array(6))
        return self.node("Clip", name, [x[0], low, high]), x[1]

    def classifier(self, x, classes):
        value = self.node("GlobalAveragePool", "pool", [x[0]])
        value = self.node("Flatten", "flatten", [value], axis=1)
        weight = self.rng.normal(0, np.sqrt(1 / x[1]), (classes, x[1]))
        bias = self.rng.normal(0, 0.1, classes)
        self.node("Gemm", "classifier", [value, self.constant("classifier.weight", weight),
                                         self.constant("classifier.bias", bias)], transB=1)
        self.nodes[-1].output[0] = "logits"


def bottleneck(b, name, x, filters, stride):
    inner = b.channels(filters)
    y = b.relu(name + ".relu1", b.conv_norm(name + ".conv1", x, inner, 1))
    y = b.relu(name + ".relu2", b.conv_norm(name + ".conv2", y, inner, 3, stride))
    y = b.conv_norm(name + ".conv3", y, b.channels(4 * filters), 1, gain=0.5)
    if x[1] != y[1] or stride != 1:
        x = b.conv_norm(name + ".project", x, y[1], 1, stride, gain=1.0)
    total = b.node("Add", name + ".add", [y[0], x[0]]), y[1]
    return b.relu(name + ".relu3", total)


def resnet50(b, classes):
    x = b.relu("stem.relu", b.conv_norm("stem.conv", ("image", 3), b.channels(64), 7, 2))
    x = b.node("MaxPool", "stem.pool", [x[0]], kernel_shape=[3, 3], strides=[2, 2],
               pads=[1] * 4), x[1]
    for stage, (blocks, filters) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 1 else 1
            x = bottleneck(b, f"layer{stage}.{block}", x, filters, stride)
    b.classifier(x, classes)


def inverted_residual(b, name, x, filters, stride, expansion):
    y = x
    if expansion > 1:
        y = b.relu6(name + ".relu1", b.conv_norm(name + ".expand", y, x[1] * expansion, 1))
    y = b.relu6(name + ".relu2", b.conv_norm(name + ".depthwise", y, y[1], 3, stride, y[1]))
    y = b.conv_norm(name + ".project", y, filters, 1, gain=1.0)
    if stride == 1 and x[1] == filters:
        return b.node("Add", name + ".add", [x[0], y[0]]), filters
    return y


def mobilenetv2(b, classes):
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1)) # expansion, channels, blocks, first stride
    x = b.relu6("stem.relu", b.conv_norm("stem.conv", ("image", 3), b.channels(32), 3, 2))
    for stage, (expansion, channels, blocks, stride) in enumerate(rows, 1):
        for block in range(blocks):
            x = inverted_residual(b, f"layer{stage}.{block}", x, b.channels(channels),
                                  stride if block == 0 else 1, expansion)
    x = b.relu6("last.relu", b.conv_norm("last.conv", x, b.channels(1280), 1))
    b.classifier(x, classes)


MODELS = {"resnet50": resnet50, "mobilenetv2": mobilenetv2}


def build(name, small, scale=1):
    b = Builder((1 / 8 if small else 1) / scale)
    size, classes = (64 // scale, 10) if small else (224 // scale, 1000)
    MODELS[name](b, classes)
    model = helper.make_model(
        helper.make_graph(
            b.nodes, name,
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, size, size])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, classes])],
            b.constants),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="build.py")
    onnx.checker.check_model(model, full_check=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("path")
    parser.add_argument("--small", action="store_true", help="narrow, on 64x64, 10 classes")
    parser.add_argument("--scale", type=int, default=1, help="divides channels and resolution")
    arguments = parser.parse_args()
    onnx.save(build(arguments.model, arguments.small, arguments.scale), arguments.path)


if __name__ == "__main__":
    main()
