#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs with random requests for layouts, run by Pleat and by ONNX Runtime.

    random_layouts.py 1000 1         a thousand graphs of random_onnx.py from seed 1

A graph has up to six requests, drawn by chance: layouts of operands and of the caller's inputs and
outputs, tensors that keep their layout, a policy. Layouts are blocks, orders of the axes, tiles,
reversals, gaps and XORs of axes, with any padding. All memory whose contents are undefined
(padding, intermediate tensors, outputs) is NaN before a run. A request that cannot be met is left
out, so that a graph is refused only when it is refused without any.
"""
import os
import sys

import numpy as np
import onnx
import random_onnx
from hill_climb import named, ranks_of, tags

MOST_REQUESTS = 6


def index_map(random, rank):
    """A map with padding, which is no order of axes or blocks of one."""
    letters = "abcdefghij"[:rank]
    i, j = (int(n) for n in random.integers(rank, size=2))
    a, b, block = letters[i], letters[j], int(random.choice([2, 3, 4, 8, 16]))
    outputs = list(letters)
    kind = random.integers(5)
    if kind == 0:
        outputs[i:i + 1] = [f"{a} // {block}", f"{a} % {block}"]
    elif kind == 1:
        outputs[i] = f"{a} + {block}"
    elif kind == 2 and i != j:
        outputs[i] = f"{a} ^ {b} % {random.choice([2, 4, 8])}"
    elif kind == 3 and i != j:
        other = int(random.choice([2, 3, 4]))
        outputs = [f"{x} // {block}" if x == a else f"{x} // {other}" if x == b else x
                   for x in outputs] + [f"{a} % {block}", f"{b} % {other}"]
    else:
        outputs[i] = f"{a} * 2"
    random.shuffle(outputs)
    return f"lambda {', '.join(letters)}: [{', '.join(outputs)}]"


def layout_of(random, rank):
    if random.random() < 0.5:
        return str(random.choice(list(tags(rank, random))))
    return index_map(random, rank)


def requests_of(model, seed):
    """Requests as (option of pleat.Model, key, value)."""
    random, ranks = np.random.default_rng(seed + 7), ranks_of(model)
    constants = {c.name for c in model.graph.initializer}
    operands = [(node.name, f"{kind}put{i}", name) for node in model.graph.node
                for kind, names in (("in", node.input), ("out", node.output))
                for i, name in enumerate(names) if name in ranks and name not in constants]
    for _ in range(int(random.integers(1, MOST_REQUESTS + 1))):
        kind = random.integers(10)
        node, operand, name = operands[random.integers(len(operands))] if operands else 3 * [None]
        if kind == 0:
            yield "policy", None, str(random.choice(["forward", "backward", "none"]))
        elif kind == 1 and name:
            yield "keep_layouts", name, None
        elif kind in (2, 3):
            values = [v.name for v in model.graph.input if v.name in ranks]
            if values:
                name = str(random.choice(values))
                yield "input_layouts", name, layout_of(random, ranks[name])
        elif kind == 4:
            values = [v.name for v in model.graph.output if v.name in ranks]
            if values:
                name = str(random.choice(values))
                yield "output_layouts", name, layout_of(random, ranks[name])
        elif name:
            yield "desired_layouts", (node, operand), layout_of(random, ranks[name])


def options_of(requests):
    """The options of pleat.Model; a later request replaces an earlier one for the same tensor."""
    options = {"keep_layouts": [], "desired_layouts": {}, "input_layouts": {}, "output_layouts": {}}
    for option, key, value in requests:
        if option == "policy":
            options[option] = value
        elif option == "keep_layouts":
            options[option].append(key)
        elif option == "desired_layouts":
            options[option].setdefault(key[0], {})[key[1]] = value
        else:
            options[option][key] = value
    return options


def met(model, requests):
    """Options for the requests that can be met: each is taken if those before it allow that."""
    import pleat

    taken = []
    for request in requests:
        try:
            pleat.plan(model, **options_of(taken + [request]))
            taken.append(request)
        except pleat.PleatFault:
            raise
        except pleat.PleatError:
            pass
    return options_of(taken)


def fill_of(dtype):
    return dtype.type(np.nan) if dtype.kind == "f" else dtype.type(1 if dtype == bool else 93)


def packed(array, layout):
    import pleat
    return pleat.layout.Layout(layout, array.shape).pack(array, fill_of(array.dtype))


def unpacked(array, layout, shape):
    import pleat
    return pleat.layout.Layout(layout, shape).unpack(array)


def run_seed(seed):
    """[outcome, reason]: passed, refused by one of the two, or wrong."""
    import pleat

    os.environ["PLEAT_POISON"] = "1"
    model = random_onnx.random_model(seed)
    if model is None:
        return ["empty", ""]
    named(model)
    feeds = random_onnx.feeds_of(model, seed)
    try:
        expected = random_onnx.onnxruntime_session(model).run(None, feeds)
    except Exception as error:
        return ["refused by ONNX Runtime", str(error)[:300]]
    options = None
    try:
        options = met(model.SerializeToString(), requests_of(model, seed))
        run = pleat.Model(model, cache=False, **options, **random_onnx.ways_of(seed))
        given = {name: packed(array, options["input_layouts"][name])
                 if name in options["input_layouts"] else array for name, array in feeds.items()}
        results = run.run(given)
    except pleat.PleatFault as error:
        return ["wrong", f"{error} {options or ''}"]
    except pleat.PleatError as error:
        asked = options and any(options.values())
        return ["wrong" if asked else "refused", f"{error} {options or ''}"]
    for value, want, have in zip(model.graph.output, expected, results):
        layout = options["output_layouts"].get(value.name)
        have = unpacked(have, layout, want.shape) if layout else have
        what = random_onnx.difference(want, have)
        if what:
            return ["wrong", f"'{value.name}': {what} {options}"]
    return ["passed" if any(options.values()) else "passed without requests", ""]


if __name__ == "__main__":
    sys.exit(random_onnx.main(run_seed))
