#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares copies from one layout to another with memcpy of as many bytes, on one thread.

Each case is a graph function with one R.layout_transform. The copy and memcpy run alternately, and
the minimum of each counts. The ratio is the copy's speed as a share of memcpy's; the slowest come
last, then the geometric mean. From each time, that of a copy of one element is subtracted, which is
mostly Python. No figure makes the script fail.

    copies.py                    everything
    copies.py --only NCHW        cases whose name contains this
"""
import argparse
import math
import pathlib
import sys
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import pleat  # noqa: E402

FUNCTION = """
from pleat.script import relax as R

@R.function
def main(x: R.Tensor({shape}, "{dtype}")):
    with R.dataflow():
        y = R.layout_transform(x, index_map={map})
        R.output(y)
    return y
"""
TO_LAST = "lambda n, c, h, w: (n, h, w, c)"
TO_FIRST = "lambda n, h, w, c: (n, c, h, w)"
SWAP = "lambda i, j: (j, i)"
HEADS = "lambda n, s, h, d: (n, h, s, d)"
KEYS = "lambda n, s, h, d: (n, h, d, s)"


def blocks(block):
    return f"lambda n, c, h, w: (n, c // {block}, h, w, c % {block})"


def unblock(block):
    return f"lambda n, c, h, w, b: (n, c * {block} + b, h, w)"


def other_blocks(of, to):
    if to > of:
        return f"lambda n, c, h, w, b: (n, c // {to // of}, h, w, c % {to // of} * {of} + b)"
    return f"lambda n, c, h, w, b: (n, c * {of // to} + b // {to}, h, w, b % {to})"


def cases():
    """The name, shape, type of elements and index map of each copy."""
    image, last = (1, 64, 56, 56), (1, 56, 56, 64)
    for block in (4, 8, 16):
        yield f"NCHW to NCHW{block}c", image, "float32", blocks(block)
        yield f"NCHW{block}c to NCHW", (1, 64 // block, 56, 56, block), "float32", unblock(block)
    yield "NCHW8c to NCHW16c", (1, 8, 56, 56, 8), "float32", other_blocks(8, 16)
    yield "NCHW16c to NCHW4c", (1, 4, 56, 56, 16), "float32", other_blocks(16, 4)
    yield "NHWC to NCHW16c", last, "float32", \
        "lambda n, h, w, c: (n, c // 16, h, w, c % 16)"
    yield "NCHW16c to NHWC", (1, 4, 56, 56, 16), "float32", \
        "lambda n, c, h, w, b: (n, h, w, c * 16 + b)"
    for dtype in ("float32", "float16", "int8"):
        yield f"NCHW to NHWC {dtype}", image, dtype, TO_LAST
        yield f"NHWC to NCHW {dtype}", last, dtype, TO_FIRST
        yield f"3 planes to NHWC {dtype}", (1, 3, 224, 224), dtype, TO_LAST
        yield f"NHWC to 3 planes {dtype}", (1, 224, 224, 3), dtype, TO_FIRST
    yield "NCHW 29x17x23 to NHWC", (3, 29, 17, 23), "float32", TO_LAST
    yield "NHWC 17x23x29 to NCHW", (3, 17, 23, 29), "float32", TO_FIRST
    for dtype in ("float64", "float32", "float16", "int8"):
        yield f"1000x768 {dtype}", (1000, 768), dtype, SWAP
        yield f"1024x1024 {dtype}", (1024, 1024), dtype, SWAP
    yield "96x96", (96, 96), "float32", SWAP
    yield "251x509", (251, 509), "float32", SWAP
    yield "4096x4096", (4096, 4096), "float32", SWAP
    yield "heads 8x128x12x64", (8, 128, 12, 64), "float32", HEADS
    yield "keys 8x128x12x64", (8, 128, 12, 64), "float32", KEYS
    yield "tiles of 8x8", (512, 768), "float32", \
        "lambda i, j: (i // 8, j // 8, i % 8, j % 8)"
    yield "swizzled rows", (512, 256), "float32", "lambda i, j: (i, j ^ (i % 8))"
    yield "reversed rows", (512, 768), "float32", "lambda i, j: (i, 767 - j)"


def minima(calls, seconds):
    """The least time of each call, in seconds, in alternating runs."""
    best = [math.inf] * len(calls)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def measure(shape, dtype, index_map, cpu, seconds):
    """The seconds of the copy, and of memcpy."""
    text = FUNCTION.format(shape=shape, dtype=dtype, map=index_map)
    session = pleat.compile(pleat.script.from_source(text), threads=1, cpu=cpu)
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    outputs = list(session.run([x]))
    copy, source = np.empty(x.size, dtype), x.ravel()
    return minima([lambda: session.run([x], outputs=outputs), lambda: np.copyto(copy, source)],
                  seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--cpu", help="the level of processor")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each case")
    arguments = parser.parse_args()
    call = measure((1, 1), "float32", SWAP, arguments.cpu, arguments.seconds)
    rows = []
    for name, shape, dtype, index_map in cases():
        if arguments.only not in name:
            continue
        times = measure(shape, dtype, index_map, arguments.cpu, arguments.seconds)
        ours, memcpy = (max(t - c, 1e-9) for t, c in zip(times, call))
        rows.append((memcpy / ours, name, ours, memcpy))
    print("| copy | Pleat µs | memcpy µs | ratio |\n| --- | --- | --- | --- |")
    for ratio, name, ours, memcpy in sorted(rows, reverse=True):
        print(f"| {name} | {ours * 1e6:.1f} | {memcpy * 1e6:.1f} | {ratio:.2f} |")
    if rows:
        mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
        print(f"geometric mean of {len(rows)}: {mean:.2f}")


if __name__ == "__main__":
    main()
