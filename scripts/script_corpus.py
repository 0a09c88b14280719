#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how many programs of a folder `pleat opt` reads, and how many come back equal.

Every file `*.py` below the folder is one program. `read` counts the files that are read without an
error. `equal` counts those whose printed text is read again and printed as the same text. Graph
functions (@R.function) are counted too, where the files have any. With --tvm, the text that
`--newer-names` prints is read by TVM, which runs in that Python, and compared with the program of
the file by structural equality; files that TVM itself does not read are left out of that count.

    scripts/script_corpus.py --pleat build/pleat FOLDER [--tvm PYTHON] [--causes 40] [--by-folder]
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SECONDS = 60

COMPARE = r'''
import sys, warnings
warnings.simplefilter("ignore")
import tvm
from tvm.script import from_source
def read(path):
    with open(path) as file:
        return from_source(file.read())
def functions(obj):
    if isinstance(obj, tvm.ir.IRModule):
        return {gv.name_hint: f for gv, f in obj.functions.items()}
    return {"": obj}
for line in sys.stdin:
    first, second = line.rstrip("\n").split("\t")
    try:
        a = read(first)
    except BaseException as error:
        print("unread\t" + type(error).__name__, flush=True)
        continue
    try:
        b = read(second)
    except BaseException as error:
        text = str(error).strip().splitlines()
        print("refused\t" + (text[-1] if text else type(error).__name__), flush=True)
        continue
    try:
        tvm.ir.assert_structural_equal(a, b)
        print("equal\t", flush=True)
    except BaseException as error:
        text = " ".join(str(error).split())
        print("differs\t" + text[:300], flush=True)
'''


def shell(command, text=None):
    environment = dict(os.environ, PLEAT_CACHE="off", LC_ALL="C")
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True,
                              timeout=SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return 124, "", f"more than {SECONDS} s"
    return done.returncode, done.stdout, done.stderr


def measure(pleat, path):
    """("read" or "equal" or the kind of failure, the message, the text for TVM)."""
    status, text, errors = shell([pleat, "opt", str(path)])
    if status:
        return "refused", first_error(status, errors), None
    again, second, errors = shell([pleat, "opt", "-"], text)
    newer = shell([pleat, "opt", str(path), "--newer-names"])[1]
    if again:
        return "printed text is refused", first_error(again, errors), newer
    if second != text:
        return "printed text changes", "", newer
    return "equal", "", newer


def first_error(status, errors):
    if status not in (1, 2):
        return f"status {status}: " + (errors.strip().splitlines() or [""])[0]
    for line in errors.splitlines():
        found = re.search(r"error: (.*)", line)
        if found:
            return found.group(1)
    return errors.strip().splitlines()[0] if errors.strip() else f"status {status}"


def cause_of(message):
    message = re.sub(r"^[A-Za-z_]\w*: ", "", message)
    message = re.sub(r"'[^']*'|\"[^\"]*\"", lambda m: m.group(0) if "T." in m.group(0) else "'…'",
                     message) if len(message) > 60 else message
    return re.sub(r"\d+", "N", message)[:100]


def compare_with_tvm(python, pairs):
    """The verdict of TVM for each pair of files; a crash is one verdict."""
    verdicts = {}
    rest = list(pairs)
    while rest:
        child = subprocess.run([python, "-c", COMPARE], capture_output=True, text=True,
                               input="".join(f"{a}\t{b}\n" for a, b in rest), check=False)
        lines = [line for line in child.stdout.splitlines()
                 if line.split("\t")[0] in ("unread", "refused", "equal", "differs")]
        for (a, _), line in zip(rest, lines):
            verdicts[a] = line.split("\t", 1)
        done = len(lines)
        if done < len(rest):
            verdicts[rest[done][0]] = ["crash", ""]
            done += 1
        rest = rest[done:]
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pleat", default="build/pleat")
    parser.add_argument("--tvm", help="a Python that imports TVM")
    parser.add_argument("--causes", type=int, default=30, help="how many causes are listed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--by-folder", action="store_true")
    parser.add_argument("--list", type=pathlib.Path, help="write one line for each program")
    options = parser.parse_args()
    paths = sorted(options.folder.rglob("*.py"))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda path: measure(options.pleat, path), paths))
    verdicts = {}
    if options.tvm:
        with tempfile.TemporaryDirectory() as folder:
            pairs = []
            for i, (path, (_, _, newer)) in enumerate(zip(paths, results)):
                if newer:
                    printed = pathlib.Path(folder, f"{i}.py")
                    printed.write_text(newer, encoding="utf-8")
                    pairs.append((str(path), str(printed)))
            verdicts = compare_with_tvm(options.tvm, pairs)
    report(options, paths, results, verdicts)


def report(options, paths, results, verdicts):
    groups = collections.defaultdict(collections.Counter)
    causes, examples = collections.Counter(), {}
    rows = []
    for path, (kind, message, newer) in zip(paths, results):
        verdict = verdicts.get(str(path), ["", ""])
        graphs = path.read_text(encoding="utf-8", errors="replace").count("@R.function")
        for name in {"all", path.parent.name if options.by_folder else "all"}:
            group = groups[name]
            group["programs"] += 1
            group["read"] += kind != "refused"
            group["equal"] += kind == "equal"
            group["graphs"] += graphs
            group["equal graphs"] += graphs * (kind == "equal")
            if verdict[0]:
                group["tvm " + verdict[0]] += 1
        cause = None
        if kind != "equal":
            cause = f"{kind}: {cause_of(message)}"
        elif verdict[0] in ("refused", "differs", "crash"):
            cause = f"tvm {verdict[0]}: {cause_of(verdict[1])}"
        if cause:
            causes[cause] += 1
            examples.setdefault(cause, path)
        rows.append(f"{path}\t{kind}\t{message}\t{verdict[0]}\t{verdict[1]}")
    for name in sorted(groups):
        group = groups[name]
        total, graphs, equal = (group.pop(what) for what in ("programs", "graphs", "equal graphs"))
        text = ", ".join(f"{what} {group[what]} ({100 * group[what] / total:.1f} %)"
                         for what in group)
        print(f"{name}: {total} programs, {text}" +
              (f"; {graphs} graph functions, equal {equal}" if graphs else ""))
    for cause, count in causes.most_common(options.causes):
        print(f"{count:5} {cause}  [{examples[cause].parent.name}/{examples[cause].name}]")
    if options.list:
        options.list.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
