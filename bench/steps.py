#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how long schedule steps take from Python, on functions of many blocks.

Prints the milliseconds of processor time of each step on functions of 50 and 1,000 blocks, each of which
reads what the one before writes: the median over blocks in different places. A step includes the proof that
it is legal, and the verification of its result. No figure makes the script fail.

    PYTHONPATH=python build/venv/bin/python bench/steps.py      all sizes
    … bench/steps.py --blocks 50,200                            these sizes
"""
import argparse
import statistics
import time

import pleat

PLACES = 9  # blocks on which each step is tried
HEAD = """@T.prim_func
def f(t0: T.Buffer((64, 48), "float32"), t{last}: T.Buffer((64, 48), "float32")):
"""
ALLOCATION = '    t{number} = T.alloc_buffer((64, 48), "float32")\n'
BLOCK = """    for i, j in T.grid(64, 48):
        with T.block("b{number}"):
            vi, vj = T.axis.remap("SS", [i, j])
            t{number}[vi, vj] = t{before}[vi, vj] * T.float32({number})
"""


def module(blocks):
    inner = (ALLOCATION.format(number=number) for number in range(1, blocks))
    nests = (BLOCK.format(number=number, before=number - 1) for number in range(1, blocks + 1))
    return pleat.script.from_source(HEAD.format(last=blocks) + "".join(inner) + "".join(nests))


def loops_of(sch, number):
    return sch.get_loops(f"b{number}")


# Each prepares what its step needs, which is not measured, and returns the step.
STEPS = {
    "get_sblock": lambda sch, n: lambda: sch.get_sblock(f"b{n}"),
    "get_loops": lambda sch, n: lambda: sch.get_loops(f"b{n}"),
    "transform_layout": lambda sch, n: lambda: sch.transform_layout(
        f"b{n}", ("write", 0), lambda i, j: [j // 16, i, j % 16]),
    "transform_layout, padded": lambda sch, n: lambda: sch.transform_layout(
        f"b{n}", ("write", 0), lambda i, j: [j // 13, i, j % 13], pad_value=0.0),
    "split": lambda sch, n: lambda loop=loops_of(sch, n)[0]: sch.split(loop, [None, 7]),
    "reorder": lambda sch, n: lambda loops=loops_of(sch, n): sch.reorder(loops[1], loops[0]),
    "fuse": lambda sch, n: lambda loops=loops_of(sch, n): sch.fuse(*loops),
    "vectorize": lambda sch, n: lambda loop=loops_of(sch, n)[1]: sch.vectorize(loop),
    "parallel": lambda sch, n: lambda loop=loops_of(sch, n)[0]: sch.parallel(loop),
    "cache_read": lambda sch, n: lambda: sch.cache_read(f"b{n}", 0, "local"),
    "cache_write": lambda sch, n: lambda: sch.cache_write(f"b{n}", 0, "local"),
    "compute_at": lambda sch, n: lambda loop=loops_of(sch, n + 1)[0]: sch.compute_at(f"b{n}", loop),
    "reverse_compute_at": lambda sch, n: lambda loop=loops_of(sch, n)[0]: sch.reverse_compute_at(f"b{n + 1}", loop),
    "compute_inline": lambda sch, n: lambda: sch.compute_inline(f"b{n}"),
    "reindex": lambda sch, n: lambda: sch.reindex(f"b{n}", ("read", 0)),
}


def milliseconds(program, blocks, prepare):
    """The median time of a step, each time on a new schedule and on another block."""
    times = []
    for place in range(PLACES):
        sch = pleat.tir.Schedule(program)
        step = prepare(sch, 2 + place * (blocks - 4) // (PLACES - 1))
        begin = time.process_time()
        step()
        times.append(1e3 * (time.process_time() - begin))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", default="50,1000", help="sizes of functions, between commas")
    sizes = [int(size) for size in parser.parse_args().blocks.split(",")]
    programs = {size: module(size) for size in sizes}
    print(f"{'ms':26}" + "".join(f"{size:>8,} blocks" for size in sizes))
    for name, prepare in STEPS.items():
        times = (milliseconds(program, size, prepare) for size, program in programs.items())
        print(f"{name:26}" + "".join(f"{ms:15.2f}" for ms in times), flush=True)


if __name__ == "__main__":
    main()
