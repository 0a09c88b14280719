# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks as tensor expressions."""
from pleat import te, tir
from pleat.topi._shapes import axes_of, one_axis, pair, product, quotient
from pleat.topi.elementwise import add, cast
from pleat.topi.transform import reshape


def relu(x):
    """x where it is positive, otherwise 0."""
    return te.compute(x.shape, lambda *i: tir.max(x(*i), tir.const(0, x.dtype)), name="compute", tag="elemwise")



def leaky_relu(x, alpha):
    """x where it is positive, otherwise alpha * x."""
    return te.compute(x.shape, lambda *i: tir.Select(x(*i) > tir.const(0, x.dtype), x(*i),
                                                     x(*i) * tir.const(alpha, x.dtype)),
                      name="compute", tag="elemwise")


def prelu(x, slope, axis=1):
    """leaky_relu with a slope for each channel."""
    axis = one_axis(axis, x.ndim)
    return te.compute(x.shape, lambda *i: tir.Select(x(*i) > tir.const(0, x.dtype), x(*i),
                                                     x(*i) * slope(i[axis])), name="compute")


def bias_add(data, bias, axis=1):
    """A value of `bias` added to each channel."""
    axis = one_axis(axis, data.ndim)
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[axis]), name="T_add", tag="broadcast")


def scale_shift_nchw(x, scale, shift):
    """x * scale + shift by channel, the second axis."""
    return te.compute(x.shape, lambda b, c, i, j: x(b, c, i, j) * scale(c) + shift(c), name="ScaleShift")


def pad(data, pad_before, pad_after=None, pad_value=0.0, name="PadInput"):
    """The tensor with more elements, of one value, before and after those of each axis."""
    before = pair(pad_before, data.ndim)
    after = before if pad_after is None else pair(pad_after, data.ndim)
    value = tir.const(pad_value, data.dtype) if isinstance(pad_value, (int, float)) else pad_value
    shape = [b + e + a for b, e, a in zip(before, data.shape, after)]
    is_zero = [isinstance(b, int) and b == 0 and isinstance(a, int) and a == 0
               for b, a in zip(before, after)]

    def element(*ax):
        places, tests = [], []
        for k, i in enumerate(ax):
            has_before = not (isinstance(before[k], int) and before[k] == 0)
            places.append(i - before[k] if has_before else i)
            if is_zero[k]:
                continue
            tests += [i >= before[k], i < data.shape[k] + before[k]]
        return tir.if_then_else(tir.all(*tests), data(*places), value) if tests else data(*places)
    return te.compute(shape, element, name=name, tag="injective,pad")


def dilate(data, strides, dilation_value=0.0, name="DilatedInput"):
    """The tensor with strides[k] - 1 values between the elements along each axis."""
    strides = pair(strides, data.ndim)
    shape = [(e - 1) * s + 1 for e, s in zip(data.shape, strides)]

    def element(*ax):
        places = [i if s == 1 else tir.floordiv(i, s) for i, s in zip(ax, strides)]
        tests = [tir.EQ(tir.floormod(i, s), 0) for i, s in zip(ax, strides) if s != 1]
        value = tir.const(dilation_value, data.dtype)
        return tir.if_then_else(tir.all(*tests), data(*places), value) if tests else data(*places)
    return te.compute(shape, element, name=name, tag="injective,dilate")


def flatten(data):
    """All axes but the first one as one, in row-major order."""
    return reshape(data, (data.shape[0], -1))


# ---- Products ---------------------------------------------------------------------------------------

def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False):
    """The product of two matrices, each of which may be transposed before, in out_dtype; plus a bias for
    each column."""
    out_dtype = out_dtype or tensor_a.dtype
    rows, inner = tensor_a.shape[::-1] if transpose_a else tensor_a.shape
    columns = tensor_b.shape[0] if transpose_b else tensor_b.shape[1]
    k = te.reduce_axis((0, inner), "k")

    def element(i, j):
        a = tensor_a(k, i) if transpose_a else tensor_a(i, k)
        b = tensor_b(j, k) if transpose_b else tensor_b(k, j)
        return te.sum(_as(a, out_dtype) * _as(b, out_dtype), axis=k)
    letters = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    result = te.compute((rows, columns), element, name=f"T_matmul_{letters}", tag="matmul")
    return result if bias is None else add(result, _cast(bias, out_dtype))


def _as(value, dtype):
    return value if value.dtype == dtype else value.astype(dtype)


def _cast(tensor, dtype):
    return tensor if tensor.dtype == dtype else cast(tensor, dtype)


def dense(data, weight, bias=None, out_dtype=None):
    """The product of data and the transposed weight, whose rows are the outputs."""
    return matmul(data, weight, bias, out_dtype, False, True)


def batch_matmul(tensor_a, tensor_b, out_dtype=None, transpose_a=False, transpose_b=True):
    """The products of the matrices of two batches, of which one may have a single matrix."""
    out_dtype = out_dtype or tensor_a.dtype
    rows, inner = tensor_a.shape[:0:-1] if transpose_a else tensor_a.shape[1:]
    columns = tensor_b.shape[1] if transpose_b else tensor_b.shape[2]
    one_a, one_b = (isinstance(t.shape[0], int) and t.shape[0] == 1 for t in (tensor_a, tensor_b))
    batch = tensor_b.shape[0] if one_a else tensor_a.shape[0]
    k = te.reduce_axis((0, inner), "k")

    def element(b, i, j):
        b_a, b_b = 0 if one_a and not one_b else b, 0 if one_b and not one_a else b
        left = tensor_a(b_a, k, i) if transpose_a else tensor_a(b_a, i, k)
        right = tensor_b(b_b, j, k) if transpose_b else tensor_b(b_b, k, j)
        return te.sum(_as(left, out_dtype) * _as(right, out_dtype), axis=k)
    letters = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    return te.compute((batch, rows, columns), element, name=f"T_batch_matmul_{letters}",
                      tag="batch_matmul")


# ---- Convolutions and windows -----------------------------------------------------------------------

def get_pad_tuple(padding, kernel):
    """The padding before and after each axis of a kernel. padding: a number, one for each axis, one for
    each side of each axis, or "VALID" or "SAME" (for strides of 1)"""
    count = len(kernel)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise ValueError(f"the padding is {padding!r}, expected VALID or SAME")
        total = [0 if padding == "VALID" else e - 1 for e in kernel]
        return [(t + 1) // 2 for t in total], [t // 2 for t in total]
    if isinstance(padding, (list, tuple)) and len(padding) == 2 * count:
        return list(padding[:count]), list(padding[count:])
    return (both := pair(padding, count)), list(both)


def _windows(extents, kernel, strides, before, after, dilation=None):
    """The extents of the results of windows over extents."""
    dilation = dilation or [1] * len(kernel)
    return [quotient(e + b + a - d * (k - 1) - 1, s) + 1
            for e, k, s, b, a, d in zip(extents, kernel, strides, before, after, dilation)]


def _ceil_div(a, b):
    return -(-a // b) if isinstance(a, int) else tir.floordiv(a + b - 1, b)


def _scaled(index, stride, tap, dilation):
    return (index if stride == 1 else index * stride) + (tap if dilation == 1 else tap * dilation)


def conv(data, kernel, strides, padding, dilation, groups=1, data_layout="NCHW", kernel_layout=None,
         out_dtype=None):
    """The convolution of data with a kernel over the axes of data_layout beside N and C. kernel_layout:
    with O and I for the channels; "" for OI in front where C is before these axes, else IO behind them"""
    out_dtype = out_dtype or data.dtype
    space = [letter for letter in data_layout if letter not in "NC"]
    is_first = data_layout.index("C") < data_layout.index(space[0])
    kernel_layout = kernel_layout or ("OI" + "".join(space) if is_first else "".join(space) + "IO")
    if len(data_layout) != data.ndim or len(kernel_layout) != kernel.ndim:
        raise ValueError(f"the layouts are {data_layout} and {kernel_layout}, the tensors have {data.ndim} "
                         f"and {kernel.ndim} axes")
    extent, taps = dict(zip(data_layout, data.shape)), dict(zip(kernel_layout, kernel.shape))
    strides, dilation = pair(strides, len(space)), pair(dilation, len(space))
    window = [(taps[s] - 1) * d + 1 for s, d in zip(space, dilation)]
    before, after = get_pad_tuple(padding, window)
    sides = [{s: p for s, p in zip(space, side)} for side in (before, after)]
    padded = pad(data, [sides[0].get(s, 0) for s in data_layout], [sides[1].get(s, 0) for s in data_layout],
                 name="pad_temp")
    sizes = _windows([extent[s] for s in space], [taps[s] for s in space], strides, before, after, dilation)
    result = dict(zip(space, sizes), N=extent["N"], C=taps["O"])
    channels = te.reduce_axis((0, taps["I"]), "rc")
    over = [te.reduce_axis((0, taps[s]), f"r{s.lower()}") for s in space]
    share = quotient(taps["O"], groups)

    def element(*ax):
        at = dict(zip(data_layout, ax))
        out = at["C"]
        at["C"] = channels if groups == 1 else tir.floordiv(out, share) * taps["I"] + channels
        for s, tap, stride, d in zip(space, over, strides, dilation):
            at[s] = _scaled(at[s], stride, tap, d)
        of = dict(zip(space, over), O=out, I=channels)
        order = [channels, *over] if is_first else [*over, channels]
        value = _as(padded(*(at[s] for s in data_layout)), out_dtype)
        return te.sum(value * _as(kernel(*(of[s] for s in kernel_layout)), out_dtype), axis=order)
    name = ("conv" if groups == 1 else "group_conv") + f"{len(space)}d_{data_layout.lower()}"
    return te.compute([result[s] for s in data_layout], element, name=name, tag=name)


def conv1d(data, kernel, strides=1, padding="VALID", dilation=1, groups=1, data_layout="NCW",
           kernel_layout="", out_dtype=None):
    """See conv."""
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def conv2d(data, kernel, strides, padding, dilation, data_layout="NCHW", kernel_layout="", out_dtype=None):
    """See conv."""
    return conv(data, kernel, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """See conv."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "", out_dtype)


def conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype="float32"):  # noqa: N803
    """See conv."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NHWC", "", out_dtype)


def conv2d_hwcn(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """See conv."""
    return conv(Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def group_conv2d_nchw(Input, Filter, stride, padding, dilation, groups, out_dtype=None):  # noqa: N803
    """See conv."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "", out_dtype)


def conv2d_NCHWc(data, kernel, stride, padding, dilation, layout=None, out_layout=None,  # noqa: N802
                 out_dtype="float32"):
    """The convolution of data in NCHWc with a kernel in OIHWio: channels in blocks, which are the last axes, of any
    size each. The layouts are those of the shapes, so their names say nothing more."""
    batch, blocks, *extents, block = data.shape
    out_blocks, in_blocks, *taps, in_block, out_block = kernel.shape
    if data.ndim != 5 or kernel.ndim != 6 or [blocks, block] != [in_blocks, in_block]:
        raise ValueError(f"data of the shape {list(data.shape)} and a kernel of the shape {list(kernel.shape)} have "
                         "not the same blocks of channels")
    stride, dilation = pair(stride), pair(dilation)
    before, after = get_pad_tuple(padding, [(t - 1) * d + 1 for t, d in zip(taps, dilation)])
    padded = pad(data, [0, 0, *before, 0], [0, 0, *after, 0], name="data_pad")
    sizes = _windows(extents, taps, stride, before, after, dilation)
    outer, inner = te.reduce_axis((0, blocks), "ic_outer"), te.reduce_axis((0, block), "ic_inner")
    kh, kw = te.reduce_axis((0, taps[0]), "kh"), te.reduce_axis((0, taps[1]), "kw")

    def element(n, o, h, w, c):
        value = padded(n, outer, _scaled(h, stride[0], kh, dilation[0]), _scaled(w, stride[1], kw, dilation[1]), inner)
        return te.sum(_as(value, out_dtype) * _as(kernel(o, outer, kh, kw, inner, c), out_dtype),
                      axis=[outer, kh, kw, inner])
    return te.compute((batch, out_blocks, *sizes, out_block), element, name="conv2d_NCHWc", tag="conv2d_NCHWc")


def conv3d(data, kernel, strides=1, padding=0, dilation=1, groups=1, data_layout="NCDHW", kernel_layout="",
           out_dtype=None):
    """See conv."""
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def depthwise_conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """The convolution of each channel with Filter.shape[1] kernels of its own."""
    out_dtype = out_dtype or Input.dtype
    batch, channels, *extents = Input.shape
    many, taps = Filter.shape[1], Filter.shape[2:]
    strides, dilation = pair(stride), pair(dilation)
    before, after = get_pad_tuple(padding, [(t - 1) * d + 1 for t, d in zip(taps, dilation)])
    padded = pad(Input, [0, 0, *before], [0, 0, *after], name="PaddedInput")
    sizes = _windows(extents, taps, strides, before, after, dilation)
    di, dj = (te.reduce_axis((0, t), name) for t, name in zip(taps, ("di", "dj")))

    def element(b, c, i, j):
        value = padded(b, tir.floordiv(c, many), _scaled(i, strides[0], di, dilation[0]),
                       _scaled(j, strides[1], dj, dilation[1]))
        weight = Filter(tir.floordiv(c, many), tir.floormod(c, many), di, dj)
        return te.sum(_as(value, out_dtype) * _as(weight, out_dtype), axis=[di, dj])
    return te.compute((batch, channels * many, *sizes), element, name="DepthwiseConv2d",
                      tag="depthwise_conv2d_nchw")


def _check_pooling(pool_type):
    if pool_type not in ("max", "avg"):
        raise ValueError(f"the type of pooling is {pool_type!r}, expected max or avg")


def _type_of_sums(dtype):
    """The type in which a sum of small integers does not wrap around."""
    bits = int("".join(c for c in dtype if c.isdigit()) or 8)
    return "int32" if dtype.startswith(("int", "uint")) and bits < 32 else dtype


def _means(total, count, dtype, name):
    """Sums over the number of elements that count(*indices) gives."""
    def mean(*ax):
        number = count(*ax)
        number = (tir.const(number, total.dtype) if isinstance(number, int)
                  else tir.max(number, 1).astype(total.dtype))
        if "float" in dtype:
            return total(*ax) / number
        return tir.truncdiv(total(*ax), number).astype(dtype)
    return te.compute(total.shape, mean, name=name, tag="elemwise")


def pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCHW",
           count_include_pad=True):
    """The greatest ("max") or the mean ("avg") element of each window. padding: top, left, bottom, right;
    with count_include_pad the mean counts the padding too"""
    kernel, strides, dilation = pair(kernel), pair(stride), pair(dilation)
    places = [layout.index("H"), layout.index("W")]
    extents = [data.shape[k] for k in places]
    before, after = get_pad_tuple(padding, kernel)
    if ceil_mode:
        after = [a + s - 1 for a, s in zip(after, strides)]
    _check_pooling(pool_type)
    sides = [[dict(zip(places, side)).get(k, 0) for k in range(data.ndim)] for side in (before, after)]
    least = te.min_value(data.dtype) if pool_type == "max" else 0
    padded = pad(data, *sides, pad_value=least, name="pad_temp")
    shape, sizes = list(data.shape), _windows(extents, kernel, strides, before, after, dilation)
    for k, size in zip(places, sizes):
        shape[k] = size
    over = [te.reduce_axis((0, t), f"rv{k}") for k, t in enumerate(kernel)]

    sums = _type_of_sums(data.dtype)

    def window(*ax):
        at = list(ax)
        for k, tap, s, d in zip(places, over, strides, dilation):
            at[k] = _scaled(ax[k], s, tap, d)
        if pool_type == "max":
            return te.max(padded(*at), axis=over)
        return te.sum(_as(padded(*at), sums), axis=over)
    if pool_type == "max":
        return te.compute(shape, window, name="pool_max", tag="pool_max")
    total = te.compute(shape, window, name="pool_sum", tag="pool_sum")

    def count(*ax):
        inside = []
        for k, t, s, d, b, e in zip(places, kernel, strides, dilation, before, extents):
            first = ax[k] * s - b
            if count_include_pad:
                inside.append(t)
                continue
            last = tir.min(tir.floordiv(e - 1 - first, d) + 1, t)
            skipped = tir.max(_ceil_div(-first, d), 0)
            inside.append(last - skipped)
        return inside[0] * inside[1]

    return _means(total, count, data.dtype, "pool_avg")


def global_pool(data, pool_type, layout="NCHW"):
    """The greatest or the mean element of each image."""
    places = [layout.index("H"), layout.index("W")]
    kernel = [data.shape[k] for k in places]
    return pool2d(data, kernel, 1, 1, 0, pool_type, False, layout)


def _part(extent, count):
    """(first, end, widest) for an axis in `count` parts, which overlap where these are not equal: functions of the
    number of a part, and the extent of the longest."""
    if count == 1:
        return lambda i: 0, lambda i: extent, extent
    if not isinstance(extent, int) or not isinstance(count, int) or count < 1:
        raise ValueError(f"an axis of extent {extent} in {count} parts: expected numbers, the second at least 1")

    def first(i):
        return i * (extent // count) if extent % count == 0 else quotient(i * extent, count)

    def end(i):
        return first(i + 1) if extent % count == 0 else _ceil_div((i + 1) * extent, count)
    return first, end, max(end(i) - first(i) for i in range(count))


def _adaptive(data, output_size, pool_type, layout, axes):
    """The greatest or the mean element of each part of the axes, of which there are output_size."""
    _check_pooling(pool_type)
    places, counts = [layout.index(a) for a in axes], pair(output_size, len(axes))
    parts = [_part(data.shape[k], n) for k, n in zip(places, counts)]
    shape = [dict(zip(places, counts)).get(k, e) for k, e in enumerate(data.shape)]
    over = [te.reduce_axis((0, widest), f"rv{k}") for k, (_, _, widest) in enumerate(parts)]
    sums, is_max = _type_of_sums(data.dtype), pool_type == "max"
    none = te.min_value(data.dtype) if is_max else tir.const(0, data.dtype)

    def element(*ax):
        at, inside = list(ax), []
        for k, n, tap, (first, end, _) in zip(places, counts, over, parts):
            at[k] = first(ax[k]) + tap
            if n != 1 and data.shape[k] % n != 0:
                inside.append(at[k] < end(ax[k]))
        value = tir.if_then_else(tir.all(*inside), data(*at), none) if inside else data(*at)
        return te.max(value, axis=over) if is_max else te.sum(_as(value, sums), axis=over)

    def count(*ax):
        return product(end(ax[k]) - first(ax[k]) for k, (first, end, _) in zip(places, parts))
    name = "adaptive_pool_" + ("max" if is_max else "sum")
    pooled = te.compute(shape, element, name=name, tag=name)
    return pooled if is_max else _means(pooled, count, data.dtype, "adaptive_pool_avg")


def adaptive_pool(data, output_size, pool_type, layout="NCHW"):
    """The greatest ("max") or the mean ("avg") element of each of output_size parts of the images."""
    return _adaptive(data, output_size, pool_type, layout, "HW")


def adaptive_pool1d(data, output_size, pool_type, layout="NCW"):
    """See adaptive_pool."""
    return _adaptive(data, output_size, pool_type, layout, "W")


def adaptive_pool3d(data, output_size, pool_type, layout="NCDHW"):
    """See adaptive_pool."""
    return _adaptive(data, output_size, pool_type, layout, "DHW")


# ---- Normalization ----------------------------------------------------------------------------------

def softmax(x, axis=-1):
    """exp(x) over its sum along an axis."""
    return _softmax(x, one_axis(axis, x.ndim), False)


def log_softmax(x, axis=-1):
    """The logarithm of softmax."""
    return _softmax(x, one_axis(axis, x.ndim), True)


def _softmax(x, axis, is_log):
    rows = [e for k, e in enumerate(x.shape) if k != axis]
    k1, k2 = (te.reduce_axis((0, x.shape[axis]), name="k") for _ in range(2))

    def along(i, k):
        return (*i[:axis], k, *i[axis:])

    def row(i):
        return (*i[:axis], *i[axis + 1:])
    highest = te.compute(rows, lambda *i: te.max(x(*along(i, k1)), axis=k1), name="T_softmax_maxelem")
    if is_log:
        total = te.compute(rows, lambda *i: te.sum(tir.exp(x(*along(i, k2)) - highest(*i)), axis=k2),
                           name="T_softmax_expsum")
        return te.compute(x.shape, lambda *i: x(*i) - highest(*row(i)) - tir.log(total(*row(i))),
                          name="T_log_softmax", tag="log_softmax_output", attrs={"axis": axis})
    powers = te.compute(x.shape, lambda *i: tir.exp(x(*i) - highest(*row(i))), name="T_softmax_exp")
    total = te.compute(rows, lambda *i: te.sum(powers(*along(i, k2)), axis=k2), name="T_softmax_expsum")
    return te.compute(x.shape, lambda *i: powers(*i) / total(*row(i)), name="T_softmax_norm",
                      tag="softmax_output", attrs={"axis": axis})


def layer_norm(data, gamma, beta, axis, epsilon=1e-5):
    """Elements minus their mean over their deviation along axes, scaled by gamma and moved by beta."""
    axes = axes_of(axis, data.ndim)
    rows = [e for k, e in enumerate(data.shape) if k not in axes]
    over = [te.reduce_axis((0, data.shape[k]), f"k{k}") for k in axes]
    count = product(data.shape[k] for k in axes)
    count = tir.const(float(count), data.dtype) if isinstance(count, int) else count.astype(data.dtype)

    def along(i):
        rest, inner = iter(i), iter(over)
        return data(*(next(inner) if k in axes else next(rest) for k in range(data.ndim)))

    def row(i):
        return [v for k, v in enumerate(i) if k not in axes]
    total = te.compute(rows, lambda *i: te.sum(along(i), axis=over), name="T_layer_norm_sum")
    mean = te.compute(rows, lambda *i: total(*i) / count, name="T_layer_norm_mean")
    over = [te.reduce_axis((0, data.shape[k]), f"k{k}") for k in axes]
    squares = te.compute(rows, lambda *i: te.sum((along(i) - mean(*i)) * (along(i) - mean(*i)), axis=over),
                         name="T_layer_norm_squares")

    def normal(*i):
        own = [i[k] for k in axes]
        deviation = tir.rsqrt(squares(*row(i)) / count + tir.const(epsilon, data.dtype))
        value = (data(*i) - mean(*row(i))) * deviation * gamma(*own)
        return value + beta(*own) if beta is not None else value
    return te.compute(data.shape, normal, name="T_layer_norm")


def batch_norm(data, gamma, beta, moving_mean, moving_var, axis=1, epsilon=1e-5):
    """Elements minus the mean of their channel over its deviation, scaled and moved."""
    axis = one_axis(axis, data.ndim)

    def normal(*i):
        c = i[axis]
        deviation = tir.sqrt(moving_var(c) + tir.const(epsilon, data.dtype))
        return (data(*i) - moving_mean(c)) / deviation * gamma(c) + beta(c)
    return te.compute(data.shape, normal, name="T_batch_norm")
