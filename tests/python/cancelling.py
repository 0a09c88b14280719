#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts views that undo one another between the operators of a model: transposes, reshapes, and pads
with the slices that cut them off, also inside of one another. The plan must cost what it costs
without them.

    cancelling.py 5 1 [NAME ...]     five variants from seed 1 of networks of examples/models
"""
import argparse
import itertools
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper
from built import ROOT

sys.path.insert(0, str(ROOT / "examples" / "models"))
import build  # noqa: E402
import pleat  # noqa: E402

# Costs are rounded for each stage, and equally cheap plans differ in how they are rounded.
ROUNDING = 1e-4
# Networks whose plans no solver proves in time: each finds another good one.
UNPROVED = 2e-3


def shapes_of(model):
    """The shapes of all tensors of floats that have one."""
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    for value in itertools.chain(graph.input, graph.value_info, graph.output):
        kind = value.type.tensor_type
        if kind.elem_type == onnx.TensorProto.FLOAT and kind.shape.dim:
            shape = [d.dim_value for d in kind.shape.dim]
            if all(shape):
                yield value.name, shape


class Variant:
    """A model with `count` such groups of views, which are listed in `inserted`."""

    def __init__(self, model, seed, count):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.random, self.names, self.nodes, self.inserted = np.random.default_rng(seed), 0, [], []
        graph, shapes = self.model.graph, dict(shapes_of(model))
        edges = [(i, k) for i, node in enumerate(graph.node) for k, x in enumerate(node.input)
                 if x in shapes]
        chosen = {edges[i] for i in self.random.permutation(len(edges))[:count]}
        for i, node in enumerate(graph.node):
            for k, x in enumerate(node.input):
                if (i, k) in chosen:
                    node.input[k] = self.there_and_back(x, shapes[x], 2)
                    self.inserted.append((x, node.name))
            self.nodes.append(onnx.NodeProto.FromString(node.SerializeToString()))
        del graph.node[:]
        graph.node.extend(self.nodes)

    def name(self):
        self.names += 1
        return f"inserted{self.names}"

    def constant(self, values):
        values = np.asarray(values)
        values = values.astype(np.float32 if values.dtype.kind == "f" else np.int64)
        self.model.graph.initializer.append(numpy_helper.from_array(values, self.name()))
        return self.model.graph.initializer[-1].name

    def add(self, op, *inputs, **attributes):
        name = self.name()
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def there_and_back(self, x, shape, depth):
        """Views of x that undo one another, at most `depth` of them inside of one another."""
        views = [self.transposed, self.reshaped, self.padded]
        inside = (lambda y, s: self.there_and_back(y, s, depth - 1)) if depth > 1 else None
        inside = inside if self.random.random() < 0.5 else None
        return views[self.random.integers(3)](x, shape, inside or (lambda y, _: y))

    def transposed(self, x, shape, inside):
        order = self.random.permutation(len(shape))
        y = inside(self.add("Transpose", x, perm=order.tolist()), [shape[i] for i in order])
        return self.add("Transpose", y, perm=np.argsort(order).tolist())

    def reshaped(self, x, shape, inside):
        to = []
        for extent in shape:
            divisors = [k for k in range(2, extent) if extent % k == 0]
            if divisors and self.random.random() < 0.5:
                by = int(self.random.choice(divisors))
                to += [by, extent // by]
            elif to and self.random.random() < 0.5:
                to[-1] *= extent
            else:
                to.append(extent)
        y = inside(self.add("Reshape", x, self.constant(to)), to)
        return self.add("Reshape", y, self.constant(shape))

    def padded(self, x, shape, inside):
        before, after = self.random.integers(0, 3, (2, len(shape)))
        value = self.constant(self.random.choice([0.0, 1.0, -np.inf]))
        y = self.add("Pad", x, self.constant([*before, *after]), value)
        y = inside(y, (before + shape + after).tolist())
        axes = self.constant(range(len(shape)))
        return self.add("Slice", y, self.constant(before), self.constant(before + shape), axes)


def plan(model, cpu):
    return pleat.plan(model.SerializeToString(), cpu=cpu)


def difference(model, seed, count, cpu):
    """The cost of a variant's plan beside the model's, or None where they are the same."""
    variant, asked = Variant(model, seed, count), plan(model, cpu)
    cost = plan(variant.model, cpu)["cost"]
    allowed = ROUNDING if asked["cost"] == asked["lower_bound"] else UNPROVED
    if cost <= asked["cost"] * (1 + allowed):
        return None
    return f"seed {seed}, {cpu}: {cost:.0f} cycles, {asked['cost']:.0f} without {variant.inserted}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    found = 0
    for name in options.names or build.MODELS:
        model = build.build(name, small=True)
        for seed in range(options.first, options.first + options.count):
            for cpu in ("avx2", "avx512"):
                text = difference(model, seed, 8, cpu)
                found += text is not None
                if text:
                    print(f"{name}, {text}", flush=True)
    print(f"{found} variants cost more")
    return found != 0


if __name__ == "__main__":
    sys.exit(main())
