# SPDX-License-Identifier: Apache-2.0
"""Operators over windows, resizing, sampling, products by equation, updates in order, and float16 on
random odd shapes: `pleat run` gives what ONNX Runtime gives, or refuses what it refuses."""
import os
import pathlib
import re
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))
ort.set_default_logger_severity(4)


class Case:
    """One node; `known` inputs are initializers, None is an absent one."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.inputs, self.constants, self.attributes = {}, set(), {}
        self.outputs, self.opset = 1, 21

    def tensor(self, name, *shape, known=False, low=-2.0, high=2.0):
        values = self.random.uniform(low, high, shape).astype(np.float32)
        return self.put(name, values, known)

    def put(self, name, values, known=False):
        self.inputs[name] = values
        if known:
            self.constants.add(name)
        return values

    def some(self, low, high, count):
        return [int(v) for v in self.random.integers(low, high, count)]

    def one_of(self, *choices):
        return choices[self.random.integers(len(choices))]

    def model(self, op):
        names = [name if value is not None else "" for name, value in self.inputs.items()]
        given = {n: v for n, v in self.inputs.items() if v is not None}
        node = helper.make_node(op, names, [f"y{i}" for i in range(self.outputs)], "node",
                                **self.attributes)
        inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                  for n, v in given.items() if n not in self.constants]
        constants = [numpy_helper.from_array(v, n) for n, v in given.items() if n in self.constants]
        results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(self.outputs)]
        graph = helper.make_graph([node], "case", inputs, results, constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)],
                                 ir_version=8)


def conv_transpose(case):
    space, groups = case.one_of(1, 2, 3), case.one_of(1, 2)
    case.tensor("x", 2, 3 * groups, *case.some(1, 7, space))
    case.tensor("w", 3 * groups, 5, *case.some(1, 5, space), known=True)
    strides, dilations = case.some(1, 5, space), case.some(1, 4, space)
    more = [int(case.random.integers(max(s, d))) for s, d in zip(strides, dilations)]
    case.attributes = dict(group=groups, strides=strides, dilations=dilations, output_padding=more)
    return "ConvTranspose"


def grouped_conv(case):
    space, groups = case.one_of(1, 2, 3), case.one_of(2, 3, 5)
    inside, outside = case.one_of(1, 3, 8, 16, 20), case.one_of(1, 2, 4, 8, 16, 17, 32)
    case.tensor("x", 2, inside * groups, *case.some(4, 11, space))
    case.tensor("w", outside * groups, inside, *case.some(1, 4, space), known=True)
    pads = [int(p) for p in case.random.integers(0, 2, 2 * space)]
    case.attributes = dict(group=groups, strides=case.some(1, 3, space), pads=pads)
    return "Conv"


def max_pool(case):
    space = case.one_of(1, 2, 3)
    case.tensor("x", 1, case.one_of(1, 3, 17), *case.some(6, 11, space))
    kernel = case.some(1, 4, space)
    pads = [int(case.random.integers(k)) for k in kernel + kernel]
    case.attributes = dict(kernel_shape=kernel, strides=case.some(1, 4, space), pads=pads,
                           dilations=case.some(1, 3, space), ceil_mode=case.one_of(0, 1))
    case.outputs = 2
    return "MaxPool"


def strided_pool(case):
    case.tensor("x", 1, case.one_of(1, 3), 9, case.one_of(17, 31, 32, 48, 64, 112))
    kernel, pads = case.some(1, 4, 2), case.one_of([0] * 4, [0, 0, 1, 1])
    case.attributes = dict(kernel_shape=[k + 1 for k in kernel], strides=[1, case.one_of(2, 3, 4)],
                           pads=pads)
    return case.one_of("MaxPool", "AveragePool")


def resize(case):
    case.opset = 19
    mode = case.one_of("nearest", "linear", "cubic")
    case.tensor("x", 1, case.one_of(1, 3, 16), *case.some(2, 9, 2))
    case.put("roi", None)
    case.put("scales", None)
    case.put("sizes", np.array(case.some(1, 14, 2), np.int64), known=True)
    case.attributes = dict(mode=mode, axes=[2, 3], coordinate_transformation_mode=case.one_of(
        "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"))
    if mode != "nearest":
        case.attributes["antialias"] = case.one_of(0, 1)
    return "Resize"


def grid_sample(case):
    case.opset = 20
    case.tensor("x", 2, case.one_of(1, 3, 17), *case.some(2, 8, 2))
    case.tensor("grid", 2, *case.some(1, 7, 2), 2, low=-1.5, high=1.5)
    case.attributes = dict(mode=case.one_of("nearest", "linear", "cubic"),
                           padding_mode=case.one_of("zeros", "border", "reflection"),
                           align_corners=case.one_of(0, 1))
    return "GridSample"


def roi_align(case):
    case.opset = 16
    case.tensor("x", 2, case.one_of(1, 3, 17), 9, 7)
    begin = case.random.uniform(-1, 5, (3, 2))
    rois = np.concatenate([begin, begin + case.random.uniform(0, 8, (3, 2))], 1)
    case.put("rois", rois.astype(np.float32))
    case.put("images", case.random.integers(0, 2, 3))
    case.attributes = dict(mode=case.one_of("avg", "max"), output_height=case.one_of(1, 3),
                           output_width=case.one_of(1, 4), sampling_ratio=case.one_of(1, 2),
                           coordinate_transformation_mode=case.one_of("half_pixel",
                                                                      "output_half_pixel"))
    return "RoiAlign"


def deform_conv(case):
    case.opset = 19
    groups, offsets, out = case.one_of(1, 2), case.one_of(1, 2), case.some(3, 8, 2)
    kernel, channels = case.some(1, 4, 2), case.one_of(2, 6, 16)
    taps = offsets * kernel[0] * kernel[1]
    case.tensor("x", 2, channels, *(o + k - 1 for o, k in zip(out, kernel)))
    case.tensor("w", case.one_of(2, 16, 34), channels // groups, *kernel, known=True)
    case.tensor("offset", 2, 2 * taps, *out)
    case.put("bias", None)
    case.tensor("mask", 2, taps, *out)
    case.attributes = dict(group=groups, offset_group=offsets, kernel_shape=kernel)
    return "DeformConv"


def einsum(case):
    equation = case.one_of("ij,jk->ik", "bhid,bhjd->bhij", "i,j->ij", "...ij,...jk->...ik", "ii->i",
                           "bij,jk,kl->bil", "i,ij,j->", "bn,anm,bm->ba", "ij,kj")
    extents = {letter: int(case.random.integers(1, 18)) for letter in "abdhijklmn"}
    for i, term in enumerate(equation.split("->")[0].split(",")):
        dots = [2, 3] if "..." in term else []
        case.tensor(f"x{i}", *dots, *(extents[letter] for letter in term.replace("...", "")))
    case.attributes = dict(equation=equation)
    return "Einsum"


def pad(case):
    case.opset = 19
    case.tensor("x", *case.some(5, 8, 3))
    case.put("pads", np.array(case.some(-2, 3, 4), np.int64), known=True)
    case.put("value", None)
    case.put("axes", np.array([2, 0], np.int64), known=True)
    case.attributes = dict(mode=case.one_of("constant", "edge", "reflect", "wrap"))
    return "Pad"


def cumsum(case):
    rank = case.one_of(1, 2, 3)
    case.tensor("x", *case.some(1, 8, rank - 1), case.one_of(1, 7, 16, 35, 300, 512))
    case.put("axis", np.array(case.random.integers(rank)), known=True)
    case.attributes = dict(exclusive=case.one_of(0, 1), reverse=case.one_of(0, 1))
    return "CumSum"


def scatter(case):
    case.opset = 18
    rows, columns = case.one_of(1, 5, 40), case.one_of(1, 7, 16, 35, 300, 512)
    case.tensor("x", rows, 3, columns)
    by_row, count = case.one_of(True, False), case.one_of(1, 9, 50)
    case.attributes = dict(reduction=case.one_of("add", "mul", "max", "min"))
    if by_row:
        case.put("at", case.random.integers(-rows, rows, (count, 1)))
        case.tensor("updates", count, 3, columns)
        return "ScatterND"
    axis = case.one_of(0, 2)
    shape = (count, 3, columns) if axis == 0 else (rows, 3, count)
    extent = (rows, 3, columns)[axis]
    case.put("at", case.random.integers(-extent, extent, shape))
    case.tensor("updates", *shape)
    case.attributes["axis"] = axis
    return "ScatterElements"


def topk(case):
    shape, axis = [*case.some(1, 4, 2), case.one_of(1, 7, 40, 130, 500, 1300)], case.one_of(0, 1, 2)
    shape[axis], shape[2] = shape[2], shape[axis]
    kind = case.one_of(np.float32, np.float32, np.int32, np.float16, np.int64, np.float64)
    few = case.one_of(3, 1000)  # values, so that many are equal
    values = case.random.integers(-few, few, shape).astype(kind)
    case.put("x", values if few < 9 else (values / kind(7)).astype(kind))
    case.put("k", np.array([1 + case.random.integers(shape[axis])]), known=True)
    if case.one_of(True, False):
        case.inputs["k"][0] = max(1, shape[axis] // case.one_of(10, 60))
    case.attributes = dict(axis=axis, largest=case.one_of(0, 1))
    case.outputs = 2
    return "TopK"


def half(case):
    values = case.random.standard_normal((3, case.one_of(1, 7, 33, 64))) * 3
    case.put("x", values.astype(np.float16))
    return case.one_of("Sigmoid", "Tanh", "LeakyRelu", "Erf", "Exp", "Elu", "Softplus", "Relu")


FAMILIES = [conv_transpose, grouped_conv, max_pool, strided_pool, resize, grid_sample,
            roi_align, deform_conv, einsum, pad, cumsum, scatter, topk, half]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_random_shapes(family, seed, tmp_path):
    case = Case(seed)
    model = case.model(family(case))
    given = {n: v for n, v in case.inputs.items() if v is not None and n not in case.constants}
    try:
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected = session.run(None, given)
    except Exception as error:  # the judge does not take it
        pytest.skip(str(error).splitlines()[0])
    onnx.save(model, tmp_path / "case.onnx")
    command = [PLEAT, "run", tmp_path / "case.onnx", "-o", tmp_path / "out.npz"]
    for name, value in given.items():
        np.save(tmp_path / f"{name}.npy", value)
        command += ["-i", f"{name}={tmp_path / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    results = np.load(tmp_path / "out.npz")
    for i, value in enumerate(expected):
        assert results[f"y{i}"].shape == value.shape, case.attributes
        np.testing.assert_allclose(results[f"y{i}"], value, rtol=1e-3, atol=1e-3,
                                   err_msg=str(case.attributes))


def reduction_of(path, channels, filters, size, **attributes):
    """The kernel of a transposed convolution with a stride of 2, as it is before code generation."""
    case = Case(0)
    case.tensor("x", 1, channels, 56, 56)
    case.tensor("w", channels, filters, size, size, known=True)
    case.attributes = {"strides": [2, 2], **attributes}
    onnx.save(case.model("ConvTranspose"), path / "case.onnx")
    command = [PLEAT, "compile", str(path / "case.onnx"), "--cpu", "avx2", "--no-cache",
               "--print-ir-after", "promote_registers", "-o", str(path / "case.o")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (program,) = [p for p in (done.stdout + done.stderr).split("@T.prim_func") if "for rc" in p]
    return program


def test_weights_of_inner_rows_stay_in_registers(tmp_path):
    """Where weights differ between the inner rows of a tile and outer rows use them again, they and
    the accumulators fit the registers together."""
    program = reduction_of(tmp_path, 64, 32, 2)
    body = re.findall(r"(\w+)\[0\] = \1\[0\] \+ T.Broadcast\((.*), 8\) \* (\w+\[.*\])",
                      program.split("for rc ")[1])
    accumulators, weights = {a for a, _, _ in body}, [w for _, _, w in body]
    again = {w for w in weights if weights.count(w) > 1}
    assert len(body) > 4 and len(accumulators) + len(again) < 16


def test_few_filters_are_summed_along_the_columns(tmp_path):
    """Three filters would fill a part of a vector, so vectors are of columns. At the borders of the
    57 columns, lanes are left out, and no accumulator is in memory."""
    program = reduction_of(tmp_path, 64, 3, 4, pads=[1] * 4)
    accumulators = re.findall(r"= T.decl_buffer\(\((\d+),\), (\S+), scope=\"local\"\)", program)
    assert {size for size, _ in accumulators} == {"1"}
    assert sum(kind == '"float32x8"' for _, kind in accumulators) >= 12


@pytest.mark.parametrize("kernel, filters, size, batch, groups", [
    (3, 3, (5, 33), 2, 1), (5, 1, (7, 64), 1, 1), (3, 4, (9, 17), 1, 1), (7, 2, (8, 40), 1, 1),
    (3, 6, (3, 8), 3, 1), (3, 20, (6, 56), 1, 5), (3, 9, (4, 31), 2, 3)])
def test_convolutions_to_few_filters(kernel, filters, size, batch, groups, tmp_path):
    """Windows along vectors of columns: panels at borders and between them, rows that are no
    multiple of a vector, images in turn, which run as one parallel loop, and few filters for each
    group of channels."""
    case = Case(kernel)
    x = case.tensor("x", batch, 15, *size)
    case.tensor("w", filters, 15 // groups, kernel, kernel, known=True)
    case.attributes = {"pads": [kernel // 2] * 4, "group": groups}
    model = case.model("Conv")
    onnx.save(model, tmp_path / "case.onnx")
    np.save(tmp_path / "x.npy", x)
    expected = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    subprocess.run([PLEAT, "run", tmp_path / "case.onnx", "--keep-layout", "--accuracy", "exact", "-i",
                    f"x={tmp_path}/x.npy", "-o", tmp_path / "out.npz"], check=True, timeout=120)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y0"], expected, rtol=1e-4, atol=1e-4)
