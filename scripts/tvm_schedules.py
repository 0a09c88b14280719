#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the schedules of TVM's own tests with those that Pleat makes of the same steps.

    TVM/bin/python scripts/tvm_schedules.py record ~/tvm schedules.json
    build/venv/bin/python scripts/tvm_schedules.py replay schedules.json [--list]

`record` runs the tests of schedules of a checkout of TVM with a Python that has the packages tvm and pytest, and
writes each schedule that they make: the program, the trace, and TVM's program after it. `replay` makes the steps of each
trace with Pleat, and compares the programs, whatever the names of blocks. Programs that differ run on the same
random inputs, as do the programs before the steps."""
import argparse
import ast
import builtins
import collections
import difflib
import importlib
import inspect
import json
import operator
import os
import pathlib
import re
import subprocess
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUTPUT = "TVM_SCHEDULES_FILE"


# ---- Recording: this file is also a plugin of pytest, in a Python that has TVM ---------------------------

class Recorder:
    """Keeps the schedules that tests make, and writes those with steps."""

    def __init__(self, path):
        import tvm
        from tvm import s_tir
        self.path, self.made = path, []
        self.tvm, original = tvm, s_tir.Schedule.__init__

        def init(schedule, mod, **keywords):
            original(schedule, mod, **keywords)
            self.made.append((schedule, schedule.mod))
        s_tir.Schedule.__init__ = init

    def intrinsics_of(self, text):
        """The intrinsics that the text of a trace names, each as the text of a module."""
        from tvm.s_tir import TensorIntrin
        found = {}
        for name in re.findall(r'tensor_intrin="([^"]*)"', text):
            intrinsic = TensorIntrin.get(name, allow_missing=True)
            if intrinsic is not None:
                found[name] = self.tvm.IRModule({"desc": intrinsic.desc, "impl": intrinsic.impl}).script()
        return found

    def row_of(self, test, schedule, before):
        trace = "\n".join(map(str, schedule.trace.as_python())) if schedule.trace else ""
        return {"test": test, "before": before.script(), "trace": trace,
                "after": schedule.mod.script(), "intrinsics": self.intrinsics_of(trace)}

    def pytest_runtest_logfinish(self, nodeid, location):
        with self.path.open("a") as file:
            for schedule, before in self.made:
                try:
                    row = self.row_of(nodeid, schedule, before)
                except Exception as error:  # TVM cannot print it
                    print(f"{nodeid}: {error}", file=sys.stderr)
                    continue
                file.write(json.dumps(row) + "\n")
        self.made.clear()


def stack(context=1):
    """inspect.stack, with source lines of the innermost frames only: TVM asks for them at each program that it
    reads, which takes seconds below the frames of pytest."""
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
    return [inspect.FrameInfo(frame, *inspect.getframeinfo(frame, context if at < 4 else 0)[:5])
            for at, frame in enumerate(frames)]


def pytest_configure(config):
    inspect.stack = stack
    importlib.import_module("tvm.testing")  # some tests use it without an import
    config.pluginmanager.register(Recorder(pathlib.Path(os.environ[OUTPUT])))


def record(checkout, path):
    """Runs each file of tests by itself, and its tests one by one where one of them ends the process."""
    path.write_text("")
    environment = {**os.environ, OUTPUT: str(path.resolve()), "PYTHONPATH": str(ROOT / "scripts")}

    def run(test, *options):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tvm_schedules", "-p", "no:cacheprovider",
                   "--noconftest", "-c", os.devnull, "--rootdir", str(checkout), "--tb=no", *options, test]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    for file in sorted(checkout.glob("tests/python/**/test_tir_schedule_*.py")):
        ended = run(str(file))
        print(f"{file.name}: {(ended.stdout.splitlines() or [''])[-1]}", flush=True)
        if ended.returncode < 0:
            for line in run(str(file), "--collect-only").stdout.splitlines():
                if "::" in line:
                    run(str(checkout / line))


def rows_of(path):
    """The different schedules that have a step which may change the program."""
    rows = map(json.loads, path.read_text().splitlines())
    return list({(row["before"], row["trace"]): row for row in rows
                 if re.search(r"sch\.(?!get_)", row["trace"]) and is_python(row)}.values())


# ---- Replaying, in a Python that has Pleat ---------------------------------------------------------------

def without_block_names(text):
    """The text of a module with one name for all blocks, which TVM's comparison does not see."""
    return re.sub(r'(T\.s?block\()"[^"]*"', r'\1"block"', text)


def apply_trace(trace, schedule):
    """Runs a trace as Python. Its free names are the sizes of the program, and TVM prints one keyword of a step
    in another way than the step takes it."""
    import pleat
    trace = trace.replace("buf_type=", "buffer_type=")
    names = {**vars(builtins), **vars(pleat.tirx), "T": pleat.script.tirx, "sch": schedule}
    tree = ast.parse(trace)
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in bound | names.keys():
            names[node.id] = pleat._expression.var(node.id)
    exec(trace, names)


def is_python(row):
    """Whether the trace can be read: TVM prints some texts without their escapes."""
    try:
        return ast.parse(row["trace"]) is not None
    except SyntaxError:
        return False


def run_all(module):
    """The arrays after each function of the module ran on random inputs that are the same for all
    modules of one interface. Free sizes are primes."""
    import numpy
    import pleat
    results = []
    for name in sorted(map(str, module)):
        function, sizes, arguments = module[name], {}, []
        for at, parameter in enumerate(function.params):
            buffer = function.buffer_map.get(parameter)
            if buffer is None:
                arguments.append(parameter.name)
                continue
            shape = [number(extent, sizes) for extent in buffer.shape]
            values = numpy.random.default_rng(at).uniform(-3, 4, shape)
            arguments.append(values.astype(str(buffer.dtype)))
        stated = {name: sizes[name] for name in arguments if isinstance(name, str) and name in sizes}
        function = function.specialize(stated) if stated else function
        arguments = [13 if isinstance(one, str) else one for one in arguments
                     if not isinstance(one, str) or one not in stated]
        pleat.build(pleat.IRModule({"main": function}))(*arguments)
        results += [one for one in arguments if not isinstance(one, int)]
    return results


OPERATIONS = {"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "FloorDiv": operator.floordiv,
              "FloorMod": operator.mod, "Min": min, "Max": max}


def number(extent, sizes):
    """The value of an extent; a free size gets the next prime of a few."""
    kind = type(extent).__name__
    if kind == "Var":
        return sizes.setdefault(extent.name, (13, 7, 11, 17)[len(sizes) % 4])
    if kind in OPERATIONS:
        return OPERATIONS[kind](number(extent.a, sizes), number(extent.b, sizes))
    return number(extent.value, sizes) if kind == "Cast" else int(extent)


def same(ours, theirs):
    """Whether results agree but for rounding. Sums of 16-bit numbers differ by their order."""
    import numpy
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and numpy.allclose(a, b, rtol=1e-3, equal_nan=True,
                                              atol=0.5 if a.dtype == "float16" else 1e-3)
        for a, b in zip(ours, theirs))


def replayed(row):
    """The outcome of one schedule, with what to say of it."""
    import pleat
    try:
        before, after = (pleat.script.from_source(row[key]) for key in ("before", "after"))
    except pleat.PleatError as error:
        return "not read", str(error)
    for name, text in row["intrinsics"].items():
        module = pleat.script.from_source(text)
        pleat.tir.TensorIntrin.register(name, module["desc"], module["impl"], override=True)
    schedule = pleat.tir.Schedule(before)
    try:
        apply_trace(row["trace"], schedule)
    except Exception as error:
        return refused(before, after), f"{type(error).__name__}: {error}"
    return compared(before, schedule.mod, after)


def refused(before, theirs):
    """What a refusal is: right, where TVM's steps changed the results."""
    try:
        return "refused" if same(run_all(before), run_all(theirs)) else "refused, TVM's results differ"
    except Exception:
        return "refused"


def compared(before, ours, theirs):
    import pleat
    texts = [without_block_names(module.script()) for module in (ours, theirs)]
    modules = [pleat.script.from_source(text) for text in texts]
    if pleat.ir.structural_equal(*modules):
        return "equal", ""
    if pleat.ir.structural_equal(*map(pleat.tir.transform.Simplify(), modules)):
        return "equal when simplified", ""
    shown = "\n".join(difflib.unified_diff(*[text.splitlines() for text in texts], lineterm="", n=1))
    try:
        results = [run_all(module) for module in (ours, theirs, before)]
    except Exception as error:
        return "not run", f"{type(error).__name__}: {error}\n{shown}"
    if same(results[0], results[1]):
        return "same results", shown
    return ("TVM's is wrong" if same(results[0], results[2]) else "other results"), shown


def replay(path, only, is_listed):
    """Prints how many schedules have which outcome."""
    rows, counts = [row for row in rows_of(path) if only in row["test"]], collections.Counter()
    for row in rows:
        outcome, shown = replayed(row)
        counts[outcome] += 1
        if is_listed:
            print(f"---- {row['test'].rpartition('/')[2]}: {outcome}\n{shown}", flush=True)
    print(f"{len(rows)} schedules: " + ", ".join(f"{n} {name}" for name, n in counts.most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run TVM's tests and write their schedules")
    recording.add_argument("checkout", type=pathlib.Path)
    recording.add_argument("file", type=pathlib.Path)
    replaying = commands.add_parser("replay", help="make the same steps with Pleat and compare")
    replaying.add_argument("file", type=pathlib.Path)
    replaying.add_argument("--only", default="", help="replay those of tests with this in their name")
    replaying.add_argument("--list", action="store_true", help="print the outcome of each schedule")
    options = parser.parse_args()
    if options.command == "record":
        record(options.checkout, options.file)
        print(f"{len(rows_of(options.file))} schedules")
    else:
        replay(options.file, options.only, options.list)


if __name__ == "__main__":
    main()
