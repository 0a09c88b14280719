#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pleat beside its peers, in the same run on the same machine.

Prints one table: what was run, Pleat's time, each peer's, and ratios; then sizes, memory and
start-up. Rounds of the contestants alternate, and the best median of each counts, so that other work
on the machine disturbs all alike. Nothing here fails: figures are for reading.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def median_ms(call, repeat):
    call()
    times = []
    for _ in range(repeat):
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
    import numpy
    import onnx

    random = numpy.random.default_rng(1)
    graph = onnx.load(path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return {
        value.name: random.standard_normal(
            [d.dim_value for d in value.type.tensor_type.shape.dim]).astype("float32")
        for value in graph.input if value.name not in constants
    }


def pleat_bench(pleat, arguments):
    """The JSON object that `pleat bench` prints."""
    out = subprocess.run([pleat, "bench", *arguments, "--json"], capture_output=True, text=True)
    if out.returncode:
        print(out.stderr, file=sys.stderr)
        return None
    return json.loads(out.stdout)


def row(what, pleat_ms, peer_ms, goal):
    best = min(peer_ms.values()) if peer_ms else None
    cells = [f"{what:34}", f"{pleat_ms:9.2f}" if pleat_ms else "        -"]
    for name in ("onnxruntime", "openvino"):
        cells.append(f"{peer_ms[name]:11.2f}" if name in peer_ms else "          -")
    cells.append(f"{pleat_ms / best:7.2f}x" if pleat_ms and best else "       -")
    print("  ".join(cells), f"  ({goal})" if goal else "", flush=True)


def bench_model(pleat, path, threads, rounds, repeat, goal):
    feeds = feeds_of(path)
    contestants = peers(path, threads)
    ours, theirs, first, memory = None, {}, None, None
    for _ in range(rounds):
        got = pleat_bench(pleat, [str(path), "--threads", str(threads), "--repeat", str(repeat)])
        if got:
            ms = got["latency_ms"]["median"]
            ours = min(ours or ms, ms)
            first = min(first or got["first_result_s"], got["first_result_s"])
            memory = got["peak_memory_bytes"]
        for peer in contestants:
            ms = median_ms(peer.call(feeds), repeat)
            theirs[peer.name] = min(theirs.get(peer.name, ms), ms)
    row(f"{path.stem}, {threads} thread{'s' * (threads > 1)}", ours, theirs, goal)
    return ours, first, memory


def build_model(name, folder):
    path = folder / f"{name}.onnx"
    if not path.exists():
        subprocess.check_call([sys.executable, ROOT / "examples/models/build.py", name, path])
    return path


def build_matmul(m, k, n, folder):
    from onnx import TensorProto, helper, save

    path = folder / f"matmul_{m}x{k}x{n}.onnx"
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
              for name, shape in (("a", [m, k]), ("b", [k, n]), ("c", [m, n]))]
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"])], "matmul",
                              values[:2], values[2:])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def emitted_c_ms(pleat, path, folder, compiler, repeat):
    """The time of a model's emitted C, built by `compiler`, or None."""
    source = folder / f"{path.stem}_{compiler}.c"
    library = source.with_suffix(".so")
    for command in ([pleat, "compile", str(path), "-o", str(source)],
                    [compiler, "-O2", "-march=native", "-shared", "-fPIC", str(source), "-o",
                     str(library), "-lm"]):
        out = subprocess.run(command, capture_output=True, text=True)
        if out.returncode:
            print(out.stderr[-2000:], file=sys.stderr)
            return None
    sys.path.insert(0, str(ROOT / "bench"))
    import emitted

    return emitted.median_ms(source.with_suffix(".h"), library, feeds_of(path), repeat)


def bench_matmul(pleat, folder, rounds, repeat):
    path = build_matmul(1024, 1024, 1024, folder)
    ours, _, _ = bench_model(pleat, path, 1, rounds, repeat, "")
    got = pleat_bench(pleat, ["--op", "matmul 1024x1024x1024", "--threads", "1"])
    if got and got.get("gflops"):
        share = got.get("peak_share")
        print(f"    {got['gflops']:.0f} GFLOP/s",
              f"= {share * 100:.0f} % of the FMA peak (goal 60 %)" if share else "")


def start_up_ms(pleat):
    return median_ms(lambda: subprocess.run([pleat, "--version"], capture_output=True), 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pleat", default=str(ROOT / "build/pleat"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--only", help="a substring of the model's name")
    options = parser.parse_args()
    pleat = os.path.abspath(options.pleat)
    folder = pathlib.Path(pleat).parent / "models"
    folder.mkdir(exist_ok=True)
    print(f"{'median ms':34}  {'pleat':>9}  {'onnxruntime':>11}  {'openvino':>11}  {'ratio':>8}")
    if not options.only or "matmul" in options.only:
        bench_matmul(pleat, folder, options.rounds, options.repeat)
    for name, goal in (("resnet50", "goal 1.5x"), ("mobilenetv2", "goal 2.5x")):
        if options.only and options.only not in name:
            continue
        path = build_model(name, folder)
        for threads in (1, 2):
            ours, first, memory = bench_model(pleat, path, threads, options.rounds,
                                              options.repeat, goal)
        weights = path.stat().st_size
        if first:
            print(f"    first result {first:.2f} s, memory {memory / weights:.2f} x the weights")
        alone = pleat_bench(pleat, [str(path), "--threads", "1", "--repeat", str(options.repeat)])
        for compiler in ("gcc", "clang"):
            ms = emitted_c_ms(pleat, path, folder, compiler, options.repeat)
            if ms and alone:
                ours = alone["latency_ms"]["median"]
                print(f"    emitted C, {compiler}: {ms:.2f} ms = {ms / ours:.2f} x in process"
                      " (goal 1.5x)")
    print(f"pleat --version {start_up_ms(pleat):.1f} ms (goal 5)")
    print(f"command         {os.path.getsize(pleat) / 2**20:.1f} MiB with symbols")


if __name__ == "__main__":
    main()
