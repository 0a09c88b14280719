# SPDX-License-Identifier: Apache-2.0
"""Operators of graph functions with TVM's attributes and their values where they are left out, compared
with NumPy."""
import numpy as np
import pytest
from built import skip_sanitized

skip_sanitized()
pleat = pytest.importorskip("pleat")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def run(parameters, expressions, *arrays):
    """The values of expressions of R over parameters x, y, z of the given types."""
    names = "xyzw"[:len(parameters)]
    signature = ", ".join(f"{name}: R.Tensor({shape}, '{dtype}')"
                          for name, (shape, dtype) in zip(names, parameters, strict=True))
    body = "".join(f"    r{i} = {text}\n" for i, text in enumerate(expressions))
    results = ", ".join(f"r{i}" for i in range(len(expressions)))
    text = (f"from pleat.script import relax as R, tir as T\n@R.function\ndef main({signature}):\n"
            f"{body}    return ({results},)\n")
    found = pleat.compile(text.encode(), cache=False, quick=True)(*arrays)
    return list(found) if isinstance(found, (list, tuple)) else [found]


def check(parameters, arrays, **cases):
    found = run(parameters, [text for text, _ in cases.values()], *arrays)
    wanted = []
    for _, value in cases.values():
        wanted += value if isinstance(value, list) else [value]
    assert len(found) == len(wanted)
    for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
        assert one.dtype == other.dtype and one.shape == other.shape, (i, one.dtype, one.shape)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5, err_msg=str(i))


def float32(*shape):
    return shape, "float32"


def test_values_of_attributes_that_are_left_out():
    x, y = numbers(2, 3, 5, 3), numbers(3, seed=1)
    axis = y.reshape(1, 3, 1, 1)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    normal = ((x - mean.reshape(1, 3, 1, 1)) / np.sqrt(variance + 1e-5).reshape(1, 3, 1, 1)) * axis + axis
    order = np.argsort(-x, axis=-1, kind="stable")[..., :1]
    check([float32(2, 3, 5, 3), float32(3)], [x, y],
          flat=("R.flatten(x)", x.reshape(-1)),
          best=("R.argmax(x)", np.int64(x.argmax())),
          least=("R.argmin(x, keepdims=True)", np.full((1, 1, 1, 1), x.argmin(), "int64")),
          prelu=("R.nn.prelu(x, y)", np.where(x < 0, x * axis, x)),
          last=("R.nn.prelu(x, y, axis=-1)", np.where(x < 0, x * y, x)),
          trained=("R.nn.batch_norm(x, y, y, y, y, axis=1)",
                   [normal, 0.9 * y + 0.1 * mean, 0.9 * y + 0.1 * variance]),
          sums=("R.cumsum(x)", np.cumsum(x.reshape(-1))),
          top=("R.topk(x)", [np.take_along_axis(x, order, -1), order.astype("int32")]),
          softplus=("R.nn.softplus(x, beta=2.0)", np.log1p(np.exp(2 * x)) / 2),
          rest=("R.mod(x, R.const(0.75, 'float32'))", np.fmod(x, np.float32(0.75))))


def test_indices():
    x, y = numbers(5, 3), np.array([-7, 0, 4, 5, 11], "int64")
    hot = (y[:, None] == np.arange(5)).astype("float32") * 2 - 1
    updated = x.copy()
    updated[[1, 4]] = numbers(2, 3, seed=2)
    check([float32(5, 3), ((5,), "int64"), float32(2, 3)], [x, y, numbers(2, 3, seed=2)],
          clip=("R.take(x, y, axis=0, mode='clip')", x[np.clip(y, 0, 4)]),
          wrap=("R.take(x, y, axis=0, mode='wrap')", x[y % 5]),
          one=("R.take(x, R.prim_value(2), axis=0)", x[2]),
          hot=("R.one_hot(y, R.prim_value(T.float32(1)), R.prim_value(T.float32(-1)), 5)", hot),
          update=("R.scatter_nd(x, R.const([[1], [4]], 'int64'), z, reduction='update')", updated),
          back=("R.reverse_sequence(x, R.const([1, 3, 2, 1, 3], 'int64'))",
                np.stack([np.r_[row[:n][::-1], row[n:]] for row, n in zip(x, [1, 3, 2, 1, 3])])))


def test_quantization():
    x, scale, zero = numbers(4, 3) * 20, np.array([0.5, 0.25, 2], "float32"), np.array([1, -3, 0], "int8")
    q = np.clip(np.round(x / scale) + zero, -128, 127).astype("int8")
    check([float32(4, 3), float32(3), ((3,), "int8")], [x, scale, zero],
          down=("R.quantize(x, y, z)", q),
          up=("R.dequantize(R.quantize(x, y, z, axis=1, out_dtype='int8'), y, z)",
              (q.astype("float32") - zero) * scale))


def test_parts_that_a_type_states():
    x = numbers(2, 10)
    check([float32(2, 10)], [x],
          parts=("R.split(x, 3, axis=1)", np.split(x, [4, 8], axis=1)))


def test_operators_made_of_others():
    x, y = numbers(2, 6, 5, 3), numbers(6, seed=1)
    groups = x.reshape(2, 3, 2, 5, 3)
    normal = (groups - groups.mean((2, 3, 4), keepdims=True)) / np.sqrt(
        groups.var((2, 3, 4), keepdims=True) + 1e-5)
    column = y.reshape(1, 6, 1, 1)
    order = np.argsort(x, axis=1, kind="stable").astype("int32")
    scattered = x.copy()
    scattered[:, :, 1:4:2] = x[:, :, 3:]
    check([float32(2, 6, 5, 3), float32(6)], [x, y],
          std=("R.std(x, axis=[1, 2])", x.std((1, 2))),
          sort=("R.sort(x, axis=1)", np.sort(x, axis=1)),
          order=("R.argsort(x, axis=1)", order),
          groups=("R.nn.group_norm(x, y, y, num_groups=3, channel_axis=1, axes=[2, 3])",
                  normal.reshape(x.shape) * column + column),
          bucket=("R.bucketize(x, R.const([-1, 0, 0.5], 'float32'))",
                  np.searchsorted([-1, 0, 0.5], x).astype("int64")),
          stack=("R.stack((x, x), axis=-1)", np.stack([x, x], axis=-1)),
          outer=("R.outer(y, y)", np.outer(y, y)),
          collapse=("R.collapse_sum_to(x, R.shape([6, 1, 3]))", x.sum((0, 2)).reshape(6, 1, 3)),
          scatter=("R.slice_scatter(x, R.strided_slice(x, axes=[2], begin=[3], end=[5]), "
                   "R.prim_value(1), R.prim_value(5), R.prim_value(2), axis=2)", scattered),
          eye=("R.eye(3, 4, 1)", np.eye(3, 4, 1, dtype="float32")),
          shuffle=("R.nn.pixel_shuffle(R.reshape(x, R.shape([3, 4, 5, 3])), 2)",
                   x.reshape(3, 1, 2, 2, 5, 3).transpose(0, 1, 4, 2, 5, 3).reshape(3, 1, 10, 6)))


def test_losses():
    x, targets, weights = numbers(4, 5, 3), np.arange(12).reshape(4, 3) % 5, numbers(5, seed=3)
    picked = -np.take_along_axis(x, targets[:, None], 1)[:, 0] * weights[targets] * (targets != 2)
    labels = numbers(4, 5, 3, seed=4)
    check([float32(4, 5, 3), ((4, 3), "int64"), float32(5), float32(4, 5, 3)],
          [x, targets, weights, labels],
          mean=("R.nn.nll_loss(x, y, z, ignore_index=2)",
                np.float32(picked.sum() / (weights[targets] * (targets != 2)).sum())),
          none=("R.nn.nll_loss(x, y, z, reduction='none', ignore_index=2)", picked),
          entropy=("R.nn.cross_entropy_with_logits(x, w)", np.float32(-(x * labels).sum() / 4)))


def test_images():
    x = numbers(1, 2, 3, 5)
    rows, columns = np.array([0, 0, 1, 1, 2, 2]), np.arange(10) // 2
    wide = x[:, :, rows][:, :, :, columns]
    middle = x[:, :, ::2] * 0.5 + x[:, :, 1:2] * 0.5
    align = np.concatenate([x[:, :, :1], middle[:, :, :1], x[:, :, 1:2], middle[:, :, 1:], x[:, :, 2:]], 2)
    check([float32(1, 2, 3, 5)], [x],
          near=("R.image.resize2d(x, (6, 10), method='nearest_neighbor', rounding_method='floor', "
                "coordinate_transformation_mode='asymmetric')", wide),
          same=("R.image.resize2d(x, R.shape([3, 5]), method='cubic')", x),
          linear=("R.image.resize2d(x, size=[5, 5], coordinate_transformation_mode='align_corners')", align))


def test_several_tensors_of_indices():
    x, rows = numbers(5, 3, 7), np.array([[0], [-1]])
    columns, values = np.array([2, 0, 1, 1]), numbers(2, 4, 1, seed=3)
    put, added = x.copy(), x.copy()
    put[rows, columns] = values
    np.add.at(added, (rows[:, 0],), np.broadcast_to(values[:, :1, :1], (2, 3, 7)))
    check([float32(5, 3, 7), ((2, 1), "int64"), ((4,), "int64"), float32(2, 4, 1)],
          [x, rows, columns, values],
          taken=("R.index_tensor(x, (y, z))", x[rows, columns]),
          one=("R.index_tensor(x, [z])", x[columns]),
          put=("R.index_put(x, (y, z), w)", put),
          added=("R.index_put(x, (R.reshape(y, R.shape([2])),), "
                 "R.reshape(R.strided_slice(w, axes=[1], begin=[0], end=[1]), R.shape([2, 1, 1])), True)", added),
          part=("R.dynamic_strided_slice(x, R.const([4, 0, -2], 'int64'), R.const([0, 3, 9], 'int64'), "
                "R.const([-2, 2, 1], 'int64'))", x[4:0:-2, 0:3:2, -2:9]))


@pytest.mark.parametrize("begin, end, step", [
    ([1, 0], [7, 6], [2, 3]), ([-7, -1], [7, -5], [2, -2]), ([7, 4], [1, 10], [-2, 1])])
def test_slices_with_bounds_of_a_run(begin, end, step):
    """R.match_cast states the shape, in numbers or in sizes that are given."""
    x = numbers(8, 6)
    bounds = [np.array(bound) for bound in (begin, end, step)]
    expected = x[begin[0]:end[0]:step[0], begin[1]:end[1]:step[1]]
    check([float32(8, 6)] + [((2,), "int64")] * 3, [x, *bounds],
          part=("R.match_cast(R.dynamic_strided_slice(x, y, z, w), R.Tensor((3, 2), 'float32'))", expected))


def test_slices_of_no_stated_shape():
    with pytest.raises(pleat.PleatError, match="only at run time: state the shape of the result with R.match_cast"):
        run([float32(8, 6)] + [((2,), "int64")] * 3, ["R.dynamic_strided_slice(x, y, z, w)"])
    with pytest.raises(pleat.PleatError, match="lists with one element for each axis"):
        run([float32(8, 6)] + [((3,), "int64")] * 3, ["R.dynamic_strided_slice(x, y, z, w)"])


def test_rewrites_with_attributes_by_position():
    x = numbers(8, 6)
    padded = np.pad(x, [(1, 2), (0, 3)], constant_values=2)
    check([float32(8, 6)], [x],
          padded=("R.pad(x, ((1, 2), (0, 3)), 2.0)", padded), cropped=("R.crop(x, (1, 2), (4, 3), 0.0)", x[1:5, 2:5]),
          blocks=("R.layout_transform(x, lambda i, j: (j, i // 4, i % 4))", x.T.reshape(6, 2, 4)),
          halves=("x.astype('float16')", x.astype("float16")),
          sum=("(x * x).astype('float64')", (x * x).astype("float64")))


def test_medians_and_grids():
    x, y = numbers(5, 6), numbers(3, seed=1)
    order = np.argsort(x, axis=1, kind="stable")[:, 2]
    check([float32(5, 6), float32(3)], [x, y],
          rows=("R.median(x, axis=[1])", [np.sort(x, axis=1)[:, 2], order]),
          kept=("R.median(x, axis=0, keepdims=True)[0]", np.sort(x, axis=0)[2:3]),
          all=("R.median(x)", np.sort(x.reshape(-1))[14]),
          grid=("R.meshgrid((y, R.const([1.0, 2.0], 'float32')), indexing='xy')",
                list(np.meshgrid(y, np.float32([1, 2]), indexing="xy"))),
          window=("R.hamming_window(R.prim_value(7), R.prim_value(False), R.prim_value(T.float32(0.54)), "
                  "R.prim_value(T.float32(0.46)), dtype='float32')", np.hamming(7).astype("float32")),
          narrow=("R.wrap_param(x, dtype='float16')", x.astype("float16")),
          same=("R.squeeze(x, axis=[0, 1])", x),
          product=("R.einsum([x, x], 'ij,kj->ik')", x @ x.T))


def test_regions_of_images():
    x = numbers(1, 1, 8, 8)
    regions = np.float32([[0, 0, 0, 4, 4], [0, 2, 2, 6, 4]])
    points = [[(r[2] + (i + 0.5) * (r[4] - r[2]) / 2, r[1] + (j + 0.5) * (r[3] - r[1]) / 2)
               for i in range(2) for j in range(2)] for r in regions]
    def at(row, column):
        i, j = int(row), int(column)
        a, b = np.float32(row - i), np.float32(column - j)
        image = x[0, 0]
        return ((1 - a) * ((1 - b) * image[i, j] + b * image[i, j + 1])
                + a * ((1 - b) * image[i + 1, j] + b * image[i + 1, j + 1]))
    wanted = np.float32([[at(*p) for p in region] for region in points]).reshape(2, 1, 2, 2)
    moved = "R.permute_dims(x, [0, 2, 3, 1])"
    call = "R.vision.roi_align({}, y, pooled_size=(2, 2), spatial_scale=1.0, sample_ratio=1, layout={!r})"
    check([float32(1, 1, 8, 8), float32(2, 5)], [x, regions],
          first=(call.format("x", "NCHW"), wanted),
          last=(call.format(moved, "NHWC"), wanted.transpose(0, 2, 3, 1)))
