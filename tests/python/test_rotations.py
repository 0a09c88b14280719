# SPDX-License-Identifier: Apache-2.0
"""Rotated tensors (a concatenation of two slices of one tensor) are read through an index that
wraps: no kernel rotates, and results are those of ONNX Runtime."""
import json
import subprocess

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import onnx  # noqa: E402
from test_models import EACH_LEVEL, PLEAT, Builder, check, level_here  # noqa: E402

INT_MAX = 2 ** 31 - 1


def part(b, x, axis, begin, end, step=1):
    return b("Slice", x, *(b.constant(np.array([v], np.int64)) for v in (begin, end, axis, step)))


def rotated(b, x, axis, by):
    return b("Concat", part(b, x, axis, by, INT_MAX), part(b, x, axis, 0, by), axis=axis)


def reshaped(b, x, *shape):
    return b("Reshape", x, b.constant(np.array(shape, np.int64)))


def windows(b, x, side, window, width):
    count = side // window
    y = b("Transpose", reshaped(b, x, 1, count, window, count, window, width), perm=[0, 1, 3, 2, 4, 5])
    return reshaped(b, y, count * count, window * window, width)


def unwindowed(b, x, side, window, width):
    count = side // window
    y = b("Transpose", reshaped(b, x, 1, count, count, window, window, width), perm=[0, 1, 3, 2, 4, 5])
    return reshaped(b, y, 1, side, side, width)


def shifted_product(side, window, width, by):
    """The shift, the windows and the way back of a Swin block around a product."""
    b = Builder(x=[1, side, side, width])
    y = rotated(b, rotated(b, b("Relu", "x"), 1, by), 2, by)
    y = b("MatMul", windows(b, y, side, window, width), b.weight(width, width))
    y = unwindowed(b, y, side, window, width)
    y = rotated(b, rotated(b, y, 1, side - by), 2, side - by)
    return b.model(b("Add", "x", y))


def kernels(model, path):
    onnx.save(model, path)
    done = subprocess.run([PLEAT, "plan", str(path), "--json"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)["kernels"]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 7, 19), (2, 2, 2), (3, 16, 32)])
def test_any_axis(shape, axis, tmp_path):
    """Rotations by each distance, before an elementwise operator, a sum and a softmax."""
    for by in {1, shape[axis] // 2, shape[axis] - 1}:
        for after in ("Relu", "Softmax", "ReduceSum"):
            b = Builder(x=list(shape))
            check(b.model(b(after, rotated(b, b("Abs", "x"), axis, by))), tmp_path)


@pytest.mark.parametrize("parts", [((2, 7), (0, 1)), ((2, 7), (1, 3)), ((0, 2), (2, 7)), ((2, 6), (0, 2)),
                                   ((2, 7), (0, 7)), ((3, 7), (0, 2))])
def test_no_rotations(parts, tmp_path):
    """Parts that overlap, leave elements out or are in order."""
    b = Builder(x=[7, 18])
    y = b("Concat", *(part(b, "x", 0, *ends) for ends in parts), axis=0)
    check(b.model(b("Relu", y)), tmp_path)


def test_rotations_of_different_tensors(tmp_path):
    b = Builder(x=[7, 18], z=[7, 18])
    y = b("Concat", part(b, "x", 0, 2, 7), part(b, "z", 0, 0, 2), axis=0)
    check(b.model(b("Relu", y)), tmp_path)


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("side, window, width, by", [(14, 7, 32, 3), (6, 3, 17, 1), (4, 2, 1, 1)])
def test_windows(side, window, width, by, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"the processor has no {level}")
    check(shifted_product(side, window, width, by), tmp_path, "--cpu", level)


def test_no_kernel_rotates(tmp_path):
    """Relu, one copy into windows, the product and the sum."""
    assert kernels(shifted_product(56, 7, 96, 3), tmp_path / "case.onnx") <= 4


def cost_of_products(tokens, tmp_path):
    """The predicted cycles of a multiply-add in 64 products whose lanes are 16 of the products."""
    b = Builder(q=[64, tokens, 32], k=[64, tokens, 32])
    model = b.model(b("MatMul", "q", b("Transpose", "k", perm=[0, 2, 1])))
    onnx.save(model, tmp_path / "case.onnx")
    layouts = [("--input-layout", "q"), ("--input-layout", "k"),
               ("--output-layout", model.graph.output[0].name)]
    options = [text for option, name in layouts for text in (option, f"{name}=ABC16a")]
    done = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx"), "--json", "--cpu", "avx512",
                           *options], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["cost"] / (64 * tokens * tokens * 32)


def test_cost_of_windows_innermost(tmp_path):
    """The keys of 16 windows of 49 tokens do not stay in the first cache, and are read for each
    query from the second one; those of 7 tokens stay."""
    assert cost_of_products(49, tmp_path) > 1.5 * cost_of_products(7, tmp_path)


def row_softmax(b, x, width):
    return b("Softmax", x, axis=-1)


def row_norm(b, x, width):
    return b("LayerNormalization", x, b.weight(width), b.weight(width), axis=-1)


def grouped_norm(b, x, width):
    """Rows of a half of the last axis."""
    y = reshaped(b, x, 1, -1, 2, width // 2)
    return reshaped(b, b("Softmax", y, axis=-1), 1, -1, width)


def column_softmax(b, x, width):
    return b("Softmax", x, axis=1)


GROUPS = {"softmax": row_softmax, "norm": row_norm, "halves": grouped_norm, "columns": column_softmax}


def group_then_windows(group, side, window, width, by, twice=False, columns=5):
    """Tokens in rows, a group along them, and a product that reads them in shifted windows."""
    b = Builder(x=[1, side * side, width])
    norm = GROUPS[group](b, b("Relu", "x"), width)
    y = reshaped(b, norm, 1, side, side, width)
    y = rotated(b, rotated(b, y, 1, by), 2, by) if by else y
    y = b("MatMul", windows(b, y, side, window, width), b.weight(width, columns))
    return b.model(y, norm) if twice else b.model(y)


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("group", GROUPS)
def test_rows_are_moved(group, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"the processor has no {level}")
    for i, sizes in enumerate([(14, 7, 32, 3), (6, 3, 18, 0), (6, 2, 34, 1), (4, 1, 16, 2), (5, 5, 2, 1)]):
        for twice in (False, True)[i > 2:]:
            check(group_then_windows(group, *sizes, twice), tmp_path, "--cpu", level)


@pytest.mark.parametrize("group", ["softmax", "norm"])
@pytest.mark.parametrize("by", [0, 3])
def test_no_kernel_moves_rows(group, by, tmp_path):
    """The group, which reads the Relu's operand, the product, and a rewrite of its panels."""
    assert kernels(group_then_windows(group, 28, 7, 96, by, columns=64), tmp_path / "case.onnx") <= 3
    stored = kernels(group_then_windows(group, 28, 7, 96, by, True, 64), tmp_path / "case.onnx")
    assert stored > 2
