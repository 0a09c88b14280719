#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's own backend tests over pleat.backend, and writes what passed as docs/coverage.md.

    scripts/coverage.py                  run all; status 1 when a case is wrong or crashes, or when
                                         one fails that docs/coverage.md lists as passed. Cases
                                         that newly pass are only reported
    scripts/coverage.py --write          run all and write docs/coverage.md
    scripts/coverage.py --only conv -v   the cases whose name has 'conv', each with its outcome
    scripts/coverage.py --quick 0        the even cases, or with 1 the odd ones, without the nine whole
                                         networks, which take a third of the time

The cases are those of the installed package onnx, run by its onnx.backend.test.BackendTest. They
run in processes of their own, so that a case which crashes or hangs is a result like any other.
Needs the packages onnx and ml_dtypes, and PLEAT_LIBRARY or build/libpleat.so.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import unittest
import warnings

import isolated

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
REASONS_HEAD = "## Cases that do not pass, by reason"
sys.path.insert(0, str(ROOT / "python"))

Case = collections.namedtuple("Case", "kind name test")
# outcome: passed, rounding (within two units in the last place of the largest element, where the
# runner's absolute tolerance is tighter), unsupported, wrong, crashed. `operators`: [name, opset in
# which the operator got its present form], in the order of the model. `types`: the element types of
# the inputs and outputs.
Result = collections.namedtuple("Result", "kind name outcome reason operators types seconds")


# ---- Running one case -------------------------------------------------------------------------

class Recorder:
    """Records the models that the backend was given, and the reason of a refusal."""
    model = reason = rounding = None


def recording_backend():
    from pleat import backend

    plain = backend.unsupported

    def unsupported(reason):
        Recorder.reason = str(reason)
        return plain(reason)

    class Recording(backend.PleatBackend):
        @classmethod
        def is_compatible(cls, model, device="CPU", **kwargs):
            return True  # prepare says what is wrong

        @classmethod
        def prepare(cls, model, device="CPU", **kwargs):
            Recorder.model = model
            return super().prepare(model, device, threads=1, **kwargs)

    backend.unsupported = unsupported
    return Recording


def within_rounding(expected, result):
    import numpy as np

    if not all(isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.size
               for array in (expected, result)):
        return False
    if expected.shape != result.shape or expected.dtype != result.dtype:
        return False
    apart = np.abs(expected.astype(np.float64) - result.astype(np.float64)).max()
    return bool(apart <= 2 * np.finfo(expected.dtype).eps * np.abs(expected).max())


def note_rounding(runner):
    """Accepts a zero where the standard's own result is within 1e-7 of the largest element of zero.
    The runner compares the tensors of a sequence row by row, which fails for scalars, and accepts a
    sequence that is too short. Here each tensor is compared as a whole, and their number must be as
    expected."""
    import numpy as np

    strict = runner.assert_similar_outputs.__func__

    def compare(cls, ref_outputs, outputs, *more, **named):  # calls itself for sequences
        if isinstance(ref_outputs, np.ndarray):
            ref_outputs, outputs = [ref_outputs], [outputs]
        for expected, result in zip(ref_outputs, outputs):
            if isinstance(expected, (list, tuple)) and len(expected) != len(result):
                raise AssertionError(f"{len(result)} tensors in a sequence of {len(expected)}")
        try:
            strict(cls, ref_outputs, outputs, *more, **named)
        except AssertionError:
            pairs = zip(ref_outputs, outputs, strict=True)
            if not all(within_rounding(expected, result) for expected, result in pairs):
                raise
            Recorder.rounding = True

    runner.assert_similar_outputs = classmethod(compare)


def load_cases():
    from onnx.backend.test import BackendTest
    from onnx.backend.test.runner import Runner

    note_rounding(Runner)

    warnings.simplefilter("ignore")
    classes = BackendTest(recording_backend(), __name__).test_cases
    for class_name, test_class in sorted(classes.items()):
        kind = re.sub(r"^OnnxBackend|ModelTest$", "", class_name)
        for name in unittest.defaultTestLoader.getTestCaseNames(test_class):
            if name.endswith("_cpu"):
                yield Case(kind, name.removeprefix("test_").removesuffix("_cpu"), test_class(name))


def type_names(model):
    import onnx

    for value in [*model.graph.input, *model.graph.output]:
        kind = value.type.WhichOneof("value")
        if kind == "tensor_type":
            yield onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
        elif kind:
            yield kind.removesuffix("_type")


def operators_of(model):
    import onnx

    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    for node in model.graph.node:
        domain = node.domain or "ai.onnx"
        name = node.op_type if domain == "ai.onnx" else f"{domain}.{node.op_type}"
        try:
            schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), node.domain)
            yield [name, schema.since_version]
        except Exception:  # a function of the model, or of no standard
            yield [name, versions.get(domain, 0)]


def first_error(text):
    """The first error of a message, without the position, which names only this model."""
    for line in text.splitlines():
        match = re.search(r"error: (.*)", line)
        if match:
            return match[1].strip()
    return text.strip().splitlines()[0] if text.strip() else "no reason was given"


def run_case(case):
    Recorder.model = Recorder.reason = Recorder.rounding = None
    start, result = time.monotonic(), unittest.TestResult()
    case.test.run(result)
    bad = result.errors + result.failures
    if bad:
        outcome, reason = "wrong", bad[0][1].strip()
    elif Recorder.reason is not None:
        outcome, reason = "unsupported", first_error(Recorder.reason)
    elif result.skipped:
        outcome, reason = "unsupported", result.skipped[0][1]
    elif Recorder.rounding:
        outcome, reason = "rounding", "as exact as its type; the runner's absolute tolerance is less"
    else:
        outcome, reason = "passed", ""
    operators, types = [], []
    if Recorder.model is not None:
        operators = list(operators_of(Recorder.model))
        types = sorted(set(type_names(Recorder.model)))
    return Result(case.kind, case.name, outcome, reason, operators, types,
                  time.monotonic() - start)


# ---- Running all cases ------------------------------------------------------------------------------

def run_all(cases, processes, report):
    results = [None] * len(cases)
    for number, value, how in isolated.call_all(run_case, cases, processes):
        case = cases[number]
        results[number] = (Result(*value) if value else
                           Result(case.kind, case.name, "crashed", how, [], [], 0))
        report(results[number])
    return results


def load_compiler():
    """Imports the runner in this process, so that its child processes share it."""
    import numpy as np
    from onnx import helper

    from pleat import backend
    backend.run_node(helper.make_node("Neg", ["x"], ["y"]), [np.ones(3, np.float32)], threads=1)


# ---- The page ---------------------------------------------------------------------------------

KINDS = {"Node": "operators", "Simple": "simple", "PyTorchConverted": "pytorch-converted",
         "PyTorchOperator": "pytorch-operator", "Real": "light"}


def plain(reason):
    """A reason in a form that fits a table and is equal for equal reasons."""
    reason = reason.splitlines()[0] if reason else ""
    return re.sub(r"\s+", " ", reason).replace("|", "\\|")


def general(reason):
    """The same without the names of a single model."""
    return re.sub(r"'[^']*'", "'…'", plain(reason))


def totals_table(results):
    yield "| cases | all | passed | rounding | unsupported | wrong | crashed |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    rows = [(name, [r for r in results if r.kind == kind]) for kind, name in KINDS.items()]
    for name, some in [*rows, ("together", results)]:
        count = collections.Counter(r.outcome for r in some)
        yield (f"| {name} | {len(some)} | {count['passed']} | {count['rounding']} | "
               f"{count['unsupported']} | "
               f"{count['wrong']} | {count['crashed']} |")


def operator_of(result):
    names = {name for name, _ in result.operators}
    return (result.operators[0] if len(names) == 1 else ["(several)", ""]) if names else ["(none)", ""]


def operator_table(results):
    rows = collections.defaultdict(list)
    for result in results:
        if result.kind == "Node":
            rows[tuple(operator_of(result))].append(result)
    yield "| operator | since opset | passed | of types | unsupported | of types, and why |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for (name, version), some in sorted(rows.items(), key=lambda row: (row[0][0].lower(),
                                                                       str(row[0][1]))):
        good = [r for r in some if r.outcome == "passed"]
        bad = [r for r in some if r.outcome != "passed"]
        types = " ".join(sorted({t for r in good for t in r.types}))
        new = sorted({t for r in bad for t in r.types} - {t for r in good for t in r.types})
        reasons = collections.Counter(general(r.reason) for r in bad)
        why = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
        why = f"{' '.join(new)}: {why}" if new else why
        yield f"| {name} | {version} | {len(good)} | {types} | {len(bad) or ''} | {why} |"


def other_table(results):
    yield "| model | operators | outcome |"
    yield "| --- | --- | --- |"
    for r in sorted((r for r in results if r.kind != "Node"),
                    key=lambda r: (list(KINDS).index(r.kind), r.name)):
        names = " ".join(sorted({name for name, _ in r.operators}))
        outcome = r.outcome if r.outcome == "passed" else f"{r.outcome}: {general(r.reason)}"
        yield f"| {KINDS[r.kind]}: {r.name} | {names} | {outcome} |"


def reasons_list(results):
    groups = collections.defaultdict(list)
    for r in results:
        if r.outcome != "passed":
            groups[general(r.reason)].append(f"{r.kind}/{r.name}")
    for reason, names in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        yield f"- {reason} ({len(names)}): {', '.join(sorted(names))}"


def page(results):
    import onnx

    return "\n".join([
        "# What of ONNX runs", "",
        "Written by `scripts/coverage.py --write`, checked by `make test`; not to be edited. The",
        f"cases are those of the package onnx {onnx.__version__}, run by its own "
        "`onnx.backend.test.BackendTest`",
        "over `pleat.backend`: compiled for the machine, run, and compared with the results that the",
        "standard gives. A case that is not supported is refused with the reason shown. *Rounding*: a",
        "result within two units in the last place of its largest element, for which the runner's",
        "absolute tolerance of 1e-7 asks more than the type holds. Each tensor of a sequence is compared",
        "as a whole, and there must be as many as expected; the runner looks at rows of what came out.",
        "",
        *totals_table(results), "",
        "## Operators", "",
        "By the case's operator and the opset since which it is as it is. Types are those of the",
        "inputs and outputs; of cases that are not supported, those that no passing case has.", "",
        *operator_table(results), "",
        "## Models", "", *other_table(results), "",
        REASONS_HEAD, "", *reasons_list(results), ""])


# ---- The command ------------------------------------------------------------------------------

def names_not_passing(text):
    """The cases that a page lists as not passing."""
    listed = text.partition(REASONS_HEAD)[2]
    return {name for line in listed.splitlines() if line.startswith("- ")
            for name in re.sub(r".*?\(\d+\): ", "", line).split(", ")}


def judge_page(results):
    """Whether the page agrees with the results. Prints the cases in which it does not."""
    listed = names_not_passing(PAGE.read_text()) if PAGE.exists() else None
    if listed is None:
        print("docs/coverage.md is missing: run scripts/coverage.py --write")
        return False
    failing = {f"{r.kind}/{r.name}": r for r in results if r.outcome != "passed"}
    worse = sorted(failing.keys() - listed)
    better = sorted(listed - failing.keys())
    if better:
        print(f"docs/coverage.md is behind: {len(better)} more pass, such as {better[0]}; run "
              "scripts/coverage.py --write")
    for name in worse:
        print(f"{name} does not pass, and docs/coverage.md says it does: {failing[name].reason}")
    return not worse


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write docs/coverage.md")
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--quick", type=int, choices=(0, 1), metavar="HALF",
                        help="the even or the odd cases, without whole networks")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path, help="results, for other tools")
    parser.add_argument("-v", action="store_true", dest="verbose")
    options = parser.parse_args()
    if options.write and (options.quick is not None or options.only):
        parser.error("--write needs all cases")
    os.environ.setdefault("PLEAT_LIBRARY", str(ROOT / "build" / "libpleat.so"))
    folder = tempfile.TemporaryDirectory()  # the runner's copies of data
    os.environ["ONNX_HOME"] = os.environ["ONNX_MODELS"] = folder.name
    start = time.monotonic()
    cases = [case for case in load_cases() if options.only in case.name]
    if options.quick is not None:
        cases = [case for case in cases if case.kind != "Real"][options.quick::2]
    load_compiler()
    loaded = time.monotonic()

    def report(result):
        if options.verbose or result.outcome in ("wrong", "crashed"):
            tail = result.reason[-1500:] if result.outcome != "unsupported" else result.reason
            print(f"{result.outcome}: {result.kind} {result.name} {result.seconds:.2f} s"
                  + (f"\n    {tail}" if tail else ""), flush=True)

    results = run_all(cases, options.processes, report)
    print("\n".join(totals_table(results)))
    print(f"cases loaded in {loaded - start:.1f} s, run in {time.monotonic() - loaded:.1f} s")
    if options.json:
        options.json.write_text(json.dumps([result._asdict() for result in results]))
    bad = sum(result.outcome in ("wrong", "crashed") for result in results)
    if options.only:
        return 1 if bad else 0
    if options.write:
        PAGE.write_text(page(results))
    return 1 if bad or not judge_page(results) else 0


if __name__ == "__main__":
    sys.exit(main())
