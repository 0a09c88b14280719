#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the time of `pleat plan` grows with the number of operators.

Prints the processor time of the whole command (reading the model, its stages, and the plan) for
networks of 1,000 to 100,000 operators, the best of several rounds, and the time of each operator.
A time that grows linearly has equal times of each operator in a row. `schedules` also chooses the
schedule of every kernel. No figure makes the script fail.

    scale.py                     all networks
    scale.py --only unet         networks whose name contains this
    scale.py --most 10000        no network of more operators
"""
import argparse
import os
import pathlib
import subprocess
import tempfile

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = (1000, 4000, 12000, 100000)
CHANNELS, IMAGE = 16, 8


class Network:
    """Operators and weights of one network; values are given by their names."""

    def __init__(self, shape):
        self.nodes, self.weights, self.shape = [], [], shape
        self.random = numpy.random.default_rng(0)

    def constant(self, value):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def weight(self, *shape):
        return self.constant((self.random.standard_normal(shape) * 0.05).astype("float32"))

    def add(self, op, *inputs, **attributes):
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def conv(self, x, inputs=CHANNELS, window=1):
        weight = self.weight(CHANNELS, inputs, window, window)
        return self.add("Conv", x, weight, pads=[window // 2] * 4)

    def save(self, output, path):
        info = helper.make_tensor_value_info
        graph = helper.make_graph(self.nodes, "network",
                                  [info("x", TensorProto.FLOAT, self.shape)],
                                  [info(output, TensorProto.FLOAT, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def residual(count, path):
    net, x = Network([1, CHANNELS, IMAGE, IMAGE]), "x"
    while len(net.nodes) < count:
        x = net.add("Add", net.conv(net.add("Relu", net.conv(x))), x)
    net.save(x, path)


def unet(count, path):
    net, x, skips = Network([1, CHANNELS, IMAGE, IMAGE]), "x", []
    while len(net.nodes) < 2 * count // 5:
        x = net.add("Relu", net.conv(x))
        skips.append(x)
    while skips:
        both = net.add("Concat", x, skips.pop(), axis=1)
        x = net.add("Relu", net.conv(both, 2 * CHANNELS))
    net.save(x, path)


def skips(count, path):
    """Each convolution is added to one of the last fifty results."""
    net, results = Network([1, CHANNELS, IMAGE, IMAGE]), ["x"]
    while len(net.nodes) < count:
        other = results[net.random.integers(max(0, len(results) - 50), len(results))]
        results.append(net.add("Add", net.conv(results[-1]), other))
    net.save(results[-1], path)


def transformer(count, path, rows=8, width=16, heads=2):
    net, x = Network([1, rows, width]), "x"
    split = net.constant(numpy.array([1, rows, heads, width // heads]))
    merge = net.constant(numpy.array([1, rows, width]))

    def product(x, inputs=width, outputs=width):
        return net.add("MatMul", x, net.weight(inputs, outputs))

    def normalised(x):
        return net.add("LayerNormalization", x, net.weight(width), net.weight(width))

    while len(net.nodes) < count:
        q, k, v = (net.add("Transpose", net.add("Reshape", product(x), split), perm=perm)
                   for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
        weights = net.add("Softmax", net.add("MatMul", q, k))
        mixed = net.add("Transpose", net.add("MatMul", weights, v), perm=[0, 2, 1, 3])
        x = normalised(net.add("Add", product(net.add("Reshape", mixed, merge)), x))
        inner = net.add("Relu", product(x, width, 2 * width))
        x = normalised(net.add("Add", product(inner, 2 * width), x))
    net.save(x, path)


NETWORKS = {"residual": residual, "unet": unet, "skips": skips, "transformer": transformer}


def processor_seconds(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               env={**os.environ, "PLEAT_CACHE": "off"})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def measure(pleat, path, rounds):
    """The best seconds of a plan, and of a plan with schedules."""
    commands = [[pleat, "plan", str(path)], [pleat, "plan", str(path), "--schedules"]]
    times = [[processor_seconds(command) for command in commands] for _ in range(rounds)]
    return [min(column) for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pleat", default="build/pleat")
    parser.add_argument("--only", default="")
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{'network':14}{'operators':>10}{'plan':>9}{'each':>9}{'schedules':>11}{'each':>9}")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "network.onnx"
        for name in (name for name in NETWORKS if arguments.only in name):
            for count in (size for size in SIZES if size <= arguments.most):
                NETWORKS[name](count, path)
                plan, schedules = measure(arguments.pleat, path, arguments.rounds)
                print(f"{name:14}{count:10,}{plan:7.2f} s{plan / count * 1e6:6.1f} us"
                      f"{schedules:9.2f} s{schedules / count * 1e6:6.1f} us", flush=True)


if __name__ == "__main__":
    main()
