#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the start of a model whose compiled form is in the cache, beside ONNX Runtime.

A start is the time from a path to the first result: making the model or session, and one run, in a
new process that has imported its packages. Rounds of both alternate, and the best of each counts,
because the first process reads files that are not in memory. `command` is the whole process of
`pleat run`. No figure makes the script fail.

    start.py                     ResNet-50, MobileNet-V2 and digits on one and two threads
    start.py --only digits       models whose name contains this
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / "models"), str(ROOT / "python")]
MODELS = ("resnet50", "mobilenetv2", "digits")
GOAL = 1.2  # of ONNX Runtime's time


def pleat_start(path, threads, feeds):
    import pleat

    begin = time.perf_counter()
    model = pleat.compile(path, threads=threads)
    made = time.perf_counter()
    model.run(feeds)
    return made - begin, time.perf_counter() - made


def onnxruntime_start(path, threads, feeds):
    import onnxruntime

    begin = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    made = time.perf_counter()
    session.run(None, feeds)
    return made - begin, time.perf_counter() - made


STARTS = {"pleat": pleat_start, "onnxruntime": onnxruntime_start}


def start_here(what, path, threads):
    """Prints the seconds of both parts of one start in this process."""
    import onnx
    from builder import feeds

    given = feeds(onnx.load(path, load_external_data=False))
    __import__(what)
    print(json.dumps(STARTS[what](path, threads, given)))


def start(what, path, threads, environment):
    """Seconds until the model is made and of its first run, in a new process."""
    done = subprocess.run([sys.executable, __file__, "--start", what, path, str(threads)],
                          env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def command_seconds(pleat, path, threads, environment):
    begin = time.perf_counter()
    subprocess.run([pleat, "run", path, "--fill", "random", "--threads", str(threads)],
                   env=environment, capture_output=True, check=True)
    return time.perf_counter() - begin


def measure(pleat, path, threads, rounds, environment):
    """The best start of each, the time of the command, and the first start that compiled."""
    first = start("pleat", path, threads, environment)
    command_seconds(pleat, path, threads, environment)
    starts, commands = {what: [] for what in STARTS}, []
    for _ in range(rounds):
        for what in STARTS:
            starts[what].append(start(what, path, threads, environment))
        commands.append(command_seconds(pleat, path, threads, environment))
    best = {what: min(found, key=sum) for what, found in starts.items()}
    return sum(first), best, min(commands)


def print_row(name, threads, first, best, command):
    def parts(found):
        return f"{sum(found) * 1e3:8.1f} ({found[0] * 1e3:6.1f} + {found[1] * 1e3:5.1f})"

    ours, theirs = sum(best["pleat"]), sum(best["onnxruntime"])
    verdict = "ok" if ours <= GOAL * theirs else f"goal {GOAL}"
    print(f"{name:12} {threads:7} {parts(best['pleat'])} {parts(best['onnxruntime'])} "
          f"{ours / theirs:6.2f} {verdict:8} {command * 1e3:8.1f} {first * 1e3:8.0f}", flush=True)


def model_path(name, folder):
    import onnx
    from build import build

    if name == "digits":
        return ROOT / "examples" / "digits" / "digits.onnx"
    path = folder / f"{name}.onnx"
    if not path.exists():
        onnx.save(build(name), path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleat", default=str(ROOT / "build" / "pleat"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", default="1,2", help="as many as these, one after the other")
    parser.add_argument("--only", default="", help="a substring of the model's name")
    parser.add_argument("--start", nargs=3, metavar=("WHAT", "MODEL", "THREADS"),
                        help="one start in this process")
    options = parser.parse_args()
    if options.start:
        what, path, threads = options.start
        return start_here(what, path, int(threads))
    pleat = os.path.abspath(options.pleat)
    folder = pathlib.Path(pleat).parent / "models"
    folder.mkdir(exist_ok=True)
    print("second start, milliseconds until made + of the first run\n"
          "model        threads pleat                     onnxruntime                ratio     "
          "     command compiled")
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, PLEAT_CACHE=cache,
                           PLEAT_LIBRARY=str(pathlib.Path(pleat).parent / "libpleat.so"))
        for name in MODELS:
            for threads in options.threads.split(",") if options.only in name else ():
                print_row(name, threads, *measure(pleat, str(model_path(name, folder)),
                                                  int(threads), options.rounds, environment))
    return 0


if __name__ == "__main__":
    sys.exit(main())
