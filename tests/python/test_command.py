# SPDX-License-Identifier: Apache-2.0
"""The command on files that other tools write and read: test data beside a model, what bad input
meets, traces. Needs no ONNX Runtime."""
import ctypes
import ctypes.util
import json
import os
import re
import subprocess

import pytest
from command import PLEAT, ROOT, level_here, pleat, save_model, value_info

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402


def save_tensor(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(numpy_helper.from_array(np.asarray(array)).SerializeToString())


# ---- Profiles


def test_profile_sums_to_the_run():
    """The rows of the table are all of a run: shares add up to 100 %."""
    digits = ROOT / "examples" / "digits" / "digits.onnx"
    text = pleat("run", digits, "--fill", "random", "--profile", "--repeat", 50)
    rows = [line for line in text.splitlines() if " us " in line and " % " in line and
            "latency" not in line]
    shares = [float(line.split(" us ")[1].split()[0]) for line in rows]
    assert len(shares) > 10 and "around them" in rows[-1]
    assert abs(sum(shares) - 100) < 0.1 * len(shares)
    said = json.loads(pleat("run", digits, "--fill", "random", "--profile", "--json"))
    kernels = said["kernels"]
    assert len(kernels) == len(rows) - 1
    assert sum(k["ms"] for k in kernels) + said["around_ms"] == pytest.approx(said["run_ms"])
    for kernel in kernels:
        assert kernel["ms"] > 0 and kernel["gbs"] > 0 and 0 < kernel["of_limit"]


# ---- Test data


@pytest.fixture(name="tanh_model")
def make_tanh_model(tmp_path):
    """tanh of the sum of two inputs, beside two sets of test data, numbered so that text order is
    another one."""
    path = save_model(tmp_path / "m.onnx",
                      [helper.make_node("Add", ["a", "b"], ["s"], "add"),
                       helper.make_node("Tanh", ["s"], ["y"], "tanh")],
                      [value_info("a", [3, 7]), value_info("b", [7])], [value_info("y", [3, 7])])
    random = np.random.default_rng(3)
    for number in (2, 10):
        a, b = (np.float32(random.standard_normal(shape)) for shape in ((3, 7), (7,)))
        folder = tmp_path / f"test_data_set_{number}"
        save_tensor(folder / "input_0.pb", a)
        save_tensor(folder / "input_1.pb", b)
        save_tensor(folder / "output_0.pb", np.tanh(a + b))
    return path


def test_one_set(tanh_model):
    folder = tanh_model.parent / "test_data_set_2"
    assert "1 set of test data" in pleat("verify", tanh_model, "--test-data", folder)


def test_every_set_of_a_folder(tanh_model):
    assert "2 sets of test data" in pleat("verify", tanh_model, "--test-data", tanh_model.parent)


def test_first_set_that_differs(tanh_model):
    wrong = tanh_model.parent / "test_data_set_10" / "output_0.pb"
    expected = numpy_helper.to_array(onnx.load_tensor(str(wrong))).copy()
    expected[2, 5] += 0.01
    save_tensor(wrong, expected)
    folder = tanh_model.parent
    said = pleat("verify", tanh_model, "--test-data", folder, status=1)
    assert "'y'[2, 5]" in said and "test_data_set_10" in said and "1 of 21 elements" in said
    assert "2 sets" in pleat("verify", tanh_model, "--test-data", folder, "--atol", "0.02")


# ---- The smallest part that differs


def check_part(folder):
    """The part is a valid model, its data are the reference's, and it differs as the whole did."""
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    data = folder / "test_data_set_0"
    inputs = [numpy_helper.to_array(onnx.load_tensor(str(data / f"input_{i}.pb")))
              for i in range(len(model.graph.input))]
    names = [value.name for value in model.graph.input]
    (result,) = ReferenceEvaluator(model).run(None, dict(zip(names, inputs)))
    expected = numpy_helper.to_array(onnx.load_tensor(str(data / "output_0.pb")))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
    assert not (data / f"input_{len(names)}.pb").exists()
    assert "agrees" in pleat("verify", folder / "model.onnx", "--test-data", data)
    return model, pleat("verify", folder / "model.onnx", "--test-data", data, "--max-ulp", 0,
                        status=1)


def test_reduce(tmp_path):
    digits = ROOT / "examples" / "digits" / "digits.onnx"
    said = pleat("verify", digits, "--max-ulp", 0, "--reduce", tmp_path / "part", status=1)
    assert "the difference comes from" in said and "pleat verify" in said
    model, again = check_part(tmp_path / "part")
    assert 1 <= len(model.graph.node) < 5 and "elements differ" in again


def test_reduce_inlines_external_data_and_keeps_bodies(tmp_path):
    """A softmax behind a matrix product and an If that reads what is around it."""
    random = np.random.default_rng(4)
    weight = numpy_helper.from_array(np.float32(random.standard_normal((13, 31))), "w")
    body = helper.make_graph([helper.make_node("Mul", ["h", "two"], ["d"])], "then", [],
                             [value_info("d", [5, 31])])
    other = helper.make_graph([helper.make_node("Neg", ["h"], ["n"])], "else", [],
                              [value_info("n", [5, 31])])
    path = save_model(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("MatMul", ["r", "w"], ["h"]),
         helper.make_node("If", ["yes"], ["c"], then_branch=body, else_branch=other),
         helper.make_node("Softmax", ["c"], ["y"])],
        [value_info("x", [5, 13])], [value_info("y", [5, 31])],
        [weight, numpy_helper.from_array(np.float32(2), "two"),
         numpy_helper.from_array(np.array(True), "yes")])
    onnx.save_model(onnx.load(path), path, save_as_external_data=True, location="w.bin",
                    size_threshold=0)
    said = pleat("verify", path, "--max-ulp", 0, "--reduce", tmp_path / "part", status=1)
    assert "elements differ" in said
    (tmp_path / "w.bin").unlink()
    model, again = check_part(tmp_path / "part")
    assert "elements differ" in again
    assert all(not tensor.external_data for tensor in model.graph.initializer)


def test_reduce_wants_a_model(tmp_path):
    kernel = ROOT / "examples" / "kernels" / "matmul.py"
    assert "--reduce: takes ONNX models" in pleat("verify", kernel, "--reduce", tmp_path, status=1)


def floats(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def sequence_case(folder, inserted, expected):
    """A model that puts `x` into a sequence at 1, with its data; `inserted` None: the sequence is
    the content of an optional value that is not there, and the model says so."""
    folder.mkdir()
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, [None, None])
    sequence = helper.make_sequence_type_proto(tensor)
    if inserted is None:
        optional = helper.make_optional_type_proto(sequence)
        nodes = [helper.make_node("OptionalHasElement", ["s"], ["y"])]
        inputs = [helper.make_value_info("s", optional)]
        outputs = [helper.make_tensor_value_info("y", TensorProto.BOOL, [])]
        data = {"input_0": numpy_helper.from_optional(None, dtype=onnx.OptionalProto.SEQUENCE)}
    else:
        nodes = [helper.make_node("SequenceInsert", ["s", "x", "at"], ["y"])]
        inputs = [helper.make_value_info("s", sequence),
                  helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 7]),
                  helper.make_tensor_value_info("at", TensorProto.INT64, [])]
        outputs = [helper.make_value_info("y", sequence)]
        data = {"input_0": numpy_helper.from_list(inserted),
                "input_1": numpy_helper.from_array(floats(1, 7)),
                "input_2": numpy_helper.from_array(np.int64(1))}
    make = numpy_helper.from_list if isinstance(expected, list) else numpy_helper.from_array
    data["output_0"] = make(expected)
    graph = helper.make_graph(nodes, "case", inputs, outputs)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9),
              folder / "model.onnx")
    for name, value in data.items():
        (folder / f"{name}.pb").write_bytes(value.SerializeToString())
    return folder


def test_data_of_sequences_and_optionals(tmp_path):
    a, b, x = floats(2, 3), floats(5, 4), floats(1, 7)
    right = sequence_case(tmp_path / "right", [a, b], [a, x, b])
    assert "agrees" in pleat("verify", right / "model.onnx", "--test-data", right)
    wrong = sequence_case(tmp_path / "wrong", [a, b], [a, x, b + 1])
    assert "'y[2]'" in pleat("verify", wrong / "model.onnx", "--test-data", wrong, status=1)
    fewer = sequence_case(tmp_path / "fewer", [a, b], [a, x])
    said = pleat("verify", fewer / "model.onnx", "--test-data", fewer, status=1)
    assert "output_0.pb holds 2 tensors, the model gives 3 for 'y'" in said
    absent = sequence_case(tmp_path / "absent", None, np.array(False))
    assert "agrees" in pleat("verify", absent / "model.onnx", "--test-data", absent)


@pytest.mark.parametrize("name, array, words", [
    ("input_0.pb", np.zeros((3, 6), np.float32), "'a'"),
    ("input_0.pb", np.zeros((3, 7), np.float64), "'a'"),
    ("input_2.pb", np.zeros(1, np.float32), "input_2.pb: the model has 2 inputs"),
    ("output_1.pb", np.zeros(1, np.float32), "output_1.pb: the model has 1 output"),
    ("output_0.pb", np.zeros((7, 3, 1, 2), np.float32), "'y'"),
])
def test_data_that_do_not_fit(tanh_model, name, array, words):
    save_tensor(tanh_model.parent / "test_data_set_2" / name, array)
    assert words in pleat("verify", tanh_model, "--test-data", tanh_model.parent, status=1)


def test_folders_without_data(tanh_model, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "output_0.pb" in pleat("verify", tanh_model, "--test-data", tmp_path / "empty", status=1)
    assert "no such folder" in pleat("verify", tanh_model, "--test-data", tmp_path / "no", status=1)


# ---- Kernels

KERNEL = """
from pleat.script import tir as T

@T.prim_func
def dense(a: T.handle, W: T.Buffer((19, 37), "float32"), bias: T.Buffer((37,), "float32"),
          c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (N, 19), "float32")
    C = T.match_buffer(c, (N, 37), "float32")
    product = T.alloc_buffer((N, 37), "float32")
    for i, j, k in T.grid(N, 37, 19):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                product[vi, vj] = T.float32(0)
            product[vi, vj] = product[vi, vj] + A[vi, vk] * W[vk, vj]
    for i, j in T.grid(N, 37):
        with T.block("bias"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(product[vi, vj] + bias[vj], T.float32(0))
"""


@pytest.fixture(name="dense_arguments")
def make_dense_arguments(tmp_path):
    """The inputs of `dense` as options, and its result."""
    random = np.random.default_rng(11)
    arrays = {name: np.float32(random.standard_normal(shape))
              for name, shape in (("A", (23, 19)), ("W", (19, 37)), ("bias", (37,)))}
    options = []
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
        options += ["--input", f"{name}={tmp_path / name}.npy"]
    return options, arrays, np.maximum(arrays["A"] @ arrays["W"] + arrays["bias"], 0)


@pytest.mark.parametrize("rows", ["23", "n"])
@pytest.mark.parametrize("level", ["avx512", "avx2", "baseline"])
def test_kernel_gives_what_numpy_gives(rows, level, dense_arguments, tmp_path):
    if not level_here(level):
        pytest.skip(f"no {level} here")
    options, _, expected = dense_arguments
    (tmp_path / "k.py").write_text(KERNEL.replace("N,", rows + ","))
    pleat("run", tmp_path / "k.py", *options, "-o", tmp_path / "out.npz", "--cpu", level)
    out = np.load(tmp_path / "out.npz")
    assert out.files == ["C"]
    np.testing.assert_allclose(out["C"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ending", ["so", "c"])
def test_compiled_kernel_can_be_called(ending, dense_arguments, tmp_path):
    _, arrays, expected = dense_arguments
    (tmp_path / "k.py").write_text(KERNEL.replace("N,", "23,"))
    pleat("compile", tmp_path / "k.py", "-o", tmp_path / f"dense.{ending}")
    if ending == "c":
        subprocess.check_call(["cc", "-O2", "-march=native", "-shared", "-fPIC",
                               tmp_path / "dense.c", "-o", tmp_path / "dense.so", "-lm"])
    library = ctypes.CDLL(str(tmp_path / "dense.so"))
    result = np.empty_like(expected)
    inputs = (ctypes.c_void_p * 3)(*[arrays[name].ctypes.data for name in ("A", "W", "bias")])
    outputs = (ctypes.c_void_p * 1)(result.ctypes.data)
    assert library.dense_run(inputs, outputs, None) == 0
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_profile_joins_equal_steps(tmp_path):
    """Steps of a loop that run one code are one row; the shares still add up."""
    weights = [numpy_helper.from_array(np.ones(s, np.float32), n)
               for n, s in (("w", (1, 20, 3)), ("r", (1, 20, 5)))]
    graph = helper.make_graph(
        [helper.make_node("LSTM", ["x", "w", "r"], ["y"], "cell", hidden_size=5)], "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [19, 1, 3])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], weights)
    path = tmp_path / "lstm.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
              path)
    text = pleat("run", path, "--fill", "random", "--profile", "--repeat", 20, "--trace",
                 tmp_path / "t.json")
    rows = [line for line in text.splitlines() if " us " in line and " % " in line and
            "latency" not in line]
    shares = [float(line.split(" us ")[1].split()[0]) for line in rows]
    steps = sum(int(re.search(r"×(\d+)", row)[1]) if "×" in row else 1 for row in rows[:-1])
    assert steps > 3 * 19 and len(rows) < steps / 2
    assert abs(sum(shares) - 100) < 0.1 * len(shares)
    assert max(shares[:-1]) > 1  # traced runs are not the ones that were profiled
    check_trace(tmp_path / "t.json", 20)


def test_profile_of_a_kernel():
    text = pleat("run", ROOT / "examples/kernels/matmul.py", "--fill", "random", "--profile")
    (kernel,) = json.loads(pleat("run", ROOT / "examples/kernels/matmul.py", "--fill", "random",
                                 "--profile", "--json"))["kernels"]
    assert kernel["name"] == "matmul" and kernel["ms"] > 0
    assert "  matmul " in text.split("around them")[0] and "a run of" in text


# ---- Traces


def check_trace(path, calls):
    """Chrome's trace events: on each thread, events hold one another or follow one another."""
    trace = json.loads(path.read_text())
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 and e["pid"] == 1 for e in events)
    named = {e["tid"] for e in trace["traceEvents"]
             if e["ph"] == "M" and e["name"] == "thread_name"}
    assert named == {e["tid"] for e in events}
    for thread in named:
        open_until = []
        for event in sorted((e for e in events if e["tid"] == thread),
                            key=lambda e: (e["ts"], -e["dur"])):
            end = event["ts"] + event["dur"]
            while open_until and open_until[-1] <= event["ts"] + 5e-4:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)
    assert [e["name"] for e in events if e["cat"] == "call"] == [
        f"call {i + 1}" for i in range(calls)]
    return events


def test_trace_of_a_model(tanh_model, tmp_path):
    pleat("run", tanh_model, "--fill", "random", "--repeat", 2, "--trace", tmp_path / "t.json")
    events = check_trace(tmp_path / "t.json", 2)  # beside those that are measured
    kernels = [e for e in events if e["cat"] == "kernel"]
    assert len(kernels) % 2 == 0 and sum(e["args"]["operations"] for e in kernels) == 2 * 42


def test_trace_of_a_kernel_on_two_threads(tmp_path):
    """Each call's pieces are all of its tasks, whichever thread ran them."""
    pleat("run", ROOT / "examples/kernels/matmul.py", "--fill", "random", "--repeat", 5,
          "--threads", 2, "--trace", tmp_path / "t.json")
    events = check_trace(tmp_path / "t.json", 5)
    calls = [e for e in events if e["cat"] == "call"]
    pieces = [e for e in events if e["cat"] == "tasks"]
    assert {e["tid"] for e in pieces} <= {0, 1}
    seen = [sorted((p["args"]["first"], p["args"]["tasks"]) for p in pieces
                   if c["ts"] - 1e-3 <= p["ts"] <= c["ts"] + c["dur"]) for c in calls]
    count = sum(tasks for _, tasks in seen[0])
    for ranges in seen:
        assert [i for first, tasks in ranges for i in range(first, first + tasks)] == list(
            range(count))


def test_trace_that_cannot_be_written(tanh_model, tmp_path):
    said = pleat("run", tanh_model, "--fill", "zero", "--trace", tmp_path / "no" / "t.json",
                 status=1)
    assert "t.json: error: cannot write" in said


# ---- Beside oneDNN


@pytest.mark.parametrize("operator", [
    "matmul 17x23x31",
    "conv2d 1x8x11x13 12x4x3x5 stride=2 pad=1 group=2 dilation=2",
    "conv2d 2x3x9x7 5x3x1x1",
])
def test_against_onednn(operator):
    """The results agree, or the command fails."""
    arguments = ["bench", "--op", operator, "--against", "dnnl", "--repeat", 5, "--threads", 1]
    if not ctypes.util.find_library("dnnl"):
        assert "oneDNN is not installed" in pleat(*arguments, status=1)
        return
    peer = json.loads(pleat(*arguments, "--json"))["against"]
    assert peer["name"].startswith("oneDNN") and peer["ratio"] > 0
    assert "of its time" in pleat(*arguments)


def test_against_what_is_not_there():
    assert "matmul" in pleat("bench", "--op", "softmax 5x7 axis=1", "--against", "dnnl", status=1)
    assert "make bench" in pleat("bench", "--op", "relu 5", "--against", "tvm", status=2)


def test_check_takes_free_sizes(tmp_path):
    model = helper.make_model(helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "free",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])]))
    onnx.save(model, tmp_path / "free.onnx")
    done = subprocess.run([PLEAT, "check", tmp_path / "free.onnx"], capture_output=True, text=True)
    assert done.returncode == 1 and "--dim n=1" in done.stderr
    done = subprocess.run([PLEAT, "check", tmp_path / "free.onnx", "--dim", "n=3"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

@pytest.mark.parametrize("shape", [[0, 5], [5, 0], [2, 0, 3], [17, 0, 64]])
def test_no_element_is_no_slow_path(tmp_path, shape):
    model = save_model(tmp_path / "empty.onnx", [
        helper.make_node("Add", ["x", "x"], ["a"]), helper.make_node("Softmax", ["a"], ["b"]),
        helper.make_node("Concat", ["b", "a"], ["y"], axis=0)],
        [value_info("x", shape)], [value_info("y", None)])
    text = pleat("run", model, "--fill", "random")
    assert "slow paths      none" in text and text.splitlines()[-1].split() == ["y", "[]"]


def test_check_looks_behind_free_sizes(tmp_path):
    """A part that depends on a size that is not given is checked with sizes that fit."""
    weights = [numpy_helper.from_array(np.zeros((2, 3, 100, 1), np.float32), "w")]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"]),  # needs 100 rows
             helper.make_node("Flatten", ["c"], ["y"])]
    shape = ["N", 3, "2*h", None]
    fits = save_model(tmp_path / "fits.onnx", nodes, [value_info("x", shape)],
                      [value_info("y", None)], weights)
    said = pleat("check", fits, status=1)
    assert said.count("error:") == 1 and "all is supported" in said
    given = said.split("note: with ")[1].split(" all is")[0].split()
    assert "supported" in pleat("check", fits, *given)
    nodes.append(helper.make_node("Cast", ["y"], ["z"], name="to_complex",
                                  to=TensorProto.COMPLEX64))
    refused = save_model(tmp_path / "refused.onnx", nodes, [value_info("x", shape)],
                         [value_info("z", None, TensorProto.COMPLEX64)], weights)
    said = pleat("check", refused, status=1)
    assert said.count("error:") == 2 and "node 'to_complex': Cast" in said
    assert "seen with --dim N=1" in said


def test_demo():
    """The script that `make run` starts."""
    done = subprocess.run([str(ROOT / "examples/digits/run.sh"), PLEAT], capture_output=True,
                          text=True, check=False, env=dict(os.environ, TERM="dumb"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "outputs         equal the interpreter's" in done.stdout
    assert "accuracy        99.4 %" in done.stdout
