#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how many TVMScript files of a folder `pleat opt` reads and prints back equal.

    scripts/script_coverage.py --pleat build/pleat FOLDER [--causes 40]

Each file is printed, and the printed text is read and printed again; both texts must be equal.
Prints the numbers of files and of graph functions (@R.function) for each outcome, and the most
frequent first errors with an example. The folder holds scripts from elsewhere, such as those that
another compiler prints in its own tests.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess

SECONDS = 60


def printed(pleat, path, text=None):
    environment = dict(os.environ, PLEAT_CACHE="off")
    return subprocess.run([pleat, "opt", str(path)], input=text, capture_output=True, text=True,
                          env=environment, timeout=SECONDS)


def outcome(pleat, path):
    """("equal", "") or the outcome and the first error."""
    try:
        first = printed(pleat, path)
        if first.returncode:
            return "not read", first.stderr
        second = printed(pleat, "-", first.stdout)
    except subprocess.TimeoutExpired:
        return "too slow", ""
    if second.returncode:
        return "not read again", second.stderr
    return ("equal", "") if second.stdout == first.stdout else ("prints otherwise", "")


def cause_of(what, errors):
    found = re.search(r"error: (.*)", errors)
    text = re.sub(r"'[^']*'", "'…'", found.group(1)) if found else ""
    return f"{what}: {text[:110]}" if text else what


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pleat", default="build/pleat")
    parser.add_argument("--causes", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    files, functions = collections.Counter(), collections.Counter()
    causes, examples = collections.Counter(), {}
    paths = sorted(options.folder.glob("*.py"))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda path: outcome(options.pleat, path), paths)
        for path, (what, errors) in zip(paths, results):
            count = path.read_text(encoding="utf-8").count("@R.function")
            files[what] += 1
            functions[what] += count
            if what != "equal":
                cause = cause_of(what, errors)
                causes[cause] += 1
                examples.setdefault(cause, path.name)
    for what in files:
        print(f"{what}: {files[what]} of {len(paths)} files, "
              f"{functions[what]} of {sum(functions.values())} graph functions")
    for cause, count in causes.most_common(options.causes):
        print(f"{count:5} {cause}  ({examples[cause]})")


if __name__ == "__main__":
    main()
