# SPDX-License-Identifier: Apache-2.0
"""The operators of pleat.topi give what NumPy computes, and what TVM's topi gives with the same arguments
(with apache-tvm only; skipped without)."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")
from pleat import te, topi  # noqa: E402


def floats(*shape):
    return np.random.default_rng(len(shape) + 7).standard_normal(shape).astype("float32")


def integers(high, *shape):
    return np.random.default_rng(5).integers(-high, high, shape).astype("int32")


def windows(x, kernel, stride=1, dilation=1):
    """The windows of the last axes, as new axes behind."""
    spread = [(k - 1) * dilation + 1 for k in kernel]
    view = np.lib.stride_tricks.sliding_window_view(x, spread, axis=(-2, -1))
    return view[..., ::stride, ::stride, ::dilation, ::dilation]


def padded(x, amount):
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(amount, amount)] * 2)


def convolved(x, w, stride, pad, dilation, groups=1):
    parts = windows(padded(x, pad), w.shape[2:], stride, dilation)
    split = [np.einsum("ncyxhw,ochw->noyx", a, b) for a, b in
             zip(np.split(parts, groups, 1), np.split(w, groups, 0))]
    return np.concatenate(split, 1)


def blocks(x, size):
    """Axis 1 in blocks, the last axis."""
    return np.moveaxis(x.reshape(x.shape[0], -1, size, *x.shape[2:]), 2, -1).copy()


def in_parts(x, counts, reduce):
    """The parts of the last axes, each of which is reduced to one number."""
    for axis, count in zip(range(-len(counts), 0), counts):
        extent, parts = x.shape[axis], []
        for i in range(count):
            part = np.arange(i * extent // count, -(-(i + 1) * extent // count))
            parts.append(reduce(np.take(x, part, axis), axis=axis, keepdims=True))
        x = np.concatenate(parts, axis)
    return x


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


X, Y, Z = floats(5, 7), floats(7), floats(2, 3, 8, 9)
W, V, P = floats(4, 3, 3, 3), floats(4, 1, 3, 3), floats(3, 2, 3, 3)

# Name: the operator of a topi and tensors, the tensors, what NumPy gives.
CASES = {
    "relu": (lambda t, x: t.nn.relu(x), [X], lambda x: np.maximum(x, 0)),
    "leaky_relu": (lambda t, x: t.nn.leaky_relu(x, 0.25), [X], lambda x: np.where(x > 0, x, x * 0.25)),
    "prelu": (lambda t, x, s: t.nn.prelu(x, s), [X, Y], lambda x, s: np.where(x > 0, x, x * s)),
    "tanh": (lambda t, x: t.tanh(x), [X], np.tanh),
    "sigmoid": (lambda t, x: t.sigmoid(x), [X], lambda x: 1 / (1 + np.exp(-x))),
    "exp": (lambda t, x: t.exp(x), [X], np.exp),
    "abs": (lambda t, x: t.abs(x), [X], np.abs),
    "sign": (lambda t, x: t.sign(x), [integers(3, 4, 5)], np.sign),
    "round": (lambda t, x: t.floor(x), [X * 3], np.floor),
    "clip": (lambda t, x: t.clip(x, -0.5, 0.75), [X], lambda x: np.clip(x, -0.5, 0.75)),
    "cast": (lambda t, x: t.cast(x, "int32"), [X * 9], lambda x: x.astype("int32")),
    "add": (lambda t, x, y: t.add(x, y), [X, Y], np.add),
    "subtract": (lambda t, x, y: t.subtract(y, x), [X, Y], lambda x, y: y - x),
    "multiply": (lambda t, x: t.multiply(x, 3.0), [X], lambda x: x * 3),
    "divide": (lambda t, x, y: t.divide(x, y), [floats(5, 1, 3), floats(4, 1)], np.divide),
    "operators": (lambda t, x, y: 2 - (x + y) * x / (3 + y * y - x), [X, Y],
                  lambda x, y: 2 - (x + y) * x / (3 + y * y - x)),
    "elemwise_sum": (lambda t, x, y: t.elemwise_sum([x, y, x]), [X, X * 3], lambda x, y: x + y + x),
    "maximum": (lambda t, x, y: t.maximum(x, y), [X, Y], np.maximum),
    "floor_mod": (lambda t, x, y: t.floor_mod(x, y), [integers(9, 4, 5), np.array([2, 3, 5, 7, 1], "int32")],
                  np.mod),
    "less": (lambda t, x, y: t.cast(t.less(x, y), "int8"), [X, Y], lambda x, y: (x < y).astype("int8")),
    "where": (lambda t, c, x, y: t.where(c, x, y), [integers(1, 5, 7), X, X * 2], np.where),
    "full_like": (lambda t, x: t.add(t.full_like(x, 2.5), x), [X], lambda x: x + 2.5),
    "sum": (lambda t, x: t.sum(x), [Z], lambda x: x.sum(dtype="float64")),
    "sum_axes": (lambda t, x: t.sum(x, axis=(1, -1)), [Z], lambda x: x.sum((1, 3))),
    "sum_kept": (lambda t, x: t.sum(x, axis=1, keepdims=True), [Z], lambda x: x.sum(1, keepdims=True)),
    "max": (lambda t, x: t.max(x, axis=0), [X], lambda x: x.max(0)),
    "min": (lambda t, x: t.min(x, axis=1), [X], lambda x: x.min(1)),
    "prod": (lambda t, x: t.prod(x, axis=1), [X], lambda x: x.prod(1)),
    "argmax": (lambda t, x: t.argmax(x, axis=1), [integers(3, 6, 9)], lambda x: x.argmax(1)),
    "argmin": (lambda t, x: t.argmin(x, axis=0, keepdims=True), [integers(3, 6, 9)],
               lambda x: x.argmin(0)[None]),
    "transpose": (lambda t, x: t.transpose(x), [X], np.transpose),
    "transpose_axes": (lambda t, x: t.transpose(x, (0, 3, 1, -2)), [Z], lambda x: x.transpose(0, 3, 1, 2)),
    "reshape": (lambda t, x: t.reshape(x, (6, 12, 6)), [Z], lambda x: x.reshape(6, 12, 6)),
    "reshape_one": (lambda t, x: t.reshape(x, (1, 35, 1)), [X], lambda x: x.reshape(1, 35, 1)),
    "flatten": (lambda t, x: t.nn.flatten(x), [Z], lambda x: x.reshape(2, -1)),
    "expand_dims": (lambda t, x: t.expand_dims(x, 1, 2), [X], lambda x: x[:, None, None]),
    "squeeze": (lambda t, x: t.squeeze(x), [X[:, None, :, None]], np.squeeze),
    "broadcast_to": (lambda t, x: t.broadcast_to(x, (3, 5, 7)), [X[:, :1]],
                     lambda x: np.broadcast_to(x, (3, 5, 7))),
    "concatenate": (lambda t, x, y: t.concatenate((x, y, x), 1), [X, floats(5, 1)],
                    lambda x, y: np.concatenate((x, y, x), 1)),
    "stack": (lambda t, x, y: t.stack((x, y), 1), [X, X * 2], lambda x, y: np.stack((x, y), 1)),
    "split": (lambda t, x: t.split(x, (2, 3), 1)[2], [X], lambda x: x[:, 3:]),
    "strided_slice": (lambda t, x: t.strided_slice(x, [1, 6], [5, 0], [2, -3]), [X],
                      lambda x: x[1:5:2, 6:0:-3]),
    "flip": (lambda t, x: t.flip(x, 1), [X], lambda x: x[:, ::-1]),
    "repeat": (lambda t, x: t.repeat(x, 3, 1), [X], lambda x: np.repeat(x, 3, 1)),
    "tile": (lambda t, x: t.tile(x, (2, 1, 3)), [X], lambda x: np.tile(x, (2, 1, 3))),
    "take": (lambda t, x, i: t.take(x, i, 1, mode="clip"), [X, integers(9, 2, 3)],
             lambda x, i: np.take(x, np.clip(i, 0, 6), 1)),
    "gather": (lambda t, x, i: t.gather(x, 1, i), [X, abs(integers(7, 5, 3)) % 7],
               lambda x, i: np.take_along_axis(x, i, 1)),
    "gather_nd": (lambda t, x, i: t.gather_nd(x, i), [Z, abs(integers(2, 2, 4)) % 2], lambda x, i: x[tuple(i)]),
    "one_hot": (lambda t, i: t.one_hot(i, 3, -1, 5, 1, "float32"), [integers(5, 4, 3)],
                lambda i: np.where(i[:, None] == np.arange(5)[:, None], 3, -1).astype("float32")),
    "one_hot_last": (lambda t, i: t.one_hot(i, 1, 0, 6, -1, "int32"), [integers(6, 7)],
                     lambda i: (i[:, None] == np.arange(6)).astype("int32")),
    "sequence_mask": (lambda t, x, n: t.sequence_mask(x, n, -2.0, 1), [X, integers(8, 5)],
                      lambda x, n: np.where(np.arange(7) >= n[:, None], np.float32(-2), x)),
    "sequence_mask_first": (lambda t, x, n: t.sequence_mask(x, n), [X, integers(6, 7)],
                            lambda x, n: np.where(np.arange(5)[:, None] >= n, np.float32(0), x)),
    "reverse_sequence": (lambda t, x, n: t.reverse_sequence(x, n), [X, np.array([0, 1, 7, 3, 2], "int32")],
                         lambda x, n: np.stack([np.r_[row[:k][::-1], row[k:]] for row, k in zip(x, n)])),
    "trilu_upper": (lambda t, x: t.trilu(x, x.shape[0] - 3, True), [Z], lambda x: np.triu(x, -1)),
    "trilu_lower": (lambda t, x: t.trilu(x, x.shape[0], False), [Z], lambda x: np.tril(x, 2)),
    "meshgrid": (lambda t, x, y: t.meshgrid([x, y], "xy")[0], [X[0], Y[:3]], lambda x, y: np.meshgrid(x, y)[0]),
    "take_flat": (lambda t, x, i: t.take(x, i, mode="wrap"), [X, integers(99, 4)],
                  lambda x, i: np.take(x, i, mode="wrap")),
    "pad": (lambda t, x: t.nn.pad(x, (1, 0), (0, 2), 1.5), [X],
            lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=1.5)),
    "bias": (lambda t, x, y, b: t.nn.dense(x, y, b), [X, floats(6, 7), floats(6)],
             lambda x, y, b: x @ y.T + b),
    "dense": (lambda t, x, y: t.nn.dense(x, y), [X, floats(6, 7)], lambda x, y: x @ y.T),
    "matmul": (lambda t, x, y: t.nn.matmul(x, y, transpose_a=True), [X, floats(5, 4)],
               lambda x, y: x.T @ y),
    "batch_matmul": (lambda t, x, y: t.nn.batch_matmul(x, y), [floats(3, 4, 5), floats(3, 6, 5)],
                     lambda x, y: x @ y.transpose(0, 2, 1)),
    "softmax": (lambda t, x: t.nn.softmax(x), [X], lambda x: softmax(x, 1)),
    "softmax_axis": (lambda t, x: t.nn.softmax(x, 1), [Z], lambda x: softmax(x, 1)),
    "log_softmax": (lambda t, x: t.nn.log_softmax(x), [X], lambda x: np.log(softmax(x, 1))),
    "conv2d": (lambda t, x, w: t.nn.conv2d(x, w, 1, 0, 1, "NCHW"), [Z, W],
               lambda x, w: convolved(x, w, 1, 0, 1)),
    "conv2d_strided": (lambda t, x, w: t.nn.conv2d(x, w, (2, 2), (2, 2), 2, "NCHW"), [Z, W],
                       lambda x, w: convolved(x, w, 2, 2, 2)),
    "conv2d_nhwc": (lambda t, x, w: t.nn.conv2d_nhwc(x, w, 2, 1, 1, "float32"),
                    [Z.transpose(0, 2, 3, 1).copy(), W.transpose(2, 3, 1, 0).copy()],
                    lambda x, w: convolved(Z, W, 2, 1, 1).transpose(0, 2, 3, 1)),
    "conv2d_NCHWc": (lambda t, x, w: t.nn.conv2d_NCHWc(x, w, (2, 2), (1, 1), (1, 1), "NCHW3c", "NCHW2c", "float32"),
                     [blocks(Z, 3), blocks(blocks(W, 3).transpose(1, 0, 2, 3, 4), 2).transpose(1, 0, 2, 3, 4, 5)],
                     lambda x, w: blocks(convolved(Z, W, 2, 1, 1), 2)),
    "group_conv2d": (lambda t, x, w: t.nn.group_conv2d_nchw(x, w, 1, 1, 1, 2),
                     [floats(1, 6, 5, 5), floats(4, 3, 3, 3)], lambda x, w: convolved(x, w, 1, 1, 1, 2)),
    "depthwise": (lambda t, x, w: t.nn.depthwise_conv2d_nchw(x, w, 2, 1, 1), [Z, P],
                  lambda x, w: convolved(x, w.reshape(6, 1, 3, 3), 2, 1, 1, 3)),
    "max_pool": (lambda t, x: t.nn.pool2d(x, (3, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), [Z],
                 lambda x: windows(x, (3, 2), 2).max((-2, -1))),
    "avg_pool": (lambda t, x: t.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg"), [Z],
                 lambda x: windows(padded(x, 1), (3, 3), 2).mean((-2, -1))),
    "avg_pool_inside": (lambda t, x: t.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg",
                                                 count_include_pad=False), [Z],
                        lambda x: windows(padded(x, 1), (3, 3), 2).sum((-2, -1))
                        / windows(padded(np.ones_like(x), 1), (3, 3), 2).sum((-2, -1))),
    "global_pool": (lambda t, x: t.nn.global_pool(x, "avg"), [Z], lambda x: x.mean((2, 3), keepdims=True)),
    "adaptive_max": (lambda t, x: t.nn.adaptive_pool(x, (5, 3), "max"), [Z], lambda x: in_parts(x, (5, 3), np.max)),
    "adaptive_avg": (lambda t, x: t.nn.adaptive_pool(x, (1, 7), "avg"), [Z], lambda x: in_parts(x, (1, 7), np.mean)),
    "adaptive_rows": (lambda t, x: t.nn.adaptive_pool1d(x, 13, "avg"), [floats(1, 2, 5)],
                      lambda x: in_parts(x, (13,), np.mean)),
    "layer_norm": (lambda t, x, g, b: t.nn.layer_norm(x, g, b, [-1], 1e-5), [X, Y, Y * 2],
                   lambda x, g, b: (x - x.mean(1, keepdims=True))
                   / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b),
}


def result_of(program, tensors, expected):
    """The array that the program writes, its last parameter."""
    out = np.zeros(expected.shape, expected.dtype)
    pleat.build(program, cache=False, quick=True)["main"](*tensors, out)
    return out


def inputs(te_of, tensors):
    return [te_of.placeholder(x.shape, str(x.dtype), name=f"in{k}") for k, x in enumerate(tensors)]


@pytest.mark.parametrize("name", CASES)
def test_numpy(name):
    operator, tensors, wanted = CASES[name]
    given = inputs(te, tensors)
    output = operator(topi, *given)
    expected = np.asarray(wanted(*tensors)).astype(output.dtype)
    assert tuple(output.shape) == expected.shape
    result = result_of(te.create_prim_func([*given, output]), tensors, expected)
    assert np.allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_tvm(name):
    tvm = pytest.importorskip("tvm")
    operator, tensors, wanted = CASES[name]
    given, theirs = inputs(te, tensors), inputs(tvm.te, tensors)
    own, other = operator(topi, *given), operator(tvm.topi, *theirs)
    assert own.dtype == str(other.dtype)
    assert [int(e) for e in own.shape] == [int(e) for e in other.shape]
    expected = np.asarray(wanted(*tensors)).astype(own.dtype)
    text = tvm.te.create_prim_func([*theirs, other]).script()
    result = result_of(pleat.script.from_source(text), tensors, expected)
    assert np.allclose(result, result_of(te.create_prim_func([*given, own]), tensors, expected), rtol=1e-5,
                       atol=1e-6)


def test_graphs():
    """The operators in graphs; a call that states its type needs no function to be there."""
    from pleat import relax
    from pleat.script import relax as R, tir as T
    bb, n = relax.BlockBuilder(), T.int64()
    x, w = relax.Var("x", R.Tensor((n, 7), "float32")), relax.Var("w", R.Tensor((6, 7), "float32"))
    with bb.function("outside", [x]):
        lv = bb.emit(relax.call_dps_packed("env.f", [x], out_sinfo=R.Tensor((n, 5), "float32")))
        bb.emit_func_output(bb.emit_te(topi.nn.relu, lv))
    assert "def relu(" in bb.get().script() and "env.f" in bb.get().script()
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        bb.emit_func_output(bb.emit_te(topi.nn.softmax, bb.emit_te(topi.nn.dense, x, w)))
    assert np.allclose(pleat.compile(bb.get(), cache=False)(X, floats(6, 7)),
                       softmax(X @ floats(6, 7).T, 1), atol=1e-5)


def test_numbers_in_shapes():
    n = te.var("n")
    assert topi.utils.get_const_tuple([te.placeholder((3,)).shape[0], n]) == (3, n)
    assert topi.utils.get_const_int(pleat.tir.IntImm("int64", 5)) == 5
    with pytest.raises(ValueError, match="expected an integer constant, saw n"):
        topi.utils.get_const_int(n)


def test_free_sizes():
    n = te.var("n")
    x, y = te.placeholder((n, 3), name="x"), te.placeholder((n, 3), name="y")
    output = topi.nn.relu(topi.transpose(topi.add(x, y)))
    run = pleat.build(te.create_prim_func([x, y, output]), cache=False)["main"]
    for size in (1, 5):
        a, b, out = floats(size, 3), floats(size, 3) * 2, np.zeros((3, size), "float32")
        run(a, b, out)
        assert np.allclose(out, np.maximum((a + b).T, 0))


@pytest.mark.parametrize("call, message", [
    (lambda x: topi.add(x, te.placeholder((5, 6), name="y")), "do not broadcast"),
    (lambda x: topi.sum(x, axis=2), "axis 2 is not one of a tensor with 2 axes"),
    (lambda x: topi.reshape(x, (6, 6)), "a tensor of 35 elements has not the shape"),
    (lambda x: topi.transpose(x, (0, 0)), "is no order of 2 axes"),
    (lambda x: topi.squeeze(x, 1), "axis 1 has extent 7, not 1"),
    (lambda x: topi.split(x, 3), "an axis of extent 5 has no 3 equal parts"),
    (lambda x: topi.nn.pool2d(x, 2, 1, 1, 0, "sum", layout="HW"), "expected max or avg"),
    (lambda x: topi.nn.adaptive_pool(x, (2, 0), "max", layout="HW"), "extent 7 in 0 parts"),
])
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call(te.placeholder((5, 7), name="x"))


@pytest.mark.parametrize("find, lowest", [(topi.argmax, True), (topi.argmin, False)])
def test_partial_results_of_indices(find, lowest):
    """The index of the first of equal elements, from partial results; all elements of a row may be the first value."""
    A = te.placeholder((4, 13), dtype="int32", name="A")
    program = te.create_prim_func([A, find(A, axis=1)])
    a = np.random.default_rng(4).integers(0, 4, (4, 13)).astype("int32")
    a[2] = np.iinfo("int32").min if lowest else np.iinfo("int32").max
    for loop in (0, 1):
        sch = pleat.tir.Schedule(program)
        sch.rfactor(sch.split(sch.get_loops("A_red_temp")[1], [None, 8])[loop], 1)
        found = np.zeros(4, "int32")
        pleat.build(sch.mod)(a, found)
        assert np.array_equal(found, getattr(np, find.__name__)(a, axis=1))


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_means_of_integers(dtype):
    """A sum of small integers, and their number, may not fit their type; a mean is cut towards 0."""
    image = te.placeholder((1, 2, 16, 9), dtype, name="image")
    function = te.create_prim_func([image, topi.nn.global_pool(image, "avg")])
    data, mean = integers(100, 1, 2, 16, 9).astype(dtype), np.zeros((1, 2, 1, 1), dtype)
    data[0, 1] = -abs(data[0, 1])
    pleat.build(function, cache=False)(data, mean)
    assert np.array_equal(mean, np.trunc(data.astype("int64").mean((2, 3), keepdims=True)))
