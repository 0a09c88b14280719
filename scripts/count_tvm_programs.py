#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how many of the programs in TVM's own tests are read.

    build/venv/bin/python scripts/count_tvm_programs.py ~/tvm-0.14 --pleat build/pleat [--causes 40]

The argument is a checkout of TVM, of any version. A program is an outermost function under
@T.prim_func or @R.function, or a class under @ir_module. It counts as read where the test reads it
as it runs over Pleat's package (tests/python/as_tvm.py), with the names that it captures, or where
`pleat opt` reads its text alone. With --list, each program has a line in that file: its place, what
was said of it in the test, and of its text."""
import argparse
import ast
import collections
import concurrent.futures
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

try:
    import pytest
except ModuleNotFoundError:
    sys.exit("pytest is missing: run this with build/venv/bin/python")

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = "TVM_PROGRAMS_FILE"
SECONDS = 240  # for the tests of one file


# ---- Recording: this file is also a plugin of pytest ------------------------------------------------

def record(place, said):
    with open(os.environ[LOG], "a", encoding="utf-8") as file:
        file.write(json.dumps([place, said]) + "\n")


def _helper(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _same


def _same(function=None, *_, **__):
    return function if callable(function) else _same


def _known_or_none(known, name):
    try:
        return known(name)
    except AttributeError:
        if name.startswith("_"):
            raise
        return lambda *_, **__: None


@pytest.fixture
def hexagon_session():
    return None


hexagon_launcher = hexagon_server_process = adb_server_socket = aot_host_target = aot_target = hexagon_session


def pytest_configure():
    """Notes what becomes of each decorated function or class. A test that needs a device, or a pass that
    Pleat lacks, runs as far as it can, since it may define programs before."""
    if LOG not in os.environ:
        return
    sys.modules["tvm.testing"].__getattr__ = _helper
    transform = importlib.import_module("pleat.tir.transform")
    known = transform.__getattr__
    transform.__getattr__ = lambda name: _known_or_none(known, name)
    from pleat.script import _parse
    original = _parse.parse_definition

    def parse_definition(thing, frame, marker):
        code = getattr(thing, "__code__", None)
        line = code.co_firstlineno if code else _parse.source_of(thing)[2]
        try:
            module = original(thing, frame, marker)
        except Exception as error:
            record(line, f"{type(error).__name__}: {error}")
            raise
        record(line, "read")
        return module

    _parse.parse_definition = parse_definition


# ---- Counting ---------------------------------------------------------------------------------------

def is_program(node):
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return False
    names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]
    return any(name.rpartition(".")[2] in ("prim_func", "ir_module") or name.endswith("R.function")
               for name in names)


def programs_of(path):
    """(first line, name, text) of each program in a file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    lines, found, rest = text.splitlines(), [], [tree]
    while rest:
        for node in ast.iter_child_nodes(rest.pop()):
            if not is_program(node):
                rest.append(node)
                continue
            first = min(d.lineno for d in node.decorator_list)
            own = textwrap.dedent("\n".join(lines[first - 1:node.end_lineno])) + "\n"
            found.append((first, node.name, own))
    return sorted(found)


def said_in_tests(path):
    """What was said of the program at each line as the tests of a file ran; "read" wins."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        log.touch()
        places = (ROOT / "scripts", ROOT / "python", ROOT / "tests" / "python")
        environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places)), LOG: str(log)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "as_tvm", "-p", "count_tvm_programs",
                   "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, "--tb=no",
                   "--rootdir", str(path.parent), str(path)]
        try:
            subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            pass
        said = {}
        for line in log.read_text(encoding="utf-8").splitlines():
            place, text = json.loads(line)
            if said.get(place) != "read":
                said[place] = text
        return said


def said_of_text(pleat, text):
    environment = dict(os.environ, PLEAT_CACHE="off", LC_ALL="C")
    done = subprocess.run([pleat, "opt", "-"], input=text, capture_output=True, text=True,
                          env=environment)
    return "read" if done.returncode == 0 else done.stderr.strip() or f"status {done.returncode}"


def count(path, pleat):
    """(place, name, what the test said, what was said of the text) of each program of a file."""
    programs = programs_of(path)
    if not programs:
        return []
    said, rows = said_in_tests(path), []
    for first, name, text in programs:
        in_test = said.get(first, "not met")
        alone = "" if in_test == "read" else said_of_text(pleat, text)
        rows.append((f"{path}:{first}", name, in_test, alone))
    return rows


def cause_of(said):
    found = re.search(r"error: (.*)", said)
    text = found.group(1) if found else said.partition("\n")[0]
    return re.sub(r"\d+", "N", text)[:110]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--pleat", default="build/pleat")
    parser.add_argument("--causes", type=int, default=40, help="how many causes are listed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", type=pathlib.Path, help="write a line for each program")
    options = parser.parse_args()
    paths = sorted(options.checkout.glob("tests/python/**/*.py"))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [row for part in pool.map(lambda path: count(path, options.pleat), paths)
                for row in part]
    lost = [row for row in rows if "read" not in row[2:]]
    in_test = sum(row[2] == "read" for row in rows)
    print(f"{len(rows) - len(lost)} of {len(rows)} programs are read, {in_test} of them in tests")
    causes = collections.defaultdict(list)
    for place, _, test, alone in lost:
        causes[cause_of(alone if test == "not met" else test)].append(place)
    for cause, places in sorted(causes.items(), key=lambda item: -len(item[1]))[:options.causes]:
        print(f"{len(places):5} {cause}  [{places[0]}]")
    if options.list:
        options.list.write_text("".join("\t".join(map(repr, row)) + "\n" for row in rows),
                                encoding="utf-8")


if __name__ == "__main__":
    main()
