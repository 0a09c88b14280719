#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how fast TVMScript is read, verified and printed, and how long all passes take.

Prints the processor time of `pleat opt` on files of functions with 10 statements each, which it
reads, verifies and prints, for files of 0.1 to 20 MB, and the megabytes of a minute. Then that of
`pleat opt --pass lower` on one function of 100 to 10,000 statements, and on as many in functions
of 10. The best of several rounds counts. A time that grows linearly has equal rates. No figure
makes the script fail.

    scripts.py                   all sizes
    scripts.py --most 1000000    no file of more bytes, and no function of more bytes
"""
import argparse
import pathlib
import tempfile

from scale import processor_seconds

SIZES = (100_000, 1_000_000, 5_000_000, 20_000_000)
STATEMENTS = (100, 1000, 10_000)
HEAD = "from pleat.script import tir as T\n"
BLOCK = """    for i, j in T.grid({rows}, {columns}):
        with T.block("b{number}"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32({number}.5) + B[vi, vj]
"""
EXTENTS = ((7, 13), (1, 31), (16, 5), (11, 8))


def function(name, blocks):
    """A function of some statements; each runs over a part of the two buffers."""
    lines = ["\n@T.prim_func\n", f'def {name}(A: T.Buffer((16, 31), "float32"), ',
             'B: T.Buffer((16, 31), "float32")):\n']
    for number in range(blocks):
        rows, columns = EXTENTS[number % len(EXTENTS)]
        lines.append(BLOCK.format(rows=rows, columns=columns, number=number))
    return "".join(lines)


def module(path, functions, statements):
    text = "".join(function(f"f{i}", statements) for i in range(functions))
    path.write_text(HEAD + text)
    return path.stat().st_size


def best_seconds(command, rounds):
    return min(processor_seconds(command) for _ in range(rounds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pleat", default="build/pleat")
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    def seconds(*command):
        return best_seconds([arguments.pleat, *map(str, command)], arguments.rounds)

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "module.py"
        own = len(function("f1000", 10))
        print(f"{'read, verify, print':28}{'time':>10}{'a minute':>12}")
        for size in (size for size in SIZES if size <= arguments.most):
            size = module(path, size // own, 10)
            time = seconds("opt", path, "-o", "/dev/null")
            print(f"{size / 1e6:8.1f} MB{time:26.2f} s{size / time * 60e-6:9.0f} MB", flush=True)
        print(f"\n{'all passes':28}{'time':>10}{'a statement':>14}")
        for count in STATEMENTS:
            for name, functions in (("one function", 1), ("functions of 10", count // 10)):
                if module(path, functions, count // functions) > arguments.most:
                    continue
                time = seconds("opt", path, "--pass", "lower", "-o", "/dev/null")
                print(f"{count:6} in {name:18}{time:9.2f} s{time / count * 1e6:11.1f} us",
                      flush=True)


if __name__ == "__main__":
    main()
