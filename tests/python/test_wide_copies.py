# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels with little arithmetic load, compute and store a cache line at a time, where vectors
of the machine are shorter, and concatenations do so on both sides of the line in which pieces meet."""
import re

import numpy as np
import pytest

pytest.importorskip("onnx")
from built import skip_sanitized  # noqa: E402
from command import level_here, make_model, pleat, save_model, value_info  # noqa: E402
from onnx import helper  # noqa: E402

ROWS, PIECES = (7, 64), (13, 29)
NODES = {"relu": ([("Relu", ["x"])], [ROWS], ROWS),
         "uneven": ([("Abs", ["x"])], [(5, 37)], (5, 37)),
         "column": ([("Add", ["x", "z"])], [(11, 41), (11, 1)], (11, 41)),
         "pieces": ([("Concat", ["x", "z"])], [PIECES, (13, 30)], (13, 59)),
         "exp": ([("Exp", ["x"])], [ROWS], ROWS)}


def parts_of(name):
    nodes, shapes, result = NODES[name]
    (kind, names), = nodes
    attributes = {"axis": 1} if kind == "Concat" else {}
    inputs = [value_info(n, shape) for n, shape in zip("xz", shapes)]
    return [helper.make_node(kind, names, ["y"], **attributes)], inputs, [value_info("y", result)]


def lowered(tmp_path, name, cpu):
    path = save_model(tmp_path / f"{name}.onnx", *parts_of(name))
    pleat("compile", path, "-o", tmp_path / "code.py", "--lowered", "--threads", 1, "--cpu", cpu)
    return (tmp_path / "code.py").read_text()


def widths(tmp_path, name, cpu):
    """The lengths of the vectors that the kernel stores in a loop."""
    return set(re.findall(r"y_1\[\w+:\w+ \+ T.int64\((\d+)\)\] =", lowered(tmp_path, name, cpu)))


def test_lanes(tmp_path):
    assert widths(tmp_path, "relu", "avx2") == {"16"}
    assert widths(tmp_path, "relu", "sse2") == {"16"}
    assert widths(tmp_path, "relu", "avx512") == {"16"}
    assert widths(tmp_path, "exp", "avx2") == {"8"}
    assert widths(tmp_path, "pieces", "avx2") == {"8"}
    assert "T.if_then_else" not in lowered(tmp_path, "pieces", "avx2")


def test_values():
    skip_sanitized()
    pleat_package = pytest.importorskip("pleat")
    random = np.random.default_rng(0)
    for cpu in filter(level_here, ["avx512", "avx2", "sse2"]):
        for name, (nodes, shapes, _) in NODES.items():
            x, *z = (random.standard_normal(shape, dtype=np.float32) for shape in shapes)
            expected = {"relu": lambda: np.maximum(x, 0), "uneven": lambda: np.abs(x),
                        "column": lambda: x + z[0], "pieces": lambda: np.concatenate([x, z[0]], 1), "exp": lambda: np.exp(x)}[name]()
            model = pleat_package.compile(make_model(*parts_of(name)), cpu=cpu, threads=1)
            y, = model.run([x, *z])
            np.testing.assert_allclose(y, expected, rtol=1e-6, err_msg=f"{name} {cpu}")
