#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how many of the programs in TVM's own tests are read.

    build/venv/bin/python scripts/count_tvm_programs.py ~/tvm-0.14 --pleat build/pleat [--causes 40]

The argument is a checkout of TVM, of any version. A program is an outermost function under
@T.prim_func or @R.function, or a class under @ir_module. It counts as read where `pleat opt` reads its text
alone, or else where the test reads it as it runs over Pleat's package (tests/python/as_tvm.py), with the names
that it captures. Only tests that hold such programs run. One that is refused is right where its tests expect an
error: it stands in `with pytest.raises(…)`, or only tests use it that have such a line. Each file of which
programs are lost is printed at once. With --list, each program has a line in that file: its place, what was
said of its text, and of it in the test, and whether an error is expected."""
import argparse
import ast
import collections
import concurrent.futures
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import types

try:
    import pytest
except ModuleNotFoundError:
    sys.exit("pytest is missing: run this with build/venv/bin/python")

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG = "TVM_PROGRAMS_FILE"
SECONDS = 60  # for the tests of one file
SECONDS_OF_TEST = 15
MODULES = ["error", "ir", "runtime", "target", "te", "tir", "tir.analysis", "tir.schedule", "tir.transform",
           "topi"]  # whose missing names have stand-ins


# ---- Recording: this file is also a plugin of pytest ------------------------------------------------

def record(place, said):
    with open(os.environ[LOG], "a", encoding="utf-8") as file:
        file.write(json.dumps([place, said]) + "\n")


def _same(*_, **__):
    pass


def _helper(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return StandIn(name)


class StandIn:
    """Stands for whatever Pleat lacks or a device gives, so that tests go on to their next program. As
    a decorator it changes nothing. A constant of TVM's package is the string that is its name."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __call__(self, *args, **keywords):
        is_decorator = len(args) == 1 and not keywords and isinstance(args[0], (types.FunctionType, type))
        return args[0] if is_decorator else StandIn("")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def __getitem__(self, index=None):
        return self

    def __setattr__(self, name, value):
        pass

    __setitem__ = __setattr__
    __add__ = __sub__ = __mul__ = __mod__ = __floordiv__ = __truediv__ = __getitem__
    __round__ = __lt__ = __le__ = __gt__ = __ge__ = __getitem__
    __radd__ = __rsub__ = __rmul__ = __rmod__ = __rfloordiv__ = __rtruediv__ = __getitem__

    def __format__(self, form):
        return "0"

    def __iter__(self):
        return iter(())

    def __mro_entries__(self, bases):
        return ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    @property
    def __script__(self):
        name = self._name.rpartition(".")[2]
        if not re.fullmatch("[A-Z][A-Z0-9x_]*", name):
            raise AttributeError("__script__")
        return lambda: repr(name)


def _known_or_stand_in(module, known):
    """The `__getattr__` of a module of Pleat, whose other names are stand-ins."""
    def find(name):
        if known is not None:
            try:
                return known(name)
            except AttributeError:
                pass
        if name.startswith("_"):
            raise AttributeError(name)
        return StandIn(f"{module.__name__}.{name}")
    return find


@pytest.fixture
def hexagon_session():
    return StandIn("session")


hexagon_launcher = hexagon_server_process = adb_server_socket = aot_host_target = aot_target = hexagon_session


def _take_stand_ins():
    """Gives tests stand-ins for what Pleat lacks, and for what reading does not need."""
    loads = json.loads
    json.loads = lambda text, **options: text if isinstance(text, StandIn) else loads(text, **options)
    sys.modules["as_tvm"]._Missing = StandIn
    testing = sys.modules["tvm.testing"]
    testing.__getattr__, testing.assert_allclose = _helper, _same
    importlib.import_module("pleat").build = StandIn("build")
    kind = importlib.import_module("pleat.target").Target
    make = kind.__init__
    kind.__init__ = lambda self, *given, **host: make(
        self, *("llvm" if isinstance(one, StandIn) else one for one in given),
        **{name: None if isinstance(one, StandIn) else one for name, one in host.items()})
    for name in MODULES:
        module = importlib.import_module(f"pleat.{name}")
        module.__getattr__ = _known_or_stand_in(module, getattr(module, "__getattr__", None))


def pytest_collection_modifyitems(items):
    """Runs the tests that need a device too, since they read their programs first."""
    for node in {node for item in items for node in item.listchain()}:
        node.own_markers = [mark for mark in node.own_markers if not mark.name.startswith("skip")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """Ends a test that takes long, so that the others of its file run."""
    def end(*_):
        raise TimeoutError(f"the test takes more than {SECONDS_OF_TEST} s")
    signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS_OF_TEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_configure():
    """Notes what becomes of each decorated function or class. A test whose program is refused goes on
    with another one, since it may define more."""
    if LOG not in os.environ:
        return
    _take_stand_ins()
    from pleat.script import _parse
    original = _parse.parse_definition

    def parse_definition(thing, frame, marker):
        code = getattr(thing, "__code__", None)
        line = code.co_firstlineno if code else _parse.source_of(thing, frame)[2]
        try:
            module = original(thing, frame, marker)
        except Exception as error:
            record(line, f"{type(error).__name__}: {error}")
            return _parse.parse("@T.prim_func\ndef main():\n    T.evaluate(0)\n")
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


def expecting(tree):
    """The functions of a file that expect an error: that have `pytest.raises(…)`, or call such a one."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    calls = {node.name: {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
             for node in functions}
    direct = {name for name, called in calls.items() if "pytest.raises" in called}
    return {name for name, called in calls.items() if name in direct or called & direct}


def expected_errors(tree):
    """The lines in `with pytest.raises(…)`, and the names that only functions which expect errors use."""
    functions, lines, names, others = expecting(tree), set(), set(), set()
    rest = [(tree, False, False)]
    while rest:
        node, in_with, in_function = rest.pop()
        in_with |= isinstance(node, ast.With) and "raises(" in ast.unparse(node.items[0])
        in_function |= isinstance(node, ast.FunctionDef) and node.name in functions
        if in_with and hasattr(node, "lineno"):
            lines.add(node.lineno)
        if isinstance(node, ast.Name):
            (names if in_function else others).add(node.id)
        rest += [(child, in_with, in_function) for child in ast.iter_child_nodes(node)]
    return lines, names - others


Program = collections.namedtuple("Program", "line name text wrong function")


def programs_of(path):
    """The programs of a file: first line, name, text, is an error expected?, and the outermost function around
    it, as pytest names it (`Class::test`), or "" where the file defines it as it is imported."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []
    lines, found, rest = text.splitlines(), [], [(tree, "", "")]
    wrong_lines, wrong_names = expected_errors(tree)
    while rest:
        parent, classes, function = rest.pop()
        for node in ast.iter_child_nodes(parent):
            if not is_program(node):
                inside, within = classes, function
                if isinstance(node, ast.ClassDef) and not function:
                    inside += f"{node.name}::"
                elif isinstance(node, ast.FunctionDef) and not function:
                    within = classes + node.name
                rest.append((node, inside, within))
                continue
            first = min(d.lineno for d in node.decorator_list)
            own = textwrap.dedent("\n".join(lines[first - 1:node.end_lineno])) + "\n"
            wrong = node.lineno in wrong_lines or node.name in wrong_names
            found.append(Program(first, node.name, own, wrong, function))
    return sorted(found)


def tests_of(path, programs):
    """The arguments of pytest that run the tests which define these programs: all of the file where a function
    that is no test defines one, and none where importing the file defines them."""
    functions = {program.function for program in programs} - {""}
    if not functions:
        return ["--collect-only", str(path)]
    if all(name.rpartition("::")[2].startswith("test") for name in functions):
        return [f"{path}::{name}" for name in sorted(functions)]
    return [str(path)]


def said_in_tests(path, programs):
    """What was said of the program at each line as the tests of these programs ran; "read" wins."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        log.touch()
        places = (ROOT / "scripts", ROOT / "python", ROOT / "tests" / "python")
        environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places)), LOG: str(log)}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "as_tvm", "-p", "count_tvm_programs",
                   "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, "--tb=no",
                   "--rootdir", str(path.parent), *tests_of(path, programs)]
        try:
            subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            print(f"      {path}: its tests take more than {SECONDS} s", flush=True)
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
    """(place, name, what was said of the text, what the test said, is an error expected?) of each program of a
    file."""
    programs = programs_of(path)
    alone = {program: said_of_text(pleat, program.text) for program in programs}
    left = [program for program in programs if alone[program] != "read"]
    said = said_in_tests(path, left) if any(not program.wrong for program in left) else {}
    return [(f"{path}:{one.line}", one.name, alone[one],
             "" if alone[one] == "read" else said.get(one.line, "not met"), one.wrong) for one in programs]


def is_lost(row):
    return "read" not in row[2:4] and not row[4]


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
    rows = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, part in zip(paths, pool.map(lambda path: count(path, options.pleat), paths)):
            rows += part
            if lost := sum(map(is_lost, part)):
                print(f"{lost:5} of {len(part)} lost  {path.relative_to(options.checkout)}", flush=True)
    read = sum("read" in row[2:4] for row in rows)
    lost = [row for row in rows if is_lost(row)]
    in_test = sum(row[3] == "read" for row in rows)
    print(f"{read} of {len(rows)} programs are read, {in_test} of them in tests alone; "
          f"{len(rows) - read - len(lost)} are refused as their tests expect")
    causes = collections.defaultdict(list)
    for place, _, alone, test, _ in lost:
        causes[cause_of(alone if test == "not met" else test)].append(place)
    for cause, places in sorted(causes.items(), key=lambda item: -len(item[1]))[:options.causes]:
        print(f"{len(places):5} {cause}  [{places[0]}]")
    if options.list:
        options.list.write_text("".join("\t".join(map(repr, row)) + "\n" for row in rows),
                                encoding="utf-8")


if __name__ == "__main__":
    main()
