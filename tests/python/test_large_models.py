# SPDX-License-Identifier: Apache-2.0
"""Large weights: those beside a model are mapped, and several threads pack them. Tensors with many
readers, for which not all sets of copies are looked at."""
import itertools
import json
import os
import pathlib
import subprocess
import sys

import pytest

onnx = pytest.importorskip("onnx")
from command import pleat, save_model, value_info  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402
from test_models import Builder, check  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = str(pathlib.Path(os.environ.get("PLEAT", ROOT / "build" / "pleat")).resolve())
ROWS, COLUMNS = 700_000, 1024  # of floats: 2.7 GiB
FEW_MEGABYTES = 200


def large_model(folder):
    table = TensorProto(name="table", data_type=TensorProto.FLOAT, dims=[ROWS, COLUMNS],
                        data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "table.bin", "offset": 0, "length": ROWS * COLUMNS * 4}.items():
        table.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "i"], ["y"], "lookup")], "large",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, COLUMNS])], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "large.onnx").write_bytes(model.SerializeToString())
    with open(folder / "table.bin", "wb") as file:
        file.truncate(ROWS * COLUMNS * 4)  # a hole: it takes no room on the disk
    return folder / "large.onnx"


@pytest.mark.parametrize("command", ["check", "inspect", "plan"])
def test_weights_stay_in_the_file(tmp_path, command):
    model = large_model(tmp_path)
    output, peak = run([PLEAT, command, model])
    assert "lookup" in output or "supported" in output or "kernel" in output
    assert peak < FEW_MEGABYTES << 20, peak


def test_weights_are_packed_in_threads(tmp_path):
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(0)
    shapes = [(300, 4099), (4099, 1031), (1031, 40)]  # 22 MB
    weights = [random.standard_normal(shape).astype("float32") for shape in shapes]
    nodes = [helper.make_node("MatMul", ["x" if i == 0 else f"y{i - 1}", f"w{i}"], [f"y{i}"])
             for i in range(3)]
    model = save_model(tmp_path / "products.onnx", nodes, [value_info("x", [2, 300])],
                       [value_info("y2", [2, 40])],
                       [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    x = random.standard_normal((2, 300)).astype("float32")
    numpy.save(tmp_path / "x.npy", x)
    pleat("run", model, "--input", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "y.npz")
    y, expected = numpy.load(tmp_path / "y.npz")["y2"], x.astype("float64")
    for weight in weights:
        expected = expected @ weight
    error = numpy.abs(y - expected).max()
    assert error < 1e-5 * numpy.abs(expected).max()


def run(arguments):
    """The output of a command, and the most memory that it had, in bytes."""
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], check=True,
                          capture_output=True, text=True, timeout=60)
    output, _, peak = done.stdout.strip().rpartition("\n")
    return output, int(peak) * 1024


def many_readers():
    """Four tensors that eight products read, each in another order of the axes."""
    shape, y = [3, 5, 4, 6], "x"
    b, outputs = Builder(x=shape), []
    for i in range(4):
        y = b("Tanh", y)
        for perm in itertools.islice(itertools.permutations(range(4)), i, 24, 3):
            z = b("MatMul", b("Transpose", y, perm=list(perm)), b.weight(shape[perm[3]], 11))
            outputs.append(b("ReduceSum", b("Softmax", z, axis=1), b.constant([0, 1, 2, 3])))
    return b.model(*outputs)


def test_tensors_with_many_readers(tmp_path):
    check(many_readers(), tmp_path)
    done = subprocess.run([PLEAT, "plan", tmp_path / "case.onnx", "--json"], check=True,
                          capture_output=True, text=True)
    plan = json.loads(done.stdout)
    assert plan["layouts_left_out"] > 0 and not plan["optimal"]
    assert plan["cost"] <= min(plan["cost_forward"], plan["cost_backward"])
