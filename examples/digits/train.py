#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the demo's network on the 8x8 handwritten digits that come with scikit-learn and writes

  digits.onnx   1x1x8x8 pixels in 0..1 to the probabilities of the ten digits
  images.npy    float32 [N,1,8,8], the images that training did not see
  labels.npy    int64 [N], the digits that the images show

to the folder of this script. It needs numpy, scikit-learn and onnx, and takes about a minute. The
network is a small residual network whose numbers of channels (9, 13, 17) are multiples of no block
size. It is trained in numpy: each layer is a class with `forward`, `backward` and `export`. Batch
normalisations are separate nodes in the file, which the compiler folds.
"""
import pathlib

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

FOLDER = pathlib.Path(__file__).resolve().parent
SEED, EPOCHS, BATCH, RATE = 7, 60, 48, 4e-3


class Parameter:
    """A trained array with its gradient and Adam's two moments."""

    def __init__(self, value):
        self.value = value.astype(np.float32)
        self.gradient = np.zeros_like(self.value)
        self.mean = np.zeros_like(self.value)
        self.square = np.zeros_like(self.value)

    def step(self, rate, time, decay):
        self.mean += 0.1 * (self.gradient - self.mean)
        self.square += 0.001 * (self.gradient**2 - self.square)
        update = self.mean / (1 - 0.9**time) / (np.sqrt(self.square / (1 - 0.999**time)) + 1e-8)
        self.value -= rate * (update + decay * self.value)


class Graph:
    """The ONNX nodes and constants that the layers export."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, value):
        self.constants.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def node(self, op, name, inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [name + "_out"], name=name, **attributes))
        return name + "_out"


class Conv:
    def __init__(self, name, rng, channels, filters, size, stride=1):
        scale = np.sqrt(2 / (channels * size * size))
        self.name, self.size, self.stride, self.pad = name, size, stride, size // 2
        self.weight = Parameter(rng.normal(0, scale, (filters, channels, size, size)))
        self.parameters = [self.weight]

    def windows(self, x):
        pads = ((0, 0), (0, 0), (self.pad, self.pad), (self.pad, self.pad))
        windows = sliding_window_view(np.pad(x, pads), (self.size, self.size), (2, 3))
        return windows[:, :, :: self.stride, :: self.stride]

    def forward(self, x, training):
        self.x = x
        return np.einsum("nchwij,fcij->nfhw", self.windows(x), self.weight.value, optimize=True)

    def backward(self, dy):
        self.weight.gradient = np.einsum("nchwij,nfhw->fcij", self.windows(self.x), dy,
                                         optimize=True)
        columns = np.einsum("nfhw,fcij->nchwij", dy, self.weight.value, optimize=True)
        n, c, h, w = self.x.shape
        dx = np.zeros((n, c, h + 2 * self.pad, w + 2 * self.pad), np.float32)
        rows, cols = dy.shape[2] * self.stride, dy.shape[3] * self.stride
        for i in range(self.size):
            for j in range(self.size):
                dx[:, :, i:i + rows:self.stride, j:j + cols:self.stride] += columns[..., i, j]
        return dx[:, :, self.pad:self.pad + h, self.pad:self.pad + w]

    def export(self, graph, x):
        weight = graph.constant(self.name + "_weight", self.weight.value)
        return graph.node("Conv", self.name, [x, weight], kernel_shape=[self.size] * 2,
                          strides=[self.stride] * 2, pads=[self.pad] * 4)


class BatchNorm:
    EPSILON = 1e-5

    def __init__(self, name, channels):
        self.name = name
        self.scale, self.shift = Parameter(np.ones(channels)), Parameter(np.zeros(channels))
        self.mean, self.variance = np.zeros(channels), np.ones(channels)
        self.parameters = [self.scale, self.shift]

    def forward(self, x, training):
        if training:
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
            self.mean += 0.1 * (mean - self.mean)
            self.variance += 0.1 * (variance - self.variance)
        else:
            mean, variance = self.mean, self.variance
        self.spread = (1 / np.sqrt(variance + self.EPSILON)).astype(np.float32)[:, None, None]
        self.normal = (x - mean.astype(np.float32)[:, None, None]) * self.spread
        return self.normal * self.scale.value[:, None, None] + self.shift.value[:, None, None]

    def backward(self, dy):
        self.scale.gradient = (dy * self.normal).sum((0, 2, 3))
        self.shift.gradient = dy.sum((0, 2, 3))
        count = dy.size // dy.shape[1]
        inner = (dy - self.shift.gradient[:, None, None] / count
                 - self.normal * self.scale.gradient[:, None, None] / count)
        return inner * self.spread * self.scale.value[:, None, None]

    def export(self, graph, x):
        arrays = {"scale": self.scale.value, "shift": self.shift.value, "mean": self.mean,
                  "variance": self.variance}
        inputs = [graph.constant(f"{self.name}_{key}", value) for key, value in arrays.items()]
        return graph.node("BatchNormalization", self.name, [x] + inputs, epsilon=self.EPSILON)


class Relu:
    parameters = []

    def __init__(self, name):
        self.name = name

    def forward(self, x, training):
        self.positive = x > 0
        return x * self.positive

    def backward(self, dy):
        return dy * self.positive

    def export(self, graph, x):
        return graph.node("Relu", self.name, [x])


class MaxPool:
    """The maximum of each 2x2 square."""
    parameters = []

    def __init__(self, name):
        self.name = name

    def forward(self, x, training):
        n, c, h, w = x.shape
        squares = x.reshape(n, c, h // 2, 2, w // 2, 2)
        y = squares.max((3, 5))
        first = squares == y[:, :, :, None, :, None]
        self.share = first / first.sum((3, 5), keepdims=True)
        return y

    def backward(self, dy):
        dx = self.share * dy[:, :, :, None, :, None]
        n, c, h, _, w, _ = dx.shape
        return dx.reshape(n, c, 2 * h, 2 * w).astype(np.float32)

    def export(self, graph, x):
        return graph.node("MaxPool", self.name, [x], kernel_shape=[2, 2], strides=[2, 2])


class Head:
    """The mean of each channel, then a dense layer."""

    def __init__(self, rng, channels, classes):
        self.weight = Parameter(rng.normal(0, np.sqrt(1 / channels), (classes, channels)))
        self.bias = Parameter(np.zeros(classes))
        self.parameters = [self.weight, self.bias]

    def forward(self, x, training):
        self.shape = x.shape
        self.features = x.mean((2, 3))
        return self.features @ self.weight.value.T + self.bias.value

    def backward(self, dy):
        self.weight.gradient, self.bias.gradient = dy.T @ self.features, dy.sum(0)
        dx = dy @ self.weight.value / (self.shape[2] * self.shape[3])
        return np.broadcast_to(dx[:, :, None, None], self.shape).astype(np.float32)

    def export(self, graph, x):
        x = graph.node("GlobalAveragePool", "mean", [x])
        x = graph.node("Flatten", "features", [x], axis=1)
        arrays = [graph.constant("dense_weight", self.weight.value),
                  graph.constant("dense_bias", self.bias.value)]
        return graph.node("Gemm", "dense", [x] + arrays, transB=1)


class Sequence:
    def __init__(self, layers):
        self.layers = layers
        self.parameters = [p for layer in layers for p in layer.parameters]

    def forward(self, x, training):
        for layer in self.layers:
            x = layer.forward(x, training)
        return x

    def backward(self, dy):
        for layer in reversed(self.layers):
            dy = layer.backward(dy)
        return dy

    def export(self, graph, x):
        for layer in self.layers:
            x = layer.export(graph, x)
        return x


class Residual:
    """relu(body(x) + shortcut(x)); the shortcut is x itself when the shapes agree."""

    def __init__(self, name, rng, channels, filters, stride=1):
        self.name = name
        self.body = Sequence([
            Conv(name + "_conv1", rng, channels, filters, 3, stride),
            BatchNorm(name + "_norm1", filters), Relu(name + "_relu1"),
            Conv(name + "_conv2", rng, filters, filters, 3), BatchNorm(name + "_norm2", filters)])
        same = channels == filters and stride == 1
        self.shortcut = Sequence([] if same else [
            Conv(name + "_project", rng, channels, filters, 1, stride),
            BatchNorm(name + "_norm3", filters)])
        self.relu = Relu(name + "_relu2")
        self.parameters = self.body.parameters + self.shortcut.parameters

    def forward(self, x, training):
        total = self.body.forward(x, training) + self.shortcut.forward(x, training)
        return self.relu.forward(total, training)

    def backward(self, dy):
        dy = self.relu.backward(dy)
        return self.body.backward(dy) + self.shortcut.backward(dy)

    def export(self, graph, x):
        sides = [self.body.export(graph, x), self.shortcut.export(graph, x)]
        return self.relu.export(graph, graph.node("Add", self.name + "_add", sides))


def network(rng):
    return Sequence([
        Conv("stem", rng, 1, 9, 3), BatchNorm("stem_norm", 9), Relu("stem_relu"),
        Residual("block1", rng, 9, 9), MaxPool("pool"),
        Residual("block2", rng, 9, 13), Residual("block3", rng, 13, 17, stride=2),
        Head(rng, 17, 10)])


def shifted(images, rng):
    """Moves each image by up to one pixel in each direction."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows, cols = rng.integers(0, 3, (2, len(images)))
    return np.stack([p[:, r:r + 8, c:c + 8] for p, r, c in zip(padded, rows, cols)])


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def train(net, images, labels, rng):
    time, steps = 0, EPOCHS * (len(images) // BATCH)
    for epoch in range(EPOCHS):
        order, loss = rng.permutation(len(images)), 0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = order[start:start + BATCH]
            p = softmax(net.forward(shifted(images[batch], rng), True))
            wanted = np.eye(10, dtype=np.float32)[labels[batch]] * 0.95 + 0.005
            loss -= (wanted * np.log(p)).sum() / len(order)
            net.backward((p - wanted) / BATCH)
            time += 1
            rate = RATE * min(1, time / 60) * (1 + np.cos(np.pi * time / (steps + 1))) / 2
            for parameter in net.parameters:
                parameter.step(rate, time, decay=1e-2)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3}  loss {loss:.4f}")


def export(net, path):
    graph = Graph()
    graph.node("Softmax", "softmax", [net.export(graph, "image")], axis=1)
    graph.nodes[-1].output[0] = "probabilities"
    model = helper.make_model(
        helper.make_graph(
            graph.nodes, "digits",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
            [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])],
            graph.constants),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="train.py")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    rng = np.random.default_rng(SEED)
    digits = load_digits()
    images = (digits.images[:, None] / 16).astype(np.float32)
    labels = digits.target.astype(np.int64)
    seen, held, seen_labels, held_labels = train_test_split(
        images, labels, test_size=360, stratify=labels, random_state=SEED)
    net = network(rng)
    train(net, seen, seen_labels, rng)
    right = net.forward(held, False).argmax(1) == held_labels
    print(f"held out: {right.sum()} of {len(held)} right, {100 * right.mean():.2f} %")
    export(net, FOLDER / "digits.onnx")
    np.save(FOLDER / "images.npy", held)
    np.save(FOLDER / "labels.npy", held_labels)


if __name__ == "__main__":
    main()
