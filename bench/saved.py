#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures saved models, sessions and starts, on a ResNet-50, beside their goals.

Each figure is the best of several new processes, so that other work on the machine disturbs it
little: the load of a saved model whose pages are in memory, the first run after it against later
runs, the memory that sessions add in threads of their own, the second start of the command through
the cache against ONNX Runtime's load and first run, and the import of the package. No figure makes
the script fail.

    saved.py --pleat build/pleat [--small]
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / "models"), str(ROOT / "python")]
SESSIONS, LATER_RUNS, LOADS = 8, 5, 20


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def resident_bytes():
    for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    return 0


# ---- What a new process measures ----------------------------------------------------------------

def inputs_of(arguments):
    import numpy as np

    rng = np.random.default_rng(0)
    return {a.name: rng.random(a.shape, np.float32).astype(a.dtype) for a in arguments}


def measure_load(path):
    import pleat

    load_s, load_cpu_s = math.inf, math.inf
    for _ in range(LOADS):
        before = time.process_time()
        elapsed, model = seconds(lambda: pleat.load(path, threads=1))
        load_s = min(load_s, elapsed)
        load_cpu_s = min(load_cpu_s, time.process_time() - before)
    inputs = inputs_of(model.inputs)
    session = model.session(threads=1)
    first_s, _ = seconds(lambda: session.run(inputs))
    later_s = min(seconds(lambda: session.run(inputs))[0] for _ in range(LATER_RUNS))
    return {"load_ms": load_s * 1e3, "load_cpu_ms": load_cpu_s * 1e3,
            "first_over_later": first_s / later_s}


def measure_sessions(path):
    import pleat

    model = pleat.load(path, threads=1)
    inputs = inputs_of(model.inputs)
    first = model.session(threads=1)
    first.run(inputs)
    before = resident_bytes()
    sessions = [model.session(threads=1) for _ in range(SESSIONS - 1)]
    threads = [threading.Thread(target=session.run, args=(inputs,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"one_mib": before / 2**20, "all_mib": resident_bytes() / 2**20}


def measure_onnxruntime(path):
    import onnxruntime

    start = time.perf_counter()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {}
    import numpy as np
    for value in session.get_inputs():
        shape = [size if isinstance(size, int) else 1 for size in value.shape]
        feeds[value.name] = np.zeros(shape, np.float32)
    session.run(None, feeds)
    return {"start_s": time.perf_counter() - start}


def measure_import(_):
    start = time.perf_counter()
    import pleat  # noqa: F401
    return {"import_ms": (time.perf_counter() - start) * 1e3}


MEASURES = {"load": measure_load, "sessions": measure_sessions,
            "onnxruntime": measure_onnxruntime, "import": measure_import}


# ---- The processes ------------------------------------------------------------------------------

def child(name, path, library):
    environment = dict(os.environ, PLEAT_LIBRARY=str(library))
    out = subprocess.run([sys.executable, __file__, "--measure", name, str(path)],
                         env=environment, capture_output=True, text=True)
    if out.returncode:
        print(out.stderr[-1000:], file=sys.stderr)
        return None
    return json.loads(out.stdout)


def best(name, path, library, rounds):
    """The least of each figure of several processes; None when one fails."""
    figures = [child(name, path, library) for _ in range(rounds)]
    if None in figures:
        return None
    return {key: min(one[key] for one in figures) for key in figures[0]}


def second_start_s(pleat, path, folder, rounds):
    environment = dict(os.environ, PLEAT_CACHE=str(folder / "cache"))
    command = [pleat, "run", str(path), "--fill", "zero", "--json"]
    times = []
    for _ in range(rounds + 1):
        out = subprocess.run(command, env=environment, capture_output=True, text=True)
        if out.returncode:
            print(out.stderr[-1000:], file=sys.stderr)
            return None
        times.append(json.loads(out.stdout)["first_result_s"])
    return min(times[1:])


def report(what, text, goal):
    print(f"{what:32} {text:28} {goal}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleat", default=str(ROOT / "build/pleat"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="a reduced model, as a check")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(MEASURES[options.measure[0]](options.measure[1])))
        return
    from bench import build_model

    pleat = os.path.abspath(options.pleat)
    library = pathlib.Path(pleat).parent / "libpleat.so"
    models = pathlib.Path(pleat).parent / "models"
    models.mkdir(exist_ok=True)
    path = build_model("resnet50", models, options.small)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        saved = folder / "resnet50.pleat"
        subprocess.run([pleat, "compile", str(path), "-o", str(saved)], check=True,
                       capture_output=True)
        size = saved.stat().st_size / 2**20
        if figures := best("load", saved, library, options.rounds):
            report(f"load of {size:.0f} MiB", f"{figures['load_ms']:.1f} ms",
                   f"goal 10 ms; {figures['load_cpu_ms']:.1f} ms of all threads together")
            report("its first run", f"{figures['first_over_later']:.2f} x a later one", "goal 1.1")
        if figures := best("sessions", saved, library, 2):
            more = (figures["all_mib"] - figures["one_mib"]) / (SESSIONS - 1)
            report(f"memory of {SESSIONS} sessions",
                   f"{figures['all_mib']:.0f} MiB", f"of one {figures['one_mib']:.0f} MiB, "
                   f"each more {more:.1f} MiB; weights once")
        ours = second_start_s(pleat, path, folder, options.rounds)
        theirs = best("onnxruntime", path, library, options.rounds)
        if ours and theirs:
            report("second start by the cache", f"{ours * 1e3:.0f} ms",
                   f"{ours / theirs['start_s']:.2f} x onnxruntime's {theirs['start_s'] * 1e3:.0f} "
                   "ms (goal 1.2)")
        if figures := best("import", path, library, options.rounds):
            report("import pleat", f"{figures['import_ms']:.0f} ms", "goal 80 ms")


if __name__ == "__main__":
    main()
