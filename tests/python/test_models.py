# SPDX-License-Identifier: Apache-2.0
"""Small models that broke other tools: `pleat run` gives what ONNX Runtime gives, at every level of
the processor, and the same bytes each time."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from command import level_here  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLEAT = os.environ.get("PLEAT", str(ROOT / "build" / "pleat"))
LEVELS = ["avx512", "avx2", "baseline", "scalar"]


# Sanitized runs try the first that the machine has.
FIRST_LEVEL = next(filter(level_here, LEVELS))
EACH_LEVEL = [level if level == FIRST_LEVEL else pytest.param(level, marks=pytest.mark.slow)
              for level in LEVELS]


class Builder:
    """An ONNX graph of float32 tensors, grown node by node; weights are random but fixed."""

    def __init__(self, **inputs):
        self.random = np.random.default_rng(5)
        self.nodes, self.weights, self.count = [], [], 0
        self.inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                       for name, shape in inputs.items()]

    def weight(self, *shape):
        self.count += 1
        values = self.random.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5
        values = np.asarray(values, np.float32)
        self.weights.append(onnx.numpy_helper.from_array(values, f"w{self.count}"))
        return f"w{self.count}"

    def constant(self, values):
        self.count += 1
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(values), f"c{self.count}"))
        return f"c{self.count}"

    def __call__(self, op, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"t{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"n{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def conv(self, x, c, k, size=3, **attributes):
        return self("Conv", x, self.weight(k, c // attributes.get("group", 1), size, size),
                    self.weight(k), pads=[size // 2] * 4, **attributes)

    def model(self, *outputs):
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "case", self.inputs, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def all_ones():
    b = Builder(x=[1, 1, 1, 1])
    return b.model(b("Relu", b.conv("x", 1, 1, 1)))


def one_channel():
    b = Builder(x=[2, 1, 7, 5])
    return b.model(b.conv(b.conv("x", 1, 1), 1, 3))


def long_windows():
    """Windows that are longer than what they read, which no output reads as a whole."""
    b = Builder(x=[1, 48, 11])
    y = b("Conv", "x", b.weight(48, 24, 32), b.weight(48), pads=[16, 17], group=2)
    z = b("Conv", "x", b.weight(40, 48, 13), pads=[12, 19], strides=[3], dilations=[2])
    image = b("Reshape", "x", b.constant([1, 16, 3, 11]))
    both = b("Conv", image, b.weight(24, 16, 5, 23), pads=[3, 22, 2, 21])
    return b.model(b("Relu", y), z, both)


def grouped_products():
    """Channels in groups at each place, with the rows of a group far apart."""
    b = Builder(x=[1, 29, 192])
    y = b("Conv", b("Transpose", "x", perm=[0, 2, 1]), b.weight(52, 48, 1), b.weight(52), group=4)
    return b.model(b("Relu", y))


def rows_cut_elsewhere():
    """Products whose rows are reshaped into rows of another length, which does not divide theirs."""
    b = Builder(x=[1, 7, 24])
    y = b("Add", b("MatMul", "x", b.weight(24, 54)), b.weight(54))
    return b.model(b("Reshape", y, b.constant([42, 9, 1])), b("Reshape", y, b.constant([3, 18, 7])))


def one_pixel():
    b = Builder(x=[3, 13, 1, 1])
    return b.model(b.conv(b("Relu", b.conv("x", 13, 9)), 9, 17, 1))


def coprime():
    b = Builder(x=[1, 7, 11, 13])
    return b.model(b.conv("x", 7, 17, 3, strides=[2, 3]))


def odd_channels(c):
    def build():
        b = Builder(x=[1, 3, 10, 9])
        y = b("Relu", b.conv("x", 3, c))
        return b.model(b("Add", b.conv(y, c, c), y))
    return build


def transposed_between():
    b = Builder(x=[1, 5, 6, 7])
    y = b("Transpose", b.conv("x", 5, 20), perm=[0, 1, 3, 2])
    return b.model(b.conv(y, 20, 9))


def mean_then_conv():
    b = Builder(x=[1, 6, 7, 9])
    y = b("ReduceMean", b.conv("x", 6, 18), axes=[3], keepdims=1)
    return b.model(b.conv(y, 18, 5, 1))


def standardised_weights():
    """Weights computed from constants with more work than the interpreter is given."""
    b = Builder(x=[3, 2053])
    w = b.weight(2053, 2053)
    centred = b("Sub", w, b("ReduceMean", w, axes=[0], keepdims=1))
    spread = b("ReduceMean", b("Mul", centred, centred), axes=[0], keepdims=1)
    w = b("Div", centred, b("Sqrt", b("Add", spread, b.constant(np.float32(1e-5)))))
    w = b("Mul", b("Transpose", w, perm=[1, 0]), b.weight(2053))
    return b.model(b("MatMul", "x", w), b("ReduceMax", w, axes=[1], keepdims=0))


def squeeze_then_dense():
    b = Builder(x=[1, 6, 4, 3])
    y = b("GlobalAveragePool", b.conv("x", 6, 21))
    y = b("Squeeze", y, b.constant(np.array([2, 3], np.int64)))
    return b.model(b("Gemm", y, b.weight(11, 21), b.weight(11), transB=1))


def flatten_image_then_dense():
    b = Builder(x=[2, 3, 5, 4])
    y = b("Flatten", b("Relu", b.conv("x", 3, 10)))
    return b.model(b("Gemm", y, b.weight(7, 200), b.weight(7), transB=1))


def broadcasts():
    b = Builder(x=[2, 17, 5, 6])
    y = b.conv("x", 17, 20)
    y = b("Add", y, b.constant(np.float32(0.5)))
    y = b("Mul", y, b.weight(1))
    y = b("Add", y, b.weight(20, 1, 1))
    return b.model(b("Mul", y, b.weight(2, 1, 5, 6)))


def two_layouts_meet():
    """Neither can adapt: an output in row-major order, and a view of it with its axes swapped."""
    b = Builder(x=[1, 16, 7, 7])
    y, z = b.conv("x", 16, 32), b("Relu", b.conv("x", 16, 32))
    return b.model(b("Add", y, b("Transpose", z, perm=[0, 1, 3, 2])), z)


def reductions():
    b = Builder(x=[2, 19, 5, 4])
    y = b.conv("x", 19, 24)
    return b.model(b("ReduceMax", y, axes=[1], keepdims=0), b("ReduceMean", y, axes=[1, 3]),
                   b("ReduceMean", y, axes=[2, 3], keepdims=0),
                   b("ReduceSum", b("Mul", y, b.conv("x", 19, 24)), b.constant(np.array([1, 2])),
                     keepdims=0))


def own_transpose_rank3():
    b = Builder(x=[1, 12, 5, 6])
    y = b("Reshape", b.conv("x", 12, 24), b.constant(np.array([1, 24, 30], np.int64)))
    y = b("Transpose", y, perm=[0, 2, 1])
    z = b("MatMul", y, b.weight(24, 10))
    back = b("Reshape", b("Transpose", z, perm=[0, 2, 1]), b.constant(np.array([1, 10, 5, 6])))
    return b.model(z, b.conv(back, 10, 7))


def concat_of_two():
    b = Builder(x=[1, 8, 6, 6])
    y = b("Concat", b.conv("x", 8, 24), b("Transpose", b.conv("x", 8, 40), perm=[0, 1, 3, 2]), axis=1)
    parts = b("Split", y, b.constant(np.array([17, 47])), outputs=2, axis=1)  # cuts every block
    return b.model(b.conv(y, 64, 9), b.conv(parts[0], 17, 5), b("Relu", parts[1]))


def padding_then_extremes():
    b = Builder(x=[1, 3, 7, 6])
    y = b("Add", b("Relu", b.conv("x", 3, 13)), b.constant(np.float32(-3)))  # f(0) is not 0
    return b.model(b("Softmax", y, axis=1), b("ReduceMax", y, axes=[1], keepdims=1),
                   b("ReduceMean", y, axes=[1], keepdims=1), b("ArgMax", y, axis=1),
                   b("ArgMin", y, axis=1))


def constants_everywhere():
    b = Builder(x=[1, 4, 5, 5])
    w = b("Transpose", b.weight(3, 3, 4, 12), perm=[3, 2, 0, 1])
    return b.model(b("Conv", "x", w, pads=[1, 1, 1, 1]))


def constants_of_many_sizes():
    """A table of products (190,000 iterations) is gathered (13,000), then added up along an axis."""
    b = Builder(x=[1, 5, 52, 52])
    table = b("MatMul", b("Relu", b("MatMul", b.weight(103, 2), b.weight(2, 373))), b.weight(373, 5))
    places = np.add.outer(np.arange(52), np.arange(51, -1, -1))
    bias = b("Gather", table, b.constant(places), axis=0)
    parts = b("ReduceSum", bias, b.constant([1]))
    moved = b("Transpose", b("Sub", bias, parts), perm=[2, 0, 1])
    return b.model(b("Softmax", b("Add", "x", b("Exp", moved)), axis=3))


def scalar_input():
    b = Builder(x=[1, 6, 4, 4], s=[])
    return b.model(b("Mul", b.conv("x", 6, 10), "s"))


def pools():
    b = Builder(x=[1, 5, 11, 10])
    y = b.conv("x", 5, 19)
    return b.model(b("MaxPool", y, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
                   b("AveragePool", y, kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 1, 1]))


def depthwise():
    b = Builder(x=[1, 20, 9, 8])
    y = b("Clip", b.conv("x", 20, 40, 1), b.constant(np.float32(0)), b.constant(np.float32(6)))
    y = b.conv(y, 40, 40, 3, group=40, strides=[2, 2])
    return b.model(b.conv(y, 40, 15, 1))


def batched_products():
    b = Builder(x=[2, 3, 17, 20], y=[2, 1, 20, 33])
    return b.model(b("MatMul", "x", "y"))


def concat_of_many():
    b = Builder(x=[1, 3, 5])
    return b.model(b("Concat", *[b("Relu", b("Mul", "x", b.weight(3, 5))) for _ in range(40)],
                     axis=1))


def transformer():
    """One encoder block of 13 tokens: gather by computed indices, three heads of 8, GELU by erf."""
    tokens, heads, width = 13, 3, 24
    b = Builder(x=[1, tokens])

    def linear(y, to, width=width):
        return b("Add", b("MatMul", y, b.weight(width, to)), b.weight(to))

    def heads_of(y, perm):
        shape = b.constant(np.array([1, tokens, heads, width // heads]))
        return b("Transpose", b("Reshape", y, shape), perm=perm)

    def norm(y):
        return b("LayerNormalization", y, b.weight(width), b.weight(width), axis=-1)

    ids = b("Cast", b("Mul", "x", b.constant(np.float32(3))), to=TensorProto.INT64)
    y = norm(b("Gather", b.weight(17, width), b("Clip", ids, b.constant(-17), b.constant(16))))
    q, k, v = b("Split", linear(y, 3 * width), outputs=3, axis=2)
    scores = b("MatMul", heads_of(q, [0, 2, 1, 3]), heads_of(k, [0, 2, 3, 1]))
    scores = b("Softmax", b("Mul", scores, b.constant(np.float32(0.35))), axis=-1)
    mixed = b("Transpose", b("MatMul", scores, heads_of(v, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    mixed = b("Reshape", mixed, b.constant(np.array([1, tokens, width])))
    y = norm(b("Add", y, linear(mixed, width)))
    f = linear(y, 4 * width)
    erf = b("Erf", b("Div", f, b.constant(np.float32(2 ** 0.5))))
    g = b("Mul", b("Mul", f, b("Add", erf, b.constant(np.float32(1)))), b.constant(np.float32(0.5)))
    return b.model(norm(b("Add", y, linear(g, width, 4 * width))))


def scalar_outputs():
    b = Builder(x=[2, 6, 5, 7])
    y = b.conv("x", 6, 9)
    mean = b("ReduceMean", y, keepdims=0)
    return b.model(b("ReduceMin", "x", keepdims=0), b("Sub", mean, b("ReduceMax", y, keepdims=0)),
                   b("ReduceSum", y, keepdims=0))


def places_of_extremes():
    b = Builder(x=[1, 6, 5, 7])
    y = b.conv("x", 6, 19)
    return b.model(b("ArgMax", y, axis=1), b("ArgMin", y, axis=3, keepdims=0),
                   b("ArgMax", b("Squeeze", "x", b.constant([0])), axis=0))


CASES = [all_ones, one_channel, long_windows, grouped_products, rows_cut_elsewhere, one_pixel,
         coprime, transposed_between, mean_then_conv,
         squeeze_then_dense, flatten_image_then_dense, broadcasts, two_layouts_meet, reductions,
         standardised_weights, own_transpose_rank3, concat_of_two, padding_then_extremes, constants_everywhere,
         constants_of_many_sizes, scalar_input, pools, depthwise, batched_products, concat_of_many,
         transformer, scalar_outputs, places_of_extremes]
CASES += [pytest.param(odd_channels(c), id=f"channels_{c}") for c in (3, 9, 13, 15, 17, 91)]


def test_cut_rows_are_vectorised(tmp_path):
    b = Builder(x=[1, 7, 24])
    y = b("Reshape", b("MatMul", "x", b.weight(24, 54)), b.constant([42, 9, 1]))
    onnx.save(b.model(y), tmp_path / "case.onnx")
    done = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx"), "--schedules"], check=True,
                          capture_output=True, text=True)
    assert "sch.vectorize" in done.stdout and "not vectorised" not in done.stdout


def run_pleat(path, feeds, folder, *options):
    arguments = [PLEAT, "run", str(path), "-o", str(folder / "out.npz"), *options]
    for name, value in feeds.items():
        np.save(folder / f"{name}.npy", value)
        arguments += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(np.load(folder / "out.npz"))


def check(model, folder, *options, tolerance=1e-4, feeds=None):
    """The results, which are those of ONNX Runtime on `feeds`; without, inputs are random floats."""
    path = folder / "case.onnx"
    onnx.save(model, path)
    feeds = feeds or random_feeds(model)
    expected = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = run_pleat(path, feeds, folder, *options)
    for output, want in zip(model.graph.output, expected):
        have = got[output.name]
        assert have.shape == want.shape
        np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance * np.abs(want).max())
    return got


def random_feeds(model):
    random = np.random.default_rng(9)
    constants = {w.name for w in model.graph.initializer}
    return {
        i.name: np.asarray(random.standard_normal(
            [d.dim_value for d in i.type.tensor_type.shape.dim]), np.float32)
        for i in model.graph.input if i.name not in constants
    }


@pytest.mark.parametrize("level", EACH_LEVEL)
@pytest.mark.parametrize("build", CASES)
def test_case(build, level, tmp_path):
    if not level_here(level):
        pytest.skip(f"no {level} here")
    check(build(), tmp_path, "--cpu", level)


@pytest.mark.parametrize("build", [broadcasts, padding_then_extremes, concat_of_two])
def test_without_planning(build, tmp_path):
    planned = check(build(), tmp_path)
    plain = check(build(), tmp_path, "--policy", "none")
    for name, value in planned.items():
        np.testing.assert_allclose(value, plain[name], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet50", "mobilenetv2", "digits"])
def test_every_pass_keeps_the_meaning(name, tmp_path):
    """`--verify-each`: the interpreter runs every kernel before and after each pass."""
    path = ROOT / "examples/digits/digits.onnx"
    if name != "digits":
        path = tmp_path / f"{name}.onnx"
        subprocess.check_call([sys.executable, ROOT / "examples/models/build.py", name, path,
                               "--small", "--scale", "2"])
    done = subprocess.run([PLEAT, "compile", str(path), "--verify-each", "-o",
                           str(tmp_path / "out.c")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_long_chains_are_cut(tmp_path):
    """Where the loop's body would not fit the instruction cache, and the plan says so."""
    b, y = Builder(x=[7, 13]), "x"
    for op in ["Tanh", "Neg", "Sigmoid", "Cos", "Abs"] * 100:
        y = b(op, y)
    check(b.model(y), tmp_path)
    path = tmp_path / "case.onnx"
    fusion = subprocess.check_output([PLEAT, "plan", str(path), "--fusion"], text=True)
    assert "operations, and 1024 fit" in fusion
    plan = json.loads(subprocess.check_output([PLEAT, "plan", str(path), "--json"], text=True))
    assert 3 <= plan["kernels"] <= 20
    for target in ("c", "opencl"):  # a function's argument is used several times in its expansion
        subprocess.run([PLEAT, "compile", str(path), "--target", target, "-o", str(tmp_path / "m.c")],
                       check=True, timeout=60)


@pytest.mark.parametrize("op", ["Concat", "Sum", "Max"])
def test_operators_of_many_inputs(op, tmp_path):
    """Are several stages of at most 64; the last piece is smaller."""
    b = Builder(x=[3, 7])
    pieces = [b("MatMul", "x", b.weight(7, 5)) for _ in range(150)]
    check(b.model(b(op, *pieces, **({"axis": 1} if op == "Concat" else {}))), tmp_path)


def test_one_rewrite_serves_all_users(tmp_path):
    """A tensor that three users want in one other layout is rewritten once at most."""
    b = Builder(x=[1, 32, 8, 8])
    y = b.conv("x", 32, 32)
    model = b.model(*[b.conv(y, 32, 16 * (i + 1)) for i in range(3)])
    onnx.save(model, tmp_path / "case.onnx")
    done = subprocess.run([PLEAT, "plan", str(tmp_path / "case.onnx"), "--json"],
                          capture_output=True, text=True, check=True)
    plan = json.loads(done.stdout)
    tensors = [r["tensor"] for r in plan["rewrites"] if r["when"] == "run"]
    assert len(tensors) == len(set(tensors))
    assert plan["cost"] <= plan["cost_unplanned"]


def test_two_compiles_are_equal(tmp_path):
    onnx.save(depthwise(), tmp_path / "case.onnx")
    written = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        out = tmp_path / name / "model.c"
        subprocess.check_call([PLEAT, "compile", str(tmp_path / "case.onnx"), "-o", str(out)])
        written.append(out.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize("size", [0, 1, 10, 100, 1000])
def test_truncated_model(size, tmp_path):
    onnx.save(depthwise(), tmp_path / "case.onnx")
    data = (tmp_path / "case.onnx").read_bytes()
    (tmp_path / "cut.onnx").write_bytes(data[:size])
    done = subprocess.run([PLEAT, "run", str(tmp_path / "cut.onnx"), "--fill", "random", "-o",
                           str(tmp_path / "out.npz")], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "cut.onnx" in done.stderr
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.parametrize("block", [4, 8, 16])
@pytest.mark.parametrize("channels", [3, 9, 17, 91])
def test_blocks_that_do_not_divide(channels, block, tmp_path):
    check(odd_channels(channels)(), tmp_path, "--desired-layout", f"Conv=NCHW{block}c")


def test_infinities_stay_where_they_are(tmp_path):
    """The padding of an odd number of channels must not meet an infinity: 0 * inf is NaN."""
    path, b = tmp_path / "case.onnx", Builder(x=[1, 3, 5, 5])
    onnx.save(b.model(b("ReduceMax", b("Relu", b.conv("x", 3, 13, 1)), axes=[1], keepdims=0)), path)
    x = np.random.default_rng(1).standard_normal((1, 3, 5, 5)).astype(np.float32)
    x[0, 1, 2, 3] = np.inf
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    want = session.run(None, {"x": x})[0]
    got = run_pleat(path, {"x": x}, tmp_path)[session.get_outputs()[0].name]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
