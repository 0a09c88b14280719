#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test of one build and closes with one line, 'N passed, N failed'.

    scripts/test.py --build build                       all parts
    scripts/test.py --build build-asan --parts unit,cases
    scripts/test.py --build build --parts unit parser   only the unit tests named so
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import cases

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Freed memory is held back from reuse for 16 MiB, a sixteenth of what is usual: the tests take an
# eighth less time, because their memory stays in the caches.
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16",
             "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
# Freed memory stays with its process, which saves a fifth of the time of schedule_graphs.
MEMORY = {"MALLOC_TRIM_THRESHOLD_": "4000000000", "MALLOC_MMAP_THRESHOLD_": "33000000"}
TRACER_FAULT = "LeakSanitizer has encountered a fatal error"
FIRST = 1e9  # seconds of a test that never ran


def run_layers(arguments):
    checks = [["check_layers.py", "--build", arguments.build], ["check_words.py"],
              ["check_references.py"]]
    passed = sum(subprocess.run([sys.executable, ROOT / "scripts" / name, *options]).returncode == 0
                 for name, *options in checks)
    return passed, len(checks) - passed


def unit_tests(build):
    listing = subprocess.run(["meson", "introspect", "--tests", build], check=True,
                             capture_output=True, text=True)
    return [(test["name"], test["cmd"]) for test in json.loads(listing.stdout)]


def run_unit(name, command, build, again=True):
    """(passed, failed) of one executable, run in the build folder as Meson does. An executable
    without cmocka counts as one test, and its output (a table) is shown; status 77 says it could
    not run. Where the leak checker itself crashes while it looks (rarely, about one run of many
    hundred), nothing is known of leaks, and the executable runs a second time."""
    environment = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", PLEAT_CACHE="off", **MEMORY,
                       **SANITIZER)
    try:
        done = subprocess.run(command, env=environment, cwd=build, capture_output=True, text=True,
                              errors="replace", timeout=1200)
    except subprocess.TimeoutExpired:
        print(f"FAILED unit {name}: took more than 1200 s")
        return 0, 1
    text = done.stdout + done.stderr
    if again and done.returncode != 0 and TRACER_FAULT in text and "not ok" not in text:
        print(f"unit {name} runs again: {TRACER_FAULT}")
        return run_unit(name, command, build, again=False)
    passed = len(re.findall(r"^ok \d+", text, re.MULTILINE))
    failed = len(re.findall(r"^not ok \d+(?!.*# SKIP)", text, re.MULTILINE))
    if not passed and not failed and done.returncode in (0, 77):
        print(done.stdout, end="")
        return (1, 0) if done.returncode == 0 else (0, 0)
    if done.returncode != 0:
        failed = max(failed, 1)
        print(f"FAILED unit {name} (exit status {done.returncode})\n{text[-8000:]}")
    return passed, failed


def run_units(arguments):
    """Runs one test on each processor at a time, the longest tests of the last run first."""
    chosen = [test for test in unit_tests(arguments.build)
              if not arguments.wanted or any(part.removeprefix("test_") in test[0]
                                             for part in arguments.wanted)]
    times_file = arguments.build / "unit_seconds.json"
    seconds = json.loads(times_file.read_text()) if times_file.exists() else {}
    chosen.sort(key=lambda test: -seconds.get(test[0], FIRST))

    def timed(test):
        start = time.monotonic()
        counts = run_unit(*test, arguments.build)
        seconds[test[0]] = round(time.monotonic() - start, 1)
        return counts

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = list(pool.map(timed, chosen))
    times_file.write_text(json.dumps(seconds, indent=1))
    return sum(ok for ok, _ in counts), sum(bad for _, bad in counts)


def run_cases(arguments):
    return cases.run_all((arguments.build / "pleat").resolve(), arguments.wanted,
                         quick=arguments.quick)


def run_python(arguments):
    """pytest under tests/python. A quick run leaves out the slowest files, cases marked `slow`, and
    fifteen of sixteen cases of each test that has parameters."""
    if not list((ROOT / "tests" / "python").glob("test_*.py")):
        return 0, 0
    report = arguments.build / "pytest.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x" if arguments.first else "-q",
               f"--junit-xml={report}", ROOT / "tests" / "python"]
    command += ["-k", " or ".join(arguments.wanted)] if arguments.wanted else []
    command += ["-m", "not slow", "--every", "16"] if arguments.quick else []
    command += ["--all"] if arguments.all else []
    if importlib.util.find_spec("xdist") and not arguments.first:
        # Without restarts, because pytest waits for ever after a second process has crashed.
        command += ["-n", str(os.cpu_count()), "--dist", "loadfile", "--no-loadscope-reorder",
                    "--max-worker-restart", "0"]
    environment = dict(os.environ, PLEAT=str((arguments.build / "pleat").resolve()), **SANITIZER)
    # The leak checker's tracer can crash when code is generated in the process; the units run it.
    environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "").replace(
        "detect_leaks=1", "detect_leaks=0")
    done = subprocess.run(command, env=environment, cwd=ROOT)
    if not report.exists():
        return 0, 1
    counts = {key: sum(int(value) for value in re.findall(rf'<testsuite [^>]*{key}="(\d+)"',
                                                          report.read_text()))
              for key in ("tests", "failures", "errors", "skipped")}
    failed = counts["failures"] + counts["errors"]
    if done.returncode not in ((0, 5) if arguments.wanted else (0,)):  # 5: no test was found
        failed = max(failed, 1)
    return counts["tests"] - failed - counts["skipped"], failed


PARTS = {"layers": run_layers, "unit": run_units, "cases": run_cases, "python": run_python}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--quick", action="store_true",
                        help="leave out pytest's slow cases and all but each sixteenth of each test, "
                             "and two of three text cases of the command line")
    parser.add_argument("--all", action="store_true",
                        help="run all cases of pytest's slowest tests; a commit runs half of them")
    parser.add_argument("--first", action="store_true", help="pytest stops at its first failure")
    parser.add_argument("wanted", nargs="*", help="part of the names of what to run")
    arguments = parser.parse_args()
    total_passed = total_failed = 0
    for part in arguments.parts.split(","):
        start = time.monotonic()
        passed, failed = PARTS[part](arguments)
        print(f"{part}: {passed} ok, {failed} not, {time.monotonic() - start:.1f} s", flush=True)
        total_passed, total_failed = total_passed + passed, total_failed + failed
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed or not total_passed else 0


if __name__ == "__main__":
    sys.exit(main())
