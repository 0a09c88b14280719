# SPDX-License-Identifier: Apache-2.0
"""Weights of more than 2 GB beside a model: they are mapped, not read."""
import os
import pathlib
import subprocess
import sys

import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper  # noqa: E402

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


def run(arguments):
    """The output of a command, and the most memory that it had, in bytes."""
    script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], check=True,
                          capture_output=True, text=True, timeout=60)
    output, _, peak = done.stdout.strip().rpartition("\n")
    return output, int(peak) * 1024
