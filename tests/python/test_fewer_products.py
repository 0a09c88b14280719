# SPDX-License-Identifier: Apache-2.0
"""Convolutions and products of matrices computed with fewer products by bilinear algorithms: results
stay those of ONNX Runtime, `exact` leaves them as they are, `plan` says where and at what cost."""
import json
import re
import subprocess

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from built import skip_sanitized  # noqa: E402
from test_models import EACH_LEVEL, PLEAT, Builder, check, level_here  # noqa: E402


def one(n, c, k, h, w, size=(3, 3), pads=(1, 1, 1, 1), op="Relu", **attributes):
    """A convolution with a bias and an operation behind it."""
    def build():
        b = Builder(x=[n, c, h, w])
        y = b("Conv", "x", b.weight(k, c, *size), b.weight(k), pads=list(pads), **attributes)
        return b.model(b(op, y))
    return build


def residual():
    b = Builder(x=[1, 48, 30, 29])
    a = b("Relu", b.conv("x", 48, 48))
    return b.model(b("Relu", b("Add", b.conv(b("Relu", b.conv(a, 48, 48)), 48, 48), a)))


def gated():
    """The result of a convolution is read twice."""
    b = Builder(x=[1, 64, 24, 24])
    y = b.conv("x", 64, 64)
    return b.model(b("Mul", y, b("Sigmoid", y)))


def line():
    b = Builder(x=[2, 64, 401])
    y = b("Conv", "x", b.weight(64, 64, 5), b.weight(64), pads=[2, 2])
    return b.model(b("Tanh", y))


def volume():
    b = Builder(x=[1, 32, 7, 14, 15])
    y = b("Conv", "x", b.weight(32, 32, 3, 3, 3), b.weight(32), pads=[1] * 6)
    return b.model(b("Relu", y))


def shuffled():
    """The result is written in a layout whose last axes are short."""
    b = Builder(x=[1, 64, 12, 16])
    y = b("Conv", "x", b.weight(256, 64, 3, 3), b.weight(256), pads=[1] * 4)
    return b.model(b("DepthToSpace", y, blocksize=2, mode="CRD"))


CASES = {"plain": one(1, 64, 64, 28, 28), "batch": one(3, 32, 48, 19, 23),
         "odd": one(1, 67, 53, 29, 31, pads=(0, 1, 2, 0)),
         "five": one(1, 40, 64, 26, 22, (5, 5), (2,) * 4),
         "row": one(1, 64, 64, 20, 44, (1, 7), (0, 3, 0, 3)),
         "wide": one(1, 64, 64, 28, 28, (3, 5)),
         "strides": one(1, 64, 64, 57, 28, strides=[2, 1]),
         "dilated": one(1, 64, 64, 30, 28, pads=(2, 1, 2, 1), dilations=[2, 1]),
         "residual": residual, "gated": gated, "line": line, "volume": volume,
         "shuffled": shuffled}


def matrix(*shape, columns=512, op="Relu"):
    """A product of matrices with a bias and an operation behind it."""
    def build():
        b = Builder(x=list(shape))
        return b.model(b(op, b("Add", b("MatMul", "x", b.weight(shape[-1], columns)),
                               b.weight(columns))))
    return build


def between_norms():
    """The first factor is computed, and the result is read by a sum with the first factor."""
    b = Builder(x=[199, 256])
    a = b("Tanh", "x")
    y = b("Add", b("MatMul", a, b.weight(256, 256)), a)
    return b.model(b("Softmax", y, axis=-1))


def heads():
    """The product of matrices is read as parts of its columns, which are moved."""
    b = Builder(x=[1, 150, 256])
    y = b("MatMul", "x", b.weight(256, 512))
    y = b("Reshape", y, b.constant([1, 150, 8, 64]))
    return b.model(b("Transpose", y, perm=[0, 2, 1, 3]))


def projection():
    """The terms are in two axes, heads and their columns."""
    b = Builder(x=[2, 8, 99, 32])
    y = b("Reshape", b("Transpose", "x", perm=[0, 2, 1, 3]), b.constant([2, 99, 256]))
    return b.model(b("Add", b("MatMul", y, b.weight(256, 512)), b.weight(512)))


BLOCKS = {"square": matrix(256, 512), "odd": matrix(197, 384, columns=768),
          "batch": matrix(4, 50, 256), "odd batch": matrix(3, 67, 256),
          "image": one(1, 256, 512, 14, 15, (1, 1), (0,) * 4),
          "two images": one(2, 256, 256, 11, 13, (1, 1), (0,) * 4, op="HardSwish"),
          "strided": one(1, 256, 512, 29, 27, (1, 1), (0,) * 4, strides=[2, 2]),
          "patches": one(1, 64, 256, 56, 58, (4, 4), (0,) * 4, strides=[4, 4]),
          "residual": between_norms, "heads": heads, "projection": projection}


def plan(path, *options):
    done = subprocess.run([PLEAT, "plan", str(path), "--json", *options], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("name", CASES)
def test_results(name, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"no {level} here")
    check(CASES[name](), tmp_path, "--cpu", level, "--threads", "2", tolerance=2e-5)
    # A window that moves along one axis alone saves less, and not enough for longer vectors.
    if level == ("baseline" if name in ("strides", "dilated") else "avx2"):
        assert plan(tmp_path / "case.onnx", "--cpu", level)["bilinear"]


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("name", BLOCKS)
def test_products_in_blocks(name, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"no {level} here")
    check(BLOCKS[name](), tmp_path, "--cpu", level, "--threads", "2", tolerance=2e-5)
    if level == "baseline":  # longer vectors save less
        (sum_,) = plan(tmp_path / "case.onnx", "--cpu", level)["bilinear"]
        assert not sum_["taps"] and sum_["bound"] == 6
        assert sum_["error"] <= 4 * sum_["direct_error"]
        assert sum_["cycles"] < sum_["direct_cycles"]
        assert sum_["weight_bytes"] == 1.75 * sum_["direct_weight_bytes"]


@pytest.mark.parametrize("rows", [196, 197])
def test_blocks_are_walked_along_memory(rows, tmp_path):
    """The innermost loop steps from one vector of a row to the next, also with a row left over."""
    onnx.save(matrix(rows, 384, columns=768)(), tmp_path / "case.onnx")
    arguments = ["--cpu", "avx2", "--no-cache", "--print-ir-after", "promote_registers"]
    done = subprocess.run([PLEAT, "compile", str(tmp_path / "case.onnx"), *arguments, "-o",
                           str(tmp_path / "case.o")], check=True, capture_output=True, text=True)
    programs = (done.stdout + done.stderr).split("@T.prim_func")[1:]
    assert len(programs) == 3
    for program in programs[0], programs[2]:
        inner = re.findall(r"for (\w+) in ", program)[-1]
        steps = set(re.findall(rf"\b{inner}(?: \* (\d+))?", program.split(f"for {inner} in")[-1]))
        assert steps == {"8"}


def test_few_rows_stay_direct(tmp_path):
    onnx.save(matrix(64, 768, columns=768)(), tmp_path / "case.onnx")
    assert not plan(tmp_path / "case.onnx")["bilinear"]
    onnx.save(matrix(256, 768, columns=762)(), tmp_path / "case.onnx")
    assert not plan(tmp_path / "case.onnx")["bilinear"]


def unit_rows(b, y, least):
    norm = b("Clip", b("ReduceL2", y, axes=[-1], keepdims=1), b.constant(np.float32(least)))
    return b("Div", y, norm)


def rows_of_padding(readers):
    """Some rows of the first factor are 0, as those of padding are."""
    b = Builder(x=[100, 256])
    y = b("MatMul", b("Pad", "x", b.constant([0, 0, 97, 0])), b.weight(256, 512))
    return b.model(readers(b, y))


READERS = {
    "unit rows": (False, lambda b, y: unit_rows(b, y, 1e-12)),
    "bias with a zero": (False, lambda b, y: unit_rows(
        b, b("Add", y, b.constant(np.float32([0] + [1] * 511))), 1e-12)),
    "through a product": (False, lambda b, y: unit_rows(
        b, b("MatMul", b("Relu", y), b.weight(512, 16)), 1e-12)),
    "is it 0": (False, lambda b, y: b("Cast", b("Equal", y, b.constant(np.float32(0))), to=1)),
    "logarithm": (False, lambda b, y: b("Log", b("Add", b("ReduceL1", y, axes=[1]),
                                               b.constant(np.float32(1e-9))))),
    "large least norm": (True, lambda b, y: unit_rows(b, y, 0.01)),
    "bias": (True, lambda b, y: unit_rows(b, b("Add", y, b.weight(512)), 1e-12)),
    "residual": (True, lambda b, y: unit_rows(
        b, b("Add", y, b("Concat", b("Tile", "x", b.constant([1, 2])), b.weight(97, 512), axis=0)),
        1e-12)),
    "softmax": (True, lambda b, y: b("Softmax", y, axis=-1)),
}


@pytest.mark.parametrize("reader", READERS)
def test_where_sums_are_zero(reader, tmp_path):
    """A row whose exact results are 0 stays 0 where a reader would make a small error large."""
    in_blocks, readers = READERS[reader]
    check(rows_of_padding(readers), tmp_path, "--cpu", "baseline", tolerance=2e-5)
    assert bool(plan(tmp_path / "case.onnx", "--cpu", "baseline")["bilinear"]) == in_blocks


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "odd", "gated"])
def test_verify(name, tmp_path):
    onnx.save(CASES[name](), tmp_path / "case.onnx")
    done = subprocess.run([PLEAT, "verify", str(tmp_path / "case.onnx"), "--cpu", "baseline"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "agrees with the interpreter" in done.stdout, done.stdout


def test_exact_is_the_direct_sum(tmp_path):
    build = one(1, 64, 64, 28, 28)
    fast = check(build(), tmp_path)
    exact = check(build(), tmp_path, "--accuracy", "exact", tolerance=1e-6)
    path = tmp_path / "case.onnx"
    assert not plan(path, "--accuracy", "exact")["bilinear"]
    assert not plan(path, "--policy", "none")["bilinear"]
    assert not plan(path, "--desired-layout", "Conv=NHWC")["bilinear"]
    assert not plan(path, "--accuracy", "1e-9")["bilinear"]
    onnx.save(matrix(256, 768, columns=768)(), path)
    assert plan(path)["bilinear"] and not plan(path, "--accuracy", "exact")["bilinear"]
    assert not plan(path, "--accuracy", "1e-9")["bilinear"]
    assert any((fast[name] != exact[name]).any() for name in fast)


def test_plan_says_what_it_costs(tmp_path):
    onnx.save(one(1, 64, 64, 28, 28)(), tmp_path / "case.onnx")
    (sum_,) = plan(tmp_path / "case.onnx")["bilinear"]
    assert sum_["taps"] == [3, 3] and sum_["outputs"][0] in (2, 3, 4)
    assert sum_["cycles"] < 0.9 * sum_["direct_cycles"]
    assert 0 < sum_["direct_error"] < sum_["bound"] * sum_["direct_error"]
    assert sum_["error"] <= 4 * sum_["direct_error"]
    text = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx")], check=True,
                          capture_output=True, text=True).stdout
    assert "fewer products: 1 sum in" in text and "for windows of 3x3" in text
    done = [subprocess.run([PLEAT, "run", str(tmp_path / "case.onnx"), "--fill", "random", "--profile", "--json", *exact],
                           check=True, capture_output=True, text=True).stdout
            for exact in ([], ["--accuracy", "exact"])]
    fewer, all_ = (sum(k["gflops"] * k["ms"] for k in json.loads(text)["kernels"]) for text in done)
    assert fewer < 0.8 * all_


def test_weights_of_the_caller_stay_direct(tmp_path):
    """Weights that are inputs are not transformed at each run."""
    b = Builder(x=[1, 64, 28, 28], w=[64, 64, 3, 3])
    check(b.model(b("Conv", "x", "w", pads=[1] * 4)), tmp_path)
    assert not plan(tmp_path / "case.onnx")["bilinear"]


def test_constant_images_are_computed_while_compiling(tmp_path):
    """The motion of an optical flow is 0 at first: its convolution is a constant."""
    b = Builder(x=[1, 64, 28, 28])
    y = b("Conv", b.weight(1, 64, 28, 28), b.weight(64, 64, 3, 3), pads=[1] * 4)
    check(b.model(b("Add", b("Conv", "x", b.weight(64, 64, 3, 3), pads=[1] * 4), y)), tmp_path)
    assert len(plan(tmp_path / "case.onnx")["bilinear"]) == 1


@pytest.mark.parametrize("text", ["best", "0", "-1e-6", "1", "1e-6x", ""])
def test_unknown_accuracy(text, tmp_path):
    onnx.save(one(1, 3, 4, 5, 5)(), tmp_path / "case.onnx")
    done = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx"), "--accuracy", text],
                          capture_output=True, text=True, check=False)
    assert done.returncode and f"no accuracy '{text}'" in done.stderr


def test_from_python(tmp_path):
    pytest.importorskip("cffi")
    skip_sanitized()
    import pleat
    onnx.save(one(1, 64, 64, 28, 28)(), tmp_path / "case.onnx")
    path = str(tmp_path / "case.onnx")
    assert pleat.plan(path)["bilinear"] and not pleat.plan(path, accuracy="exact")["bilinear"]
    assert not pleat.plan(path, quick=True)["bilinear"]
    x = np.random.default_rng(1).standard_normal((1, 64, 28, 28)).astype(np.float32)
    want = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    for accuracy in (None, "exact", 1e-6):
        model = pleat.compile(path, accuracy=accuracy, cache=False)
        np.testing.assert_allclose(model(x), want, rtol=2e-5, atol=2e-5 * np.abs(want).max())
