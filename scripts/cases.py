#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the text cases under tests/cases/.

A case is any file there that holds lines such as

    # RUN: pleat opt %s --pass simplify
    # RUN 1: pleat check missing.onnx

`RUN` expects exit status 0, `RUN 1` status 1. Lines run in order, through the shell, in the case's
own folder; `pleat` is the command under test, whose cache is off and which plans for the caches of
one processor, %s the case's file, %t an empty
folder, %r the root of the project. Their standard output together must equal the file beside the case with the case's
name and `.out` (it must be empty without such a file), and their standard error the file with
`.err`. The output of a `pleat opt` line must parse back: it is read again, and must print the same.

    scripts/cases.py --pleat build/pleat [--bless] [part of a case's path ...]
"""
import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
RUN = re.compile(r"^\s*(?:#|//)\s*RUN(?: (\d+))?:\s*(.*\S)\s*$", re.MULTILINE)
SECONDS = 120


class Failure(Exception):
    pass


def find_cases(wanted):
    for path in sorted(CASES.rglob("*")):
        name = str(path.relative_to(CASES))
        if not path.is_file() or path.suffix in {".out", ".err", ".onnx", ".pb", ".npy", ".npz"}:
            continue
        if wanted and not any(part in name for part in wanted):
            continue
        steps = [(int(status or 0), line) for status, line in
                 RUN.findall(path.read_text(encoding="utf-8"))]
        if steps:
            yield path, steps


def shell(line, folder, pleat, stdin=""):
    environment = dict(os.environ, PLEAT=str(pleat), LC_ALL="C", TERM="dumb", PLEAT_CACHE="off",
                       PLEAT_CACHES=os.environ.get("PLEAT_CACHES", "32K,512K,32M"),
                       ASAN_OPTIONS="detect_leaks=0", UBSAN_OPTIONS="halt_on_error=1")
    line = re.sub(r"(^|[|;&(]\s*|\bdo\s+)pleat(?=\s)", r'\1"$PLEAT"', line)
    try:
        return subprocess.run(["sh", "-c", line], cwd=folder, env=environment, input=stdin,
                              capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"took more than {SECONDS} s: {line}")


def check_reparses(line, printed, folder, pleat):
    again = shell("pleat opt -", folder, pleat, printed)
    if again.returncode != 0:
        raise Failure(f"what it printed does not parse back: {line}\n{again.stderr}")
    if again.stdout != printed:
        raise Failure(f"what it printed reads back as something else: {line}\n"
                      + difference(printed, again.stdout, "first print", "second print"))


def run_case(path, steps, pleat):
    """Standard output and error of all steps."""
    out, err = "", ""
    with tempfile.TemporaryDirectory() as temporary:
        for status, line in steps:
            command = (line.replace("%s", path.name).replace("%t", temporary)
                       .replace("%r", str(ROOT)))
            done = shell(command, path.parent, pleat)
            out += done.stdout.replace(temporary, "%t")
            err += done.stderr.replace(temporary, "%t")
            if done.returncode != status:
                raise Failure(f"exit status {done.returncode}, expected {status}: {line}\n"
                              + done.stderr)
            if status == 0 and re.match(r"pleat opt [^|;>]*$", command):
                check_reparses(line, done.stdout, path.parent, pleat)
    return out, err


def difference(expected, seen, expected_name, seen_name):
    return "".join(difflib.unified_diff(expected.splitlines(True), seen.splitlines(True),
                                        expected_name, seen_name))


def compare(path, seen, bless):
    expected_path = path
    expected = expected_path.read_text(encoding="utf-8") if expected_path.exists() else ""
    if expected == seen:
        return
    if not bless:
        raise Failure(difference(expected, seen, "expected " + path.name, "seen"))
    if seen:
        expected_path.write_text(seen, encoding="utf-8")
    else:
        expected_path.unlink()


def check_case(case, pleat, bless):
    """The reason why the case fails, or None."""
    path, steps = case
    try:
        out, err = run_case(path, steps, pleat)
        compare(path.with_name(path.name + ".out"), out, bless)
        compare(path.with_name(path.name + ".err"), err, bless)
    except Failure as failure:
        return str(failure)
    return None


def orphans():
    """Expected outputs whose case is gone."""
    for path in sorted([*CASES.rglob("*.out"), *CASES.rglob("*.err")]):
        if not path.with_suffix("").exists():
            yield path


def run_all(pleat, wanted=(), bless=False, quick=False):
    """(passed, failed), with a report of each failure on standard output. A quick run has every
    third case of the command line, which take the longest."""
    cases = list(find_cases(wanted))
    if quick:
        command = [case for case in cases if case[0].parent.name == "cli"]
        cases = [case for case in cases if case not in command or case in command[::3]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda case: check_case(case, pleat, bless), cases))
    failures = [(case[0], why) for case, why in zip(cases, results) if why]
    failures += [(path, "expected output without a case") for path in orphans()]
    for path, why in failures:
        print(f"FAILED {path.relative_to(CASES)}\n{why}")
    return len(cases) - sum(1 for why in results if why), len(failures)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleat", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--bless", action="store_true", help="rewrite the expected outputs")
    parser.add_argument("wanted", nargs="*", help="part of the paths of the cases to run")
    arguments = parser.parse_args()
    passed, failed = run_all(arguments.pleat, arguments.wanted, arguments.bless)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
