#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for layouts that a user can ask for and that cost less than the plan.

    hill_climb.py --examples              the networks of examples/models at reduced size
    hill_climb.py --twins                 the networks of twins.py
    hill_climb.py --random 1000 1         a thousand random graphs from seed 1
    hill_climb.py a.onnx b.onnx           models in files

First every request is made alone (at most --most of them, drawn by chance), then combinations are
climbed: a request is added to those before it, or replaces one, and stays when the plan does not
cost more than before. A request is a layout of one operand of an operator, a tensor that keeps its
layout, a policy, or exact sums. Prints each model for which something is cheaper, with the cheapest
requests.
"""
import argparse
import itertools
import re
import sys

import numpy as np
import onnx
from built import ROOT

sys.path.insert(0, str(ROOT / "examples" / "models"))
import pleat  # noqa: E402

# Costs are rounded for each stage, and a tensor that has a layout of its own is a stage of its own.
ROUNDING, CYCLES_OF_A_STAGE = 1e-4, 1
BLOCKS = (8, 16)


def named(model):
    """The model with a name for each node, by which requests refer to it."""
    for number, node in enumerate(model.graph.node):
        node.name = node.name or f"node{number}"
    return model


def ranks_of(model):
    """The number of axes of each tensor that has some."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    values = itertools.chain(inferred.input, inferred.value_info, inferred.output)
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in values
             if v.type.HasField("tensor_type") and v.type.tensor_type.HasField("shape")}
    return {name: rank for name, rank in ranks.items() if rank}


def tags(rank, random):
    """Layouts of a tensor: each axis last, each axis in blocks, and an order by chance."""
    letters = "abcdefghij"[:rank]
    yield letters
    for i in range(rank):
        rest = letters[:i] + letters[i + 1:]
        if i < rank - 1:
            yield rest + letters[i]
        for block in BLOCKS:
            yield letters[:i] + letters[i].upper() + letters[i + 1:] + f"{block}{letters[i]}"
    if rank > 2:
        yield "".join(random.permutation(list(letters)))


def requests_of(model, random):
    """All requests as (option of pleat.plan, its text)."""
    ranks = ranks_of(model)
    constants = {c.name for c in model.graph.initializer}
    for policy in ("forward", "backward"):
        yield "policy", policy
    yield "accuracy", "exact"
    for name in ranks:
        yield "keep_layouts", name
    for node in model.graph.node:
        operands = [(f"input{i}", name) for i, name in enumerate(node.input)
                    if name not in constants]
        operands += [(f"output{i}", name) for i, name in enumerate(node.output)]
        for operand, tensor in operands:
            for tag in tags(ranks[tensor], random) if tensor in ranks else ():
                yield "desired_layouts", f"{node.name}:{operand}={tag}"


def cost_of(model, requests=(), cpu=None):
    """The predicted cycles, or None where the requests cannot be met."""
    options = {"keep_layouts": [], "desired_layouts": {}, "cpu": cpu}
    for option, text in requests:
        if option in ("policy", "accuracy"):
            options[option] = text
        elif option == "keep_layouts":
            options[option].append(text)
        else:
            operator, operand, layout = re.fullmatch("(.*):(.*)=(.*)", text).groups()
            options[option].setdefault(operator, {})[operand] = layout
    try:
        return pleat.plan(model, **options)["cost"]
    except pleat.PleatFault:
        raise
    except pleat.PleatError:
        return None


class Climb:
    """The search on one model; `found` are the cheapest requests that cost less than the plan."""

    def __init__(self, model, seed, most, combinations, cpu=None):
        self.model, self.cpu = named(model), cpu
        self.bytes = self.model.SerializeToString()
        self.random = np.random.default_rng(seed)
        plan = pleat.plan(self.bytes, cpu=cpu)
        self.cost, self.optimal = plan["cost"], plan["optimal"]
        allowed = max(self.cost * ROUNDING, CYCLES_OF_A_STAGE * (len(model.graph.node) + 1))
        self.cheapest, self.found, self.tried = self.cost - allowed, None, 0
        self.requests = list(requests_of(self.model, self.random))
        self.random.shuffle(self.requests)
        self.requests = [tuple(r) for r in self.requests[:most]]
        feasible = [(self.try_requests([r]), r) for r in self.requests]
        self.feasible = [(cost, r) for cost, r in feasible if cost is not None]
        self.combine(combinations)

    def try_requests(self, requests):
        cost = cost_of(self.bytes, requests, self.cpu)
        self.tried += 1
        if cost is not None and cost < self.cheapest:
            self.cheapest, self.found = cost, list(requests)
        return cost

    def combine(self, count):
        """Climbs from the requests that cost least alone."""
        good = [r for _, r in sorted(self.feasible)[:max(8, len(self.feasible) // 4)]]
        held, cost = [], self.cost
        for _ in range(count if good else 0):
            trial = held + [good[self.random.integers(len(good))]]
            if len(trial) > 4 or self.random.random() < 0.2:
                trial.pop(self.random.integers(len(trial)))
            found = self.try_requests(trial)
            if found is not None and found <= cost * 1.02:
                held, cost = trial, found

    def __str__(self):
        if not self.found:
            return (f"nothing of {self.tried} is cheaper than {self.cost:.0f} ("
                    f"{len(self.feasible)} of {len(self.requests)} can be met)")
        part = 100 * (1 - self.cheapest / self.cost)
        said = ", said to be optimal" if self.optimal else ""
        return f"{self.cheapest:.0f} of {self.cost:.0f} cycles (-{part:.1f} %{said}): {self.found}"


def models_of(options):
    """(name, model) of all that the command line names."""
    for path in options.models:
        yield path, onnx.load(path)
    if options.examples:
        import build
        for name in build.MODELS:
            yield name, build.build(name, small=True)
    if options.twins:
        import twins
        for name, *models in twins.pairs():
            yield from ((f"{name} {i}", m) for i, m in enumerate(models) if m)
    if options.random:
        import random_onnx
        count, first = options.random
        for seed in range(first, first + count):
            yield f"seed {seed}", random_onnx.random_model(seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--twins", action="store_true")
    parser.add_argument("--random", type=int, nargs=2, metavar=("COUNT", "SEED"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=200, help="requests tried alone")
    parser.add_argument("--combinations", type=int, default=50)
    parser.add_argument("--cpu", help="the level of processor that is planned for")
    options = parser.parse_args()
    cheaper = tried = 0
    for name, model in models_of(options):
        if model is None:
            continue
        try:
            climb = Climb(model, options.seed, options.most, options.combinations, options.cpu)
        except pleat.PleatFault as error:
            print(f"{name}: {error}", flush=True)
            cheaper += 1
            continue
        except pleat.PleatError:
            continue
        tried += climb.tried
        cheaper += climb.found is not None
        if climb.found or not options.random:
            print(f"{name}: {climb}", flush=True)
    print(f"{tried} plans, {cheaper} models for which a request costs less than the plan")
    return cheaper != 0


if __name__ == "__main__":
    sys.exit(main())
