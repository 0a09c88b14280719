#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the cost model against the clock: predicted and measured time of each kernel.

Takes the networks of examples/models, the operators of operators.py and random operators, plans
them, runs them on one thread, and compares the cycles that the plan states for each kernel with its
time. All models run in turn, round after round, and the least time of a kernel counts, so that
other work on the machine disturbs all kernels alike. Steps of a model that run the same code at the
same price count once, with the median of their times. Kernels of another library are left out.

A ratio is nanoseconds per predicted cycle, divided by the median of all ratios: 2 means that the
kernel takes twice as long as predicted. No figure makes the script fail.

Reductions are also run with the schedules that are predicted to be the fastest after the chosen one
(`pleat run --runner-up`). What the choices lose is how much longer their kernels take in all than the
fastest schedules of each.

    model.py                        everything
    model.py a.onnx FOLDER          these models, and those in a folder
    model.py --random 200 --seed 7  random operators only
    model.py --cpu avx2             as on a processor of that level
    model.py --runners-up 0         without the schedules behind the chosen ones
    model.py --json rows.json       also writes a row for each kernel
"""
import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import random_operators

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "examples" / "models"))
NEAR, SECONDS, MOST_RUNS = 0.3, 0.4, 400
# `nanoseconds` are those of the chosen schedule, `fastest` the least of all that were run, and
# `place` says how far the fastest is behind the chosen one.
Row = collections.namedtuple("Row", "model kernel kind times cycles nanoseconds fastest place")


class Model:
    """A model, its kernels, and the least time of each step so far."""

    def __init__(self, path, arguments):
        self.path, self.arguments = path, arguments
        self.kernels = self.pleat("plan", "--threads", "1")["joins"]
        self.least = [{} for _ in range(1 + arguments.runners_up)]
        self.code, self.runs = {}, 3
        types = {node.name: node.op_type
                 for node in onnx.load(path, load_external_data=False).graph.node}
        self.kinds = ["rewrite" if k["rewrite"] else types.get(k["name"].split(":")[0], "other")
                      for k in self.kernels]

    def pleat(self, command, *options):
        level = ["--cpu", self.arguments.cpu] if self.arguments.cpu else []
        done = subprocess.run([self.arguments.pleat, command, self.path, "--json", *level, *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise RuntimeError(f"{self.path.stem}: {(done.stdout + done.stderr)[:300]}")
        return json.loads(done.stdout)

    def measure(self, folder, place):
        """Runs the model with schedules that are so many places behind the chosen ones, and notes
        the time of each step."""
        trace = folder / "trace.json"
        result = self.pleat("run", "--fill", "random", "--threads", "1", "--repeat",
                            str(self.runs), "--runner-up", str(place), "--trace", str(trace))
        seconds = result["latency_ms"]["p10"] / 1e3
        self.runs = max(3, min(MOST_RUNS, int(SECONDS / 2 / seconds)))
        for event in json.loads(trace.read_text())["traceEvents"]:
            if event.get("cat") != "kernel":
                continue
            step, least = event["args"]["step"], self.least[place]
            least[step] = min(least.get(step, math.inf), event["dur"] * 1e3)
            if not place:
                self.code[step] = event["args"]["code"]

    def rows(self):
        """A row for each kernel that was measured."""
        alike = collections.defaultdict(list)
        for number, kernel in enumerate(self.kernels, 1):
            if number in self.least[0] and "function" not in kernel and kernel["cycles"] > 0:
                alike[self.code[number], kernel["cycles"]].append(number)
        for (_, cycles), numbers in alike.items():
            first = numbers[0] - 1
            times = [statistics.median(least.get(n, math.inf) for n in numbers)
                     for least in self.least]
            yield Row(self.path.stem, self.kernels[first]["writes"], self.kinds[first], len(numbers),
                      cycles, times[0], min(times), times.index(min(times)))


def networks(folder):
    """Writes the networks of examples/models, and the operators of operators.py."""
    import operators
    from build import MODELS, build

    for name in MODELS:
        onnx.save(build(name), folder / f"{name}.onnx")
    for one in operators.cases():
        onnx.save(operators.model_of(one)[0], folder / f"{one[0].replace(' ', '_')}.onnx")


def models_of(paths):
    for path in map(pathlib.Path, paths):
        yield from sorted(path.glob("*.onnx")) if path.is_dir() else [path]


def ranks(values):
    return np.argsort(np.argsort(values))


def print_kinds(rows, ratios):
    print("\n| kernels | count | share of time | median ratio | within 30 % of all | 10th | 90th |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    whole = sum(row.nanoseconds * row.times for row in rows)
    kinds = collections.Counter(row.kind for row in rows)
    for kind, count in kinds.most_common():
        own = [i for i, row in enumerate(rows) if row.kind == kind]
        time = sum(rows[i].nanoseconds * rows[i].times for i in own)
        low, middle, high = np.quantile(ratios[own], (0.1, 0.5, 0.9))
        print(f"| {kind} | {count} | {time / whole:.1%} | {middle:.2f} |"
              f" {np.mean(is_near(ratios[own])):.0%} | {low:.2f} | {high:.2f} |")


def is_near(ratios):
    return (ratios > 1 - NEAR) & (ratios < 1 + NEAR)


def print_worst(title, rows, ratios, order):
    print(f"\n{title}:")
    for i in order:
        row = rows[i]
        print(f"  {ratios[i]:5.2f}  {row.nanoseconds / 1e3:9.2f} us  {row.cycles:11.0f} cycles  "
              f"{row.model}: {row.kernel} ({row.kind})")


def print_lost(rows, shown):
    """Prints by how much the chosen schedules are slower than the fastest that were run."""
    chosen, fastest = (sum(getattr(row, name) * row.times for row in rows)
                       for name in ("nanoseconds", "fastest"))
    print(f"\nthe chosen schedules lose {chosen / fastest - 1:.1%} against the fastest of each kernel; "
          f"the runner-up is the fastest by more than 2 % for "
          f"{np.mean([row.fastest * 1.02 < row.nanoseconds for row in rows]):.0%} of the kernels")
    print("lose most:")
    for row in sorted(rows, key=lambda row: (row.fastest - row.nanoseconds) * row.times)[:shown]:
        print(f"  {row.nanoseconds / row.fastest:5.2f}  {row.nanoseconds / 1e3:9.2f} us  "
              f"place {row.place}  {row.times} times  {row.model}: {row.kernel} ({row.kind})")


def print_all(rows, shown):
    ratios = np.array([row.nanoseconds / row.cycles for row in rows])
    middle = np.median(ratios)
    ratios /= middle
    ranked = [ranks([row.cycles for row in rows]), ranks([row.nanoseconds for row in rows])]
    weights = np.array([row.nanoseconds * row.times for row in rows])
    near = is_near(ratios)
    print(f"{len(rows)} kernels, {middle:.3f} ns for a predicted cycle in the median")
    print(f"rank correlation {np.corrcoef(ranked)[0, 1]:.3f}")
    print(f"within 30 % of the median ratio: {np.mean(near):.1%} of the kernels, "
          f"{np.sum(weights[near]) / np.sum(weights):.1%} of their time")
    print_kinds(rows, ratios)
    order = np.argsort(ratios)
    print_worst("take longer than predicted", rows, ratios, order[::-1][:shown])
    print_worst("take less time than predicted", rows, ratios, order[:shown])


def measure_all(models, rounds):
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for model in models:
                for place in range(len(model.least)):
                    model.measure(pathlib.Path(folder), place)
    return [row for model in models for row in model.rows()]


def made(paths, arguments):
    """The models that can be planned."""
    for path in paths:
        try:
            yield Model(path, arguments)
        except RuntimeError as error:
            print(f"# {error}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--pleat", default="build/pleat")
    parser.add_argument("--random", type=int, help="the number of random operators")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worst", type=int, default=15, help="the kernels listed at each end")
    parser.add_argument("--cpu", help="a level of processor, such as avx2")
    parser.add_argument("--runners-up", type=int, default=3,
                        help="how many schedules behind the chosen one are run")
    parser.add_argument("--json", help="a file for the rows")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        everything = not arguments.models and arguments.random is None
        if everything:
            networks(folder)
        count = 300 if everything else arguments.random or 0
        random_operators.write(folder, count, arguments.seed)
        models = list(made(models_of([*arguments.models, folder]), arguments))
        rows = measure_all(models, arguments.rounds)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps([row._asdict() for row in rows]))
    if not rows:
        sys.exit("no kernel was measured; give the paths of .onnx files, or of folders of them")
    print_all(rows, arguments.worst)
    if arguments.runners_up:
        print_lost(rows, arguments.worst)


if __name__ == "__main__":
    main()
