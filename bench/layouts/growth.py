#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how the time of a question grows with the number of digits (2 to 60) and with the extent
(2^3 to 2^60). Prints a table, and with --svg writes a plot."""
import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPS = ["inverse", "bijective", "equal"]


def cut_in(digits, bits):
    """x of 2^bits values in so many digits, the least first."""
    at = [bits * k // digits for k in range(digits + 1)]
    return ", ".join(f"x//{1 << a} % {1 << (b - a)}" for a, b in zip(at, at[1:]))


def query(op, name, outputs, extent):
    a = {"layout": f"x -> {outputs}", "shape": [extent]}
    q = {"id": 0, "family": name, "op": op, "a": a, "truth": "yes"}
    if op == "equal":  # the same digits as differences of floors, cut short at the same values
        other = re.sub(r"x//(\d+) % (\d+)",
                       lambda m: f"(x//{m[1]} - x//{int(m[1]) * int(m[2])}*{m[2]}) % {m[2]}",
                       outputs)
        q["b"] = {"layout": f"x -> {other}", "shape": [extent]}
    if op == "inverse":
        q["truth"] = {"answer": "yes", "at": []}
    return q


def measure(bench, queries):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as out:
        out.writelines(json.dumps(q) + "\n" for q in queries)
    lines = subprocess.run([bench, out.name], capture_output=True, text=True).stdout.splitlines()
    os.unlink(out.name)
    return [json.loads(line) for line in lines]


def series(bench, repeat, steps, make):
    """{op: [(step, µs, outcome)]}, the least of some runs"""
    out = {}
    for op in OPS:
        queries = [query(op, str(s), *make(s)) for s in steps]
        runs = [measure(bench, queries) for _ in range(repeat)]
        out[op] = [(s, min(r["ns"] for r in results) / 1000, results[0]["outcome"])
                   for s, *results in zip(steps, *runs)]
    return out


def table(title, data):
    print(f"{title:10}" + "".join(f"{op:>14}" for op in data))
    for row in zip(*data.values()):
        cells = "".join(f"{us:11.1f} µs" if outcome == "right" else f"{outcome:>14}"
                        for _, us, outcome in row)
        print(f"{row[0][0]:<10}{cells}")


def plot(parts, path):
    """Both axes of the first part logarithmic, the times of all from 1 µs on."""
    width, height, colours = 360, 220, ["#1b6ca8", "#c8553d", "#4f772d"]
    most = max(us for _, data in parts for line in data.values() for _, us, _ in line)
    decades = math.ceil(math.log10(most))
    body = []
    for n, (title, data) in enumerate(parts):
        left = 70 + n * (width + 70)
        steps = [s for s, _, _ in next(iter(data.values()))]
        at = (lambda s: math.log(s / steps[0]) / math.log(steps[-1] / steps[0])) if n == 0 else (
            lambda s: (s - steps[0]) / (steps[-1] - steps[0]))
        high = lambda us: 25 + height * (1 - math.log10(max(us, 1)) / decades)
        for k in range(decades + 1):
            y = high(10 ** k)
            label = f"{10 ** k} µs" if k < 3 else f"{10 ** (k - 3)} ms"
            body.append(f'<path d="M{left} {y:.1f}h{width}" stroke="#ddd"/><text x="{left - 6}" '
                        f'y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        for s in steps:
            body.append(f'<text x="{left + at(s) * width:.1f}" y="{height + 42}" '
                        f'text-anchor="middle">{s}</text>')
        body.append(f'<text x="{left + width / 2}" y="{height + 64}" '
                    f'text-anchor="middle">{title}</text>')
        for op, colour in zip(data, colours):
            points = " ".join(f"{left + at(s) * width:.1f},{high(us):.1f}"
                              for s, us, _ in data[op])
            body.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
    for n, (op, colour) in enumerate(zip(OPS, colours)):
        body.append(f'<text x="{70 + n * 90}" y="13" fill="{colour}">{op}</text>')
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="890" height="300" '
                    'font-family="sans-serif" font-size="12">\n' + "\n".join(body) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", default=str(ROOT / "build/bench/layouts/layoutbench"))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--svg", type=pathlib.Path)
    args = parser.parse_args()
    digits = series(args.bench, args.repeat, [2, 3, 4, 6, 8, 12, 16, 20, 30, 40, 50, 60],
                    lambda n: (cut_in(n, 60), 1 << 60))
    extents = series(args.bench, args.repeat, [3, 6, 10, 15, 20, 25, 30, 40, 50, 60],
                     lambda bits: (cut_in(3, bits), 1 << bits))
    table("digits", digits)
    table("log extent", extents)
    if args.svg:
        plot([("digits", digits), ("bits of the extent", extents)], args.svg)


if __name__ == "__main__":
    main()
