# SPDX-License-Identifier: Apache-2.0
"""Each option of each subcommand has an effect: a call with it prints or writes something else than
the same call without it, or is refused. The options are read from the help, which is made from
the tables of options, so that a new option needs a row here."""
import os
import re
import shutil
import subprocess

import pytest
from command import PLEAT, ROOT, save_model, value_info

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402


GRAPHS = '''from pleat.script import ir as I, relax as R, tir as T


@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((3, 7), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    @R.function
    def open(x: R.Tensor(("n", 7), "float32")):
        n = T.int64()
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    @T.prim_func
    def twice(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5, 3), "float32")):
        for i, j in T.grid(5, 3):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
'''
OLDER = '''from tvm.script import tir as T
@T.prim_func
def older(A: T.Buffer[(4, 3), "float32"]):
    with T.block([4,3], "A") as [vi, vj]:
        A[vi, vj] = 1.0
'''

KERNELS = '''from pleat.script import tir as T


@T.prim_func
def twice(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5, 3), "float32")):
    for i, j in T.grid(5, 3):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2


@T.prim_func
def first(n: T.int32, a: T.handle, b: T.handle):
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("b"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
'''


GATHER = '''from pleat.script import tir as T


@T.prim_func
def gather(A: T.Buffer((10,), "float32"), idx: T.Buffer((2,), "int32"), C: T.Buffer((2,), "float32")):
    for i in range(2):
        C[i] = A[idx[i]]
'''


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a small file of each kind that the subcommands read."""
    folder = tmp_path_factory.mktemp("options")
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.standard_normal((20, 3, 3, 3)).astype("float32"), "w"),
               numpy_helper.from_array(random.standard_normal((5, 20, 1, 1)).astype("float32"), "v"),
               numpy_helper.from_array(np.array([1, -1], "int64"), "flat")]
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["a"], ["b"], "relu"),
             helper.make_node("Conv", ["b", "v"], ["y"], "second")]
    save_model(folder / "net.onnx", nodes, [value_info("x", [1, 3, 9, 7])],
               [value_info("y", [1, 5, 9, 7])], weights[:2])
    save_model(folder / "open.onnx", [helper.make_node("Exp", ["x"], ["y"])],
               [value_info("x", ["n", 3])], [value_info("y", ["n", 3])])
    (folder / "graphs.py").write_text(GRAPHS)
    weight = numpy_helper.from_array(random.standard_normal((67, 331)).astype("float32"), "w")
    save_model(folder / "row.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])],
               [value_info("x", [1, 67])], [value_info("y", [1, 331])], [weight])
    (folder / "older.py").write_text(OLDER)
    (folder / "kernels.py").write_text(KERNELS)
    (folder / "kernel.py").write_text(KERNELS[:KERNELS.index("\n\n@T.prim_func\ndef first")])
    (folder / "gather.py").write_text(GATHER)
    np.save(folder / "idx.npy", np.array([0, 10], "int32"))  # out of bounds, in memory of the page
    (folder / "tuning.py").write_text('@tuning.record("first", last="first")\ndef direct(sch):\n    pass\n')
    (folder / "steps.py").write_text('b0 = sch.get_block("b")\nl1, l2 = sch.get_loops(b0)\n'
                                     "sch.unroll(l2)\n")
    (folder / "lines.jsonl").write_text('{"id": 1, "op": "inverse", "a": {"layout": "NCHW4c", '
                                        '"shape": [1, 8, 2, 2]}}\n')
    np.save(folder / "x.npy", random.standard_normal((1, 3, 9, 7)).astype("float32"))
    np.save(folder / "n.npy", random.standard_normal((2, 3)).astype("float32"))
    np.save(folder / "A.npy", random.standard_normal((5, 3)).astype("float32"))
    data = folder / "data"
    data.mkdir()
    x = np.load(folder / "n.npy")
    for name, array in (("input_0", x), ("output_0", np.exp(x))):
        (data / f"{name}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    subprocess.run([PLEAT, "compile", "net.onnx", "-o", "net.pleat"], cwd=folder, check=True,
                   capture_output=True, env={**os.environ, "PLEAT_CACHE": str(folder / "cache")})
    return folder


# Each row: a subcommand, words of the call, and options, each with its value (None: it takes none),
# or with two values to compare.
LAYOUTS = {"desired-layout": "Conv=NHWC", "keep-layout": None, "input-layout": "x=NHWC",
           "output-layout": "y=NHWC", "policy": "none", "accuracy": "exact", "cpu": "sse2",
           "tuning": "tuning.py"}
LOWERED = {"print-ir-after": "fuse_loops", "verify-each": None}
ROWS = [
    ("check", "net.onnx", {"json": None, "help": None, "input-shape": "x=1x3x9x8", "dim": "n=4"}),
    ("check", "open.onnx", {"dim": "n=4", "input-shape": "x=4x3", "input": "x=n.npy"}),
    ("check", "kernel.py", {"dim": "n=4", "input-shape": "A=5x3", "input": "A=A.npy"}),
    ("inspect", "net.onnx", {**LAYOUTS, "json": None, "help": None, "func": "main"}),
    ("inspect", "open.onnx", {"dim": "n=4", "input-shape": "x=4x3", "input": "x=n.npy"}),
    ("inspect", "graphs.py", {"func": "main"}),
    ("inspect", "kernels.py", {"aliases": None}),
    ("inspect", "net.pleat", {**LAYOUTS, "json": None, "func": "main", "dim": "n=2",
                              "input-shape": "x=2", "input": "x=x.npy"}),
    ("run", "net.onnx --fill random -o y.npz",
     {**LAYOUTS, **LOWERED, "json": None, "help": None, "func": "main", "fill": "zero", "seed": "3",
      "input": "x=x.npy", "repeat": "3", "trace": "t.json", "profile": None, "threads": ("1", "2"),
      "runner-up": ("1", "7")}),
    ("run", "net.onnx --fill random", {"output": "y.npz"}),
    ("run", "open.onnx --fill random", {"dim": "n=4", "input-shape": "x=4x3", "input": "x=n.npy"}),
    ("run", "net.onnx --fill zero", {"seed": "3"}),
    ("run", "net.onnx --fill zero -o -", {"json": None, "profile": None}),
    ("run", "graphs.py --fill random", {"func": ("main", "twice")}),
    ("run", "graphs.py --func open --fill random", {"dim": "n=4", "input-shape": "x=4x7"}),
    ("run", "kernel.py --fill random",
     {**LAYOUTS, **LOWERED, "input": "A=A.npy", "json": None, "trace": "t.json", "profile": None,
      "threads": ("1", "2"), "func": "none", "repeat": "3", "seed": "5", "fill": "zero",
      "output": "B.npz"}),
    ("run", "kernels.py --func first --fill random", {"dim": "n=4", "input-shape": "n=4"}),
    ("run", "net.pleat --fill random",
     {**LAYOUTS, **LOWERED, "json": None, "func": "main", "dim": "n=2", "input-shape": "x=2",
      "input": "x=x.npy", "trace": "t.json", "profile": None, "threads": ("1", "2"), "repeat": "3",
      "seed": "5", "fill": "zero", "output": "y.npz"}),
    ("compile", "net.onnx -o net.c",
     {**LAYOUTS, **LOWERED, "func": "main", "help": None, "emit-weights": "beside", "openmp": None,
      "target": "llvm", "lowered": None, "annotate": None}),
    ("compile", "net.onnx -o net.ll", {"annotate": None}),
    ("compile", "net.onnx -o net.o", {"annotate": None, "emit-weights": "beside", "openmp": None, "lowered": None}),
    ("compile", "net.onnx -o net.py", {"target": "c", "emit-weights": "beside", "openmp": None,
                                       "lowered": None, "annotate": None}),
    ("compile", "kernel.py -o kernel.out.py --lowered", {"annotate": None}),
    ("compile", "kernel.py -o kernel.ll", {"annotate": None}),
    ("compile", "kernel.py -o kernel.s", {"annotate": None}),
    ("compile", "net.onnx -o made.pleat", {"target": "llvm", "emit-weights": "beside",
                                           "openmp": None, "lowered": None, "annotate": None}),
    ("compile", "open.onnx -o open.c", {"dim": "n=4", "input-shape": "x=4x3", "input": "x=n.npy"}),
    ("compile", "kernels.py --func first -o first.c", {"dim": "n=4", "input-shape": "n=4",
                                                       "input": "A=A.npy"}),
    ("compile", "kernel.py -o kernel.c", {**LAYOUTS, "emit-weights": "inside", "openmp": None,
                                          "target": "llvm", "lowered": None}),
    ("compile", "kernel.py -o kernel.out.py", {**LOWERED, "lowered": None, "openmp": None}),
    ("compile", "kernels.py -o kernel.c", {"func": "twice"}),
    ("compile", "gather.py -o gather.c", {"unchecked": None}),
    ("compile", "net.onnx -o net.c", {"unchecked": None}),
    ("run", "net.onnx --fill zero", {"unchecked": None}),
    ("run", "graphs.py --func main --fill zero", {"unchecked": None}),
    ("run", "net.pleat --fill zero", {"unchecked": None}),
    ("bench", "net.onnx --repeat 1", {"unchecked": None}),
    ("verify", "net.onnx", {"unchecked": None}),
    ("run", "gather.py --fill zero --input idx=idx.npy", {"unchecked": None}),
    ("compile", "net.onnx", {"output": "net.ll"}),
    ("plan", "net.onnx", {**LAYOUTS, **LOWERED, "json": None, "help": None, "func": "main", "why": "1",
                          "html": "p.html", "onnx": "p.onnx", "lp": "p.lp", "fusion": None,
                          "write-tuning": "t.py",
                          "schedules": None, "programs": None, "kernel": "1"}),
    ("plan", "net.onnx --json", {"why": "x", "fusion": None, "schedules": None, "programs": None}),
    ("plan", "net.onnx --schedules", {"kernel": "1", "why": "1", "fusion": None}),
    ("plan", "row.onnx --schedules", {"threads": ("1", "2")}),
    ("compile", "row.onnx -o row.py", {"threads": ("1", "2")}),
    ("plan", "open.onnx", {"dim": "n=4", "input-shape": "x=4x3", "input": "x=n.npy"}),
    ("plan", "graphs.py", {"func": "main"}),
    ("opt", "kernel.py", {"pass": "lower", "schedule": "steps.py", "newer-names": None, "list": None,
                          "annotate": None, "output": "out.py", "help": None, "func": "twice", "stop-after": "lower",
                          "print-ir-after": "all", "verify-each": None}),
    ("opt", "kernels.py --pass lower", {"func": "twice", "stop-after": "convert_blocks",
                                        "print-ir-after": "convert_blocks", "annotate": None}),
    ("opt", "--list", {"annotate": None, "pass": "lower", "output": "x.py", "verify-each": None}),
    ("fmt", "older.py", {"check": None, "output": "out.py", "json": None,
                         "help": None}),
    ("fmt", "older.py -o -", {"upgrade": None}),
    ("fmt", "older.py --upgrade -o -", {"newer-names": None}),
    ("verify", "net.onnx", {**LAYOUTS, **LOWERED, "json": None, "help": None, "func": "main",
                            "seed": "7", "against": "definitions", "rtol": "0.5", "atol": "0.5",
                            "max-ulp": "0", "input": "x=x.npy", "test-data": "data",
                            "threads": ("1", "2")}),
    ("verify", "net.onnx --rtol 0 --atol 0 --max-ulp 0", {"reduce": "parts"}),
    ("verify", "open.onnx", {"dim": "n=4", "input-shape": "x=4x3", "test-data": "data",
                             "input": "x=n.npy"}),
    ("verify", "kernel.py", {**LAYOUTS, **LOWERED, "against": "definitions", "reduce": "parts",
                             "test-data": "data", "json": None, "func": "none"}),
    ("verify", "graphs.py", {"func": "main"}),
    ("bench", "net.onnx --repeat 2", {**LAYOUTS, **LOWERED, "json": None, "help": None,
                                      "func": "main", "spills": None, "against": "dnnl",
                                      "op": "exp 3", "threads": ("1", "2")}),
    ("bench", "net.onnx", {"repeat": ("2", "7")}),
    ("bench", "net.onnx --repeat 2 --threads 1", {"write-tuning": "t.py"}),
    ("bench", "open.onnx --repeat 2", {"dim": "n=4", "input-shape": "x=4x3", "input": "x=n.npy"}),
    ("bench", "kernel.py --repeat 2", {**LAYOUTS, **LOWERED, "spills": None, "func": "none"}),
    ("bench", "net.pleat --repeat 2", {**LAYOUTS, **LOWERED, "spills": None, "func": "main"}),
    ("cache", "", {"list": None, "json": None, "help": None, "clear": None}),
    ("cache", "--clear", {"list": None}),
]
LAYOUT = "NCHW16c --shape 1x30x7x7"
ROWS += [
    ("layout", LAYOUT, {
        "physical": "1x3x7x7x16", "pad-value": "3", "show": "table", "equal": "NHWC", "to": "NHWC",
        "compose": "a,b,c,d,e->e,a,b,c,d", "copy": "NHWC", "refine": "NHWC", "inverse": None,
        "at": "0,17,3,2", "at-offset": "37", "slice": "c=0:16", "reshape": "30x49",
        "is": "injective", "element-bytes": "2", "color": "always", "json": None, "help": None,
        "output": "l.txt", "batch": "lines.jsonl", "help-batch": None, "no-certificates": None}),
    ("layout", "NCHW16c", {"shape": "1x30x7x7"}),
    ("layout", "NCHW16c --shape 1xCx7x7 --is onto", {"where": "C % 16 == 0"}),
    ("layout", "NHWC", {"order": "NHWC"}),
    ("layout", "i,j->i,j --shape 2x3", {"product": "a,b->b,a"}),
    ("layout", "i,j->i,j --shape 2x3 --product a,b->b,a", {"other-shape": "5x4"}),
    ("layout", "i,j->i,j --shape 32x32 --read i=0:32", {"swizzle": None}),
    ("layout", "i,j->i,j --shape 32x32 --show banks --read i=0:32",
     {"vector": "4", "banks": "16x4", "read": ("j=0:2", "j=0:4")}),
    ("layout", LAYOUT + " --show lines", {"box": "c=0:16", "line": "128"}),
    ("layout", LAYOUT + " --show svg", {"axis": "h", "output": "l.svg", "json": None}),
    ("layout", LAYOUT + " --show table", {"all": None}),
    ("layout", LAYOUT + " --show c", {"name": "f", "type": "int8"}),
    ("layout", LAYOUT + " --json", {"output": "l.json"}),
    ("layout", LAYOUT + " --inverse", {"output": "l.txt", "element-bytes": "2", "line": "3"}),
    ("layout", "--batch lines.jsonl", {"no-certificates": None, "output": "l", "json": None,
                                       "shape": "2", "all": None, "where": "C == 2"}),
]
# Options whose effect is not in what a call prints or writes.
# tests/python/test_offload.py has the option offload and test_operators.py operators, which need
# libraries.
ELSEWHERE = {(command, option) for option in ("no-cache", "offload", "operators")
             for command in ("inspect", "run", "compile", "plan", "verify", "bench")}
# tests/python/test_opencl.py has the options target and device of those that run code, which need a device.
ELSEWHERE |= {("run", "target"), ("verify", "target"), ("run", "device"), ("verify", "device")}
CALLS = [(command, words, name, value) for command, words, options in ROWS
         for name, value in options.items()]


def call(folder, words, environment=None):
    return subprocess.run([PLEAT, *words], capture_output=True, text=True, cwd=folder, errors="replace",
                          env={**os.environ, "PLEAT_CACHE": "off", "TERM": "dumb",
                               **(environment or {})})


def without_times(text):
    text = re.sub(r"(\n|^)(latency|first result|work|tensors) .*", r"\1\2", text)
    text = re.sub(r"\b\d[\d.e+-]* (ns|us|ms|s|%|GFLOP/s|GB/s)(?!\w)", "# \\1", text)
    return re.sub(r'"(median|p\d0|first_result_s|verifier_s|peak_memory_bytes|ns|last_used)": [\d.e+-]+', r'"\1"',
                  text)


def outcome(files, folder, command, words):
    """The output and the files of a call, without the parts that differ from run to run."""
    shutil.copytree(files, folder)
    done = call(folder, [command, *words], {"PLEAT_CACHE": "cache"} if command == "cache" else None)
    written = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
               if path.is_file() and not (files / path.relative_to(folder)).exists()}
    for name, data in written.items():
        if name.endswith((".npz", ".json")):
            written[name] = len(data) if name.endswith(".json") else {
                key: value.tobytes() for key, value in np.load(folder / name).items()}
    shutil.rmtree(folder)
    said = done.stdout + done.stderr
    threads = re.findall(r"\d+ threads?\b|\d+ runs?\b|avx\w+|sse2", said)
    return done.returncode, without_times(said), threads, written


def with_option(words, name, value):
    return [*words, f"--{name}"] if value is None else [*words, f"--{name}", value]


def name_of(row):
    return f"{row[0]} {row[1]} {row[2]}"


# A check that succeeds prints nothing, and neither do `bench` and `verify` about their plan.
SILENT = {(command, "verify-each")
          for command in ("plan", "run", "compile", "opt", "verify", "bench")} | {
    ("verify", "input-layout"), ("verify", "keep-layout"), ("verify", "policy"), ("verify", "cpu"),
    ("verify", "threads"), ("bench", "desired-layout"), ("bench", "input-layout")} | {  # the model's sums are too small to be computed otherwise
    (command, "accuracy") for command in ("inspect", "plan", "run", "compile", "verify", "bench")}


@pytest.mark.slow  # all options of all commands take minutes when sanitized
@pytest.mark.parametrize("command, words, name, value", CALLS, ids=map(name_of, CALLS))
def test_it_has_an_effect(files, tmp_path, command, words, name, value):
    words = words.split()
    first, second = value if isinstance(value, tuple) else (None, value)
    base = with_option(words, name, first) if first else words
    without = outcome(files, tmp_path / "work", command, base)
    found = outcome(files, tmp_path / "work", command, with_option(words, name, second))
    silent = (command, name) in SILENT and found[0] == without[0] == 0
    assert silent or found != without


@pytest.mark.parametrize("command", sorted({command for command, _ in ELSEWHERE}))
def test_no_cache_keeps_nothing(files, tmp_path, command):
    words = {"run": ["net.onnx", "--fill", "zero"], "compile": ["net.onnx", "-o", "made.pleat"],
             "bench": ["net.onnx", "--repeat", "1"], "verify": ["net.onnx"],
             "plan": ["folded.onnx"], "inspect": ["folded.onnx"]}[command]
    shutil.copytree(files, tmp_path / "work")
    weight = numpy_helper.from_array(np.ones((300, 300), "float32"), "w")
    save_model(tmp_path / "work" / "folded.onnx",
               [helper.make_node("MatMul", ["w", "w"], ["v"]), helper.make_node("Add", ["x", "v"], ["y"])],
               [value_info("x", [300, 300])], [value_info("y", [300, 300])], [weight])
    cache = tmp_path / "cache"
    for option, kept in (["--no-cache"], False), ([], True):
        done = call(tmp_path / "work", [command, *words, *option], {"PLEAT_CACHE": str(cache)})
        assert done.returncode == 0, done.stderr
        assert kept == bool(cache.exists() and any(cache.iterdir()))


def test_no_option_is_forgotten():
    """Every option of the help has a row."""
    commands = re.findall(r"^  (\w+) ", call(ROOT, ["--help"]).stdout, re.MULTILINE)
    offered = {(command, name) for command in commands
               for name in re.findall(r"^  (?:-\w, |    )--([\w-]+)",
                                      call(ROOT, [command, "-h"]).stdout, re.MULTILINE)}
    tried = {(command, name) for command, _, name, _ in CALLS} | ELSEWHERE
    assert len(offered) > 120 and offered == tried
