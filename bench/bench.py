#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Pleat with its peers, in the same run on the same machine.

Prints one table: the model, Pleat's time, each peer's time, and Pleat's speed as a share of the
better peer's; the time to the first result; the memory of the process, of weights, and of the
arena, the last also as a multiple of the largest sum of live tensors; then the geometric mean, and
for the slowest models the kernels that lose the most. Rounds of the programs alternate, and the
best median of each counts, so that other work on the machine disturbs all alike. No figure makes
the script fail.

    bench.py                     everything
    bench.py --only bert         models whose name contains this
    bench.py --small             the models at a reduced size, as a check
"""
import argparse
import collections
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ["PLEAT_CACHE"] = "off"  # so that compile times are those of compiling
sys.path.insert(0, str(ROOT / "examples" / "models"))
ROUND_S, FEWEST_RUNS, MOST_RUNS = 1.0, 3, 50
WORST = 3  # models whose kernels are looked at
GOALS = {"resnet50": 0.9, "bert_base": 0.9}  # of the better peer's speed
GOAL, GOAL_GEOMEAN = 0.4, 0.75


def median_ms(call, runs=None):
    """The median time of the runs that fit one round."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    runs = runs or round(min(max(ROUND_S / max(once, 1e-6), FEWEST_RUNS), MOST_RUNS))
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, path, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"])

    def call(self, feeds):
        return lambda: self.session.run(None, feeds)


class OpenVino:
    name = "openvino"

    def __init__(self, path, threads):
        import openvino

        core = openvino.Core()
        config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                  "INFERENCE_PRECISION_HINT": "f32"}
        self.request = core.compile_model(str(path), "CPU", config).create_infer_request()

    def call(self, feeds):
        values = list(feeds.values())
        return lambda: self.request.infer(values)


def peers(path, threads):
    found = []
    for kind in (OnnxRuntime, OpenVino):
        try:
            found.append(kind(path, threads))
        except Exception as error:  # a peer that is not installed or refuses the model
            print(f"  {kind.name}: {error}", file=sys.stderr)
    return found


def feeds_of(path):
    import onnx
    from builder import feeds

    return feeds(onnx.load(path, load_external_data=False))


def pleat_bench(pleat, arguments):
    """The JSON object that `pleat bench` prints."""
    out = subprocess.run([pleat, "bench", *arguments, "--json"], capture_output=True, text=True)
    if out.returncode:
        print(out.stderr, file=sys.stderr)
        return None
    return json.loads(out.stdout)


def pleat_profile(pleat, path, threads):
    """Milliseconds by kernel, named after the model's node."""
    out = subprocess.run([pleat, "run", str(path), "--fill", "random", "--profile", "--json",
                          "--threads", str(threads), "--repeat", "10"],
                         capture_output=True, text=True)
    if out.returncode:
        return {}
    times = collections.Counter()
    for kernel in json.loads(out.stdout)["kernels"]:
        times[kernel["name"]] += kernel["ms"]
    return times


def onnxruntime_profile(path, threads):
    """Milliseconds by node. A fused node is named after one of its nodes or its result."""
    import onnxruntime

    options, runs = onnxruntime.SessionOptions(), 10
    options.intra_op_num_threads = threads
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as folder:
        options.profile_file_prefix = os.path.join(folder, "profile")
        session = onnxruntime.InferenceSession(str(path), options,
                                               providers=["CPUExecutionProvider"])
        feeds = feeds_of(path)
        for _ in range(runs):
            session.run(None, feeds)
        events = json.loads(pathlib.Path(session.end_profiling()).read_text())
    times = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            name = event["name"].removesuffix("_kernel_time").partition("/")[0]
            times[name].append(event["dur"] * 1e-3)
    return {name: statistics.median(some) * len(some) / runs for name, some in times.items()}


def by_kernel(path, kernels, times):
    """Times of nodes under the kernels that compute them: those of the same name, or of the nearest
    node before them that is a kernel's."""
    import onnx

    nodes = onnx.load(path, load_external_data=False).graph.node
    named = {node.name: node for node in nodes}
    maker = {value: node.name for node in nodes for value in node.output}
    sums = collections.Counter()
    for name, ms in times.items():
        name = name.removesuffix("_nchwc")
        name = maker.get(name, name)
        while name not in kernels and name in named and named[name].input:
            name = maker.get(named[name].input[0])
        sums[name if name in kernels else None] += ms
    return sums


Row = collections.namedtuple("Row", "name path threads share")
HEAD = (f"{'median ms':26}{'threads':>8}{'pleat':>10}{'onnxruntime':>13}{'openvino':>10}{'speed':>8}"
        f"{'goal':>6}{'first s':>9}{'MiB':>7}{'weights':>9}{'arena':>8}{'of live':>9}")


def print_row(what, threads, ours, theirs, goal, got=None):
    """Returns Pleat's speed as a share of the better peer's; None without one of them."""
    def cell(value, width):
        return f"{value:{width}.2f}" if value else " " * (width - 1) + "-"
    best = min(theirs.values()) if theirs else None
    share = best / ours if best and ours else None
    line = (f"{what:26}{threads:8}{cell(ours, 10)}{cell(theirs.get('onnxruntime'), 13)}"
            f"{cell(theirs.get('openvino'), 10)}{cell(share, 8)}{goal:6.2f}")
    if got:
        mib = {name: count / 2**20 for name, count in got["memory"].items()}
        line += (f"{got['first_result_s']:9.2f}{got['peak_memory_bytes'] / 2**20:7.0f}"
                 f"{mib['weight_bytes']:9.0f}{mib['arena_bytes']:8.1f}")
        if mib["live_bytes"]:
            line += f"{mib['arena_bytes'] / mib['live_bytes']:9.3f}"
    print(line, flush=True)
    return share


def bench_model(pleat, path, threads, rounds, name, goal):
    feeds = feeds_of(path)
    contestants = peers(path, threads)
    ours, theirs, got = None, {}, None
    for _ in range(rounds):
        few = ["--repeat", str(FEWEST_RUNS)] if ours and ours > 1e3 * ROUND_S / 10 else []
        found = pleat_bench(pleat, [str(path), "--threads", str(threads), *few])
        if found:
            ms = found["latency_ms"]["median"]
            ours = min(ours or ms, ms)
            first = min(found["first_result_s"], got["first_result_s"] if got else math.inf)
            got = dict(found, first_result_s=first)
        for peer in contestants:
            ms = median_ms(peer.call(feeds))
            theirs[peer.name] = min(theirs.get(peer.name, ms), ms)
    share = print_row(name, threads, ours, theirs, goal, got)
    return Row(name, path, threads, share)


def build_model(name, folder, small):
    import onnx
    from build import build

    path = folder / f"{name}{'.small' if small else ''}.onnx"
    if not path.exists():
        onnx.save(build(name, small), path)
    return path


# ---- Kernels behind the figures ---------------------------------------------------------------

def show_losses(pleat, row):
    """The kernels of a model that lose the most against the nodes of the same names."""
    ours = pleat_profile(pleat, row.path, row.threads)
    try:
        theirs = onnxruntime_profile(row.path, row.threads)
    except Exception as error:
        print(f"    onnxruntime: {error}", file=sys.stderr)
        theirs = {}
    print(f"  {row.name}, {row.threads} thread{'s' * (row.threads > 1)}: "
          f"{sum(ours.values()):.2f} ms in {len(ours)} kernels, "
          f"onnxruntime {sum(theirs.values()):.2f} ms in {len(theirs)} nodes")
    theirs = by_kernel(row.path, ours, theirs)
    losses = sorted(((ms - theirs[name], name, ms) for name, ms in ours.items()), reverse=True)
    for _, name, ms in losses[:6]:
        print(f"    {name:40} {ms:9.3f} ms {theirs[name]:9.3f} ms")


def show_summary(pleat, rows):
    rows = [row for row in rows if row.share]
    for threads in sorted({row.threads for row in rows}):
        shares = [row.share for row in rows if row.threads == threads]
        mean = math.exp(statistics.fmean(math.log(share) for share in shares))
        print(f"geometric mean of {len(shares)} models, {threads} thread{'s' * (threads > 1)}: "
              f"{mean:.2f} of the better (goal {GOAL_GEOMEAN}); least {min(shares):.2f} "
              f"(goal {GOAL})")
    worst = sorted((row for row in rows if row.threads == 1), key=lambda row: row.share)[:WORST]
    if worst:
        print("the slowest, and the kernels that lose:")
    for row in worst:
        show_losses(pleat, row)


def build_matmul(m, k, n, folder):
    from onnx import TensorProto, helper, save

    path = folder / f"matmul_{m}x{k}x{n}.onnx"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
              for name, shape in (("a", [m, k]), ("b", [k, n]), ("c", [m, n]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "matmul",
                              values[:2], values[2:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def build_emitted_c(pleat, path, folder, compiler):
    """A model's emitted C as a library, built by `compiler`, or None."""
    source = folder / f"{path.stem}_{compiler}.c"
    library = source.with_suffix(".so")
    for command in ([pleat, "compile", str(path), "-o", str(source)],
                    [compiler, "-O2", "-march=native", "-shared", "-fPIC", str(source), "-o",
                     str(library), "-lm"]):
        out = subprocess.run(command, capture_output=True, text=True)
        if out.returncode:
            print(out.stderr[-2000:], file=sys.stderr)
            return None
    return library


def bench_matmul(pleat, folder, rounds):
    path = build_matmul(1024, 1024, 1024, folder)
    bench_model(pleat, path, 1, rounds, "matmul 1024x1024x1024", 1.0)
    got = pleat_bench(pleat, ["--op", "matmul 1024x1024x1024", "--threads", "1"])
    if got and got.get("gflops"):
        share = got.get("peak_share")
        print(f"    {got['gflops']:.0f} GFLOP/s",
              f"= {share * 100:.0f} % of the FMA peak (goal 60 %)" if share else "")


def bench_emitted(pleat, path, folder, rounds):
    """The best median in process and as emitted C, in alternating runs."""
    sys.path.insert(0, str(ROOT / "bench"))
    import emitted

    feeds = feeds_of(path)
    for compiler in ("gcc", "clang"):
        library = build_emitted_c(pleat, path, folder, compiler)
        ours, theirs = math.inf, math.inf
        for _ in range(rounds if library else 0):
            got = pleat_bench(pleat, [str(path), "--threads", "1"])
            ours = min(ours, got["latency_ms"]["median"] if got else math.inf)
            theirs = min(theirs, emitted.median_ms(library.with_suffix(".h"), library, feeds, 20))
        if math.isfinite(ours) and math.isfinite(theirs):
            print(f"    emitted C, {compiler}: {theirs:.2f} ms = {theirs / ours:.2f} x in process "
                  f"(goal 1.5x)")


def start_up_ms(pleat):
    return median_ms(lambda: subprocess.run([pleat, "--version"], capture_output=True), 20)


def main():
    from build import MODELS

    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pleat", default=str(ROOT / "build/pleat"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", default="1,2", help="as many as these, one after the other")
    parser.add_argument("--only", default="", help="a substring of the model's name")
    parser.add_argument("--small", action="store_true", help="reduced models")
    options = parser.parse_args()
    pleat = os.path.abspath(options.pleat)
    folder = pathlib.Path(pleat).parent / "models"
    folder.mkdir(exist_ok=True)
    threads = [int(count) for count in options.threads.split(",")]
    print(HEAD)
    if options.only in "matmul" and not options.small:
        bench_matmul(pleat, folder, options.rounds)
    rows = []
    for name in MODELS:
        if options.only not in name:
            continue
        path = build_model(name, folder, options.small)
        rows += [bench_model(pleat, path, count, options.rounds, name, GOALS.get(name, GOAL))
                 for count in threads]
        if name in ("resnet50", "mobilenetv2") and not options.small:
            bench_emitted(pleat, path, folder, options.rounds)
    show_summary(pleat, rows)
    print(f"pleat --version {start_up_ms(pleat):.1f} ms (goal 5)")
    print(f"command         {os.path.getsize(pleat) / 2**20:.1f} MiB with symbols")


if __name__ == "__main__":
    main()
