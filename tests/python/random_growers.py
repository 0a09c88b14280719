# SPDX-License-Identifier: Apache-2.0
"""Growers of random_onnx.py for what is more than one step: layers as exporters write them,
recurrences, loops and branches, sequences, numbers of few bits, resampling, scattering, choosing,
trees. Each takes a Graph, adds nodes, and leaves out what none of its values is fit for."""
import numpy as np
from onnx import TensorProto, helper

INTS = (np.int32, np.int64)
NARROW = (np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)


def tensor_type(dtype):
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def floats(g, rank=None, least=1, exact=False):
    return g.value(np.float32, rank=rank, least=least, exact=exact)


# ---- Elementwise ------------------------------------------------------------------------------

def grow_bounded(g):
    """Functions of values between -0.75 and 0.75."""
    x = floats(g, least=0)
    g.take("Sin", [x], x)
    small = g.take("Mul", [g.values[-1], g.constant(np.float32(0.75))], x)
    op = g.pick(["Asin", "Acos", "Atanh", "Tan", "Cosh", "Sinh", "Exp", "Acosh"])
    if op == "Acosh":
        small = g.take("Add", [small, g.constant(np.float32(2.5))], x)
    g.take(op, [small], x)


def grow_activation(g):
    x = floats(g, least=0)
    ops = {"LeakyRelu": {"alpha": 0.25}}
    ops |= {"Mish": {}} if g.opset >= 18 else {}
    ops |= {"Gelu": {"approximate": g.pick(["none", "tanh"])}} if g.opset >= 20 else {}
    ops |= {"Swish": {"alpha": 1.5}} if g.opset >= 24 else {}
    op = g.pick(list(ops))
    g.take(op, [x], x, exact=x.exact and op == "LeakyRelu", **ops[op])


def grow_threshold(g):
    x = floats(g, least=0, exact=True)
    op = g.pick(["ThresholdedRelu", "Shrink", "PRelu", "IsNaN", "IsInf"])
    attributes = {"ThresholdedRelu": {"alpha": 0.5}, "Shrink": {"lambd": 0.5, "bias": 0.25}}
    slopes = [e if g.one_in(2) else 1 for e in x.shape][g.below(len(x.shape) + 1):]
    inputs = [x, g.random(slopes)] if op == "PRelu" else [x]
    g.take(op, inputs, x, dtype=np.bool_ if op.startswith("Is") else None, exact=op != "PRelu",
           **attributes.get(op, {}))


def grow_power(g):
    x = floats(g, least=0)
    g.take("Abs", [x], x)
    g.take("Add", [g.values[-1], g.constant(np.float32(0.5))], x)
    exponent = g.pick([2.0, 0.5, 3.0, -1.0, 1.25])
    kind = g.pick([np.float32, np.float32, np.int64])
    g.take("Pow", [g.values[-1], g.constant(kind(exponent))], x)


def grow_bits(g):
    x = g.value(*INTS, *NARROW)
    if g.opset < 18 or g.one_in(4):
        x = g.value(np.uint8, np.uint32, np.uint64)
        amounts = g.constant(g.rng.integers(0, 8, x.shape[-1:]).astype(x.dtype))
        g.take("BitShift", [x, amounts], x, exact=True, direction=g.pick(["LEFT", "RIGHT"]))
    elif g.one_in(3):
        g.take("BitwiseNot", [x], x, exact=True)
    else:
        y = g.constant(g.rng.integers(0, 100, x.shape[-1:]).astype(x.dtype))
        g.take(g.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [x, y], x, exact=True)


def grow_narrow_integers(g):
    x = g.value(*INTS, *NARROW, np.bool_, exact=True)
    to = g.pick([*NARROW, *INTS, np.float32])
    if g.one_in(3):
        g.take("CastLike", [x, g.constant(np.zeros(1, to))], x, dtype=to, exact=True)
    else:
        g.take("Cast", [x], x, dtype=to, exact=True, to=tensor_type(to))


def grow_fewer_bits(g):
    """There, perhaps a step, and back: what is lost is the same everywhere."""
    x = floats(g, least=0, exact=True)
    to = g.pick([TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
    y = g.take("Cast", [x], x, hidden=True, to=to)
    if to == TensorProto.FLOAT16 and g.one_in(2):
        y = g.take(g.pick(["Relu", "Abs", "Neg"]), [y], y, hidden=True)
    g.take("Cast", [y], x, exact=True, to=TensorProto.FLOAT)


def grow_variadic(g):
    x = floats(g, least=0)
    parts = [v for v in g.values if v.dtype == x.dtype and v.shape == x.shape]
    parts = [g.pick(parts) for _ in range(1 + g.below(4))]
    op = g.pick(["Sum", "Mean", "Max", "Min"])
    g.take(op, parts, x, exact=op in ("Max", "Min") and all(v.exact for v in parts))


# ---- Shapes and choosing ----------------------------------------------------------------------

def grow_flat(g):
    x = g.value(least=1)
    if g.one_in(2):
        axis = g.below(len(x.shape) + 1)
        g.take("Flatten", [x], x, [np.prod(x.shape[:axis]), np.prod(x.shape[axis:])], exact=x.exact,
               axis=axis)
        return
    ones = [i for i, e in enumerate(x.shape) if e == 1 and g.below(3)]
    if ones:
        g.take("Squeeze", [x, g.ints(*ones)], x, [e for i, e in enumerate(x.shape) if i not in ones],
               exact=x.exact)


def grow_by_shape(g):
    """As exporters do: a shape taken apart at run time, put together, and used."""
    x = g.value(least=2)
    g.take("Shape", [x], shape=[len(x.shape)], dtype=np.int64, exact=True)
    g.take("Gather", [g.values[-1], g.ints(0)], shape=[1], dtype=np.int64, exact=True)
    g.take("Concat", [g.values[-1], g.ints(-1)], shape=[2], dtype=np.int64, exact=True, axis=0)
    g.take("Reshape", [x, g.values[-1]], x, [x.shape[0], np.prod(x.shape[1:])], exact=x.exact)


def grow_blocks(g):
    x = floats(g, rank=4)
    n, c, h, w = x.shape
    b = g.pick([1, 2, 3])
    if h % b == 0 and w % b == 0 and g.one_in(2):
        g.take("SpaceToDepth", [x], x, [n, c * b * b, h // b, w // b], exact=x.exact, blocksize=b)
    elif c % (b * b) == 0:
        g.take("DepthToSpace", [x], x, [n, c // b // b, h * b, w * b], exact=x.exact, blocksize=b,
               mode=g.pick(["DCR", "CRD"]))


def grow_triangle(g):
    x = g.value(np.float32, np.int64, np.int32, least=2)
    g.take("Trilu", [x, g.constant(np.int64(g.below(5) - 2))], x, exact=x.exact, upper=g.below(2))


def grow_made(g):
    """Tensors out of nothing, added."""
    x = floats(g, least=2)
    rows, columns = x.shape[-2:]
    if g.one_in(3):
        eye = g.take("ConstantOfShape", [g.ints(rows, columns)], shape=[rows, columns],
                     dtype=np.float32, exact=True,
                     value=helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5]))
    elif g.one_in(2):
        eye = g.take("EyeLike", [g.constant(np.zeros((rows, columns), np.float32))],
                     shape=[rows, columns], dtype=np.float32, exact=True, k=g.below(3) - 1)
    else:
        eye = g.take("Range", [g.constant(np.float32(v)) for v in (1, 1 + columns, 1)],
                     shape=[columns], dtype=np.float32, exact=True)
    g.take("Add", [x, eye], x)


def grow_left_over(g):
    """Grows what exporters leave behind: constants that are nodes, Dropout, sizes."""
    x = floats(g, least=1)
    weight = g.take("Constant", [], shape=[x.shape[-1]], dtype=np.float32, exact=True,
                    value=helper.make_tensor("c", TensorProto.FLOAT, [x.shape[-1]],
                                             g.numbers([x.shape[-1]], np.float32)))
    y = g.take("Mul", [x, weight], x)
    y = g.take("Dropout", [y], y)
    if g.one_in(2):
        size = g.take("Size", [x], shape=[], dtype=np.int64, exact=True)
        size = g.take("Cast", [size], size, dtype=np.float32, exact=True, to=TensorProto.FLOAT)
        g.take("Div", [y, size], y)


def grow_window(g):
    x = floats(g)
    if x.shape[-1] == 1:  # 0 / 0 by the standard's formula
        return
    op = g.pick(["HannWindow", "HammingWindow", "BlackmanWindow"])
    window = g.take(op, [g.constant(np.int64(x.shape[-1]))], shape=x.shape[-1:], dtype=np.float32,
                    periodic=g.below(2))
    # Its ends are 0 but for rounding; alone they have no right digits to compare.
    window = g.take("Add", [window, g.constant(np.float32(0.5))], window)
    g.take("Mul", [x, window], x)


def grow_grams(g):
    x = g.value(np.int64, np.int32, rank=2)
    pool = sorted({g.below(5) - 2 for _ in range(4)})
    pairs = [g.below(5) - 2 for _ in range(4)]
    count = len(pool) + 2
    g.take("TfIdfVectorizer", [x], x, [x.shape[0], count], np.float32, True, mode="TF",
           min_gram_length=1, max_gram_length=2, max_skip_count=g.below(3),
           ngram_counts=[0, len(pool)], ngram_indexes=list(range(count)),
           pool_int64s=pool + (pairs if pairs[:2] != pairs[2:] else [0, 1, 1, 0]))


def grow_one_hot(g):
    x = g.value(np.int64)
    axis = g.below(len(x.shape) + 1)
    if not x.shape:
        return
    depth = g.pick([1, 3, 7])
    g.take("OneHot", [x, g.constant(np.int64(depth)), g.constant(np.float32([-0.5, 1]))], x,
           [*x.shape[:axis], depth, *x.shape[axis:]], np.float32, True, axis=axis)


def grow_nd(g):
    """Places that are rows of a tensor."""
    x = g.value(np.float32, np.int64, least=1)
    depth = 1 + g.below(len(x.shape))
    count = [1 + g.below(4) for _ in range(g.below(2))] + [1 + g.below(3)]
    places = np.stack([g.rng.integers(0, e, count) for e in x.shape[:depth]], -1)
    rest = x.shape[depth:]
    if g.one_in(2):
        g.take("GatherND", [x, g.constant(places)], x, [*count, *rest], exact=x.exact)
        return
    way = g.pick(["none", "add", "mul", "max", "min"] if g.opset >= 18 else ["none"])
    if way == "none":  # of places that are given twice nobody says who wins
        flat = np.ravel_multi_index(tuple(np.moveaxis(places, -1, 0)), x.shape[:depth]).ravel()
        if len(set(flat.tolist())) < flat.size:
            return
    g.take("ScatterND", [x, g.constant(places), g.random([*count, *rest], x.dtype)], x,
           exact=x.exact and (way in ("none", "max", "min") or x.dtype != np.float32),
           reduction=way)


def grow_scatter(g):
    x = g.value(np.float32, np.int64, least=1)
    axis = g.below(len(x.shape))
    shape = [1 + g.below(e) for e in x.shape]
    way = g.pick(["none", "add", "mul", "max", "min"] if g.opset >= 18 else ["none"])
    extent = x.shape[axis]
    if way == "none":
        places = np.argsort(g.rng.random([*shape[:axis], extent, *shape[axis + 1:]]), axis)
        places = np.take(places, range(shape[axis]), axis)
    else:
        places = g.rng.integers(-extent, extent, shape)
    g.take("ScatterElements", [x, g.constant(places), g.random(shape, x.dtype)], x,
           exact=x.exact and (way in ("none", "max", "min") or x.dtype != np.float32), axis=axis,
           reduction=way)


def grow_compress(g):
    x = g.value(least=1)
    axis = g.below(len(x.shape))
    kept = g.rng.integers(0, 2, x.shape[axis]).astype(bool)
    if kept.any():
        g.take("Compress", [x, g.constant(kept)], x,
               [*x.shape[:axis], kept.sum(), *x.shape[axis + 1:]], exact=x.exact, axis=axis)


def grow_reverse(g):
    x = floats(g, least=2)
    lengths = g.constant(g.rng.integers(1, x.shape[0] + 1, x.shape[1]))
    g.take("ReverseSequence", [x, lengths], x, exact=x.exact, time_axis=0, batch_axis=1)


def grow_largest(g):
    x = floats(g, exact=True)
    axis = g.below(len(x.shape))
    k = 1 + g.below(x.shape[axis])
    shape = [*x.shape[:axis], k, *x.shape[axis + 1:]]
    g.take("TopK", [x, g.ints(k)], x, shape, exact=True, axis=axis, largest=g.below(2), sorted=1,
           more=[(shape, np.int64, True)])


def grow_hard(g):
    x = floats(g, exact=True)
    g.take("Hardmax", [x], x, exact=True, axis=g.below(len(x.shape)))


def grow_crop(g):
    x = floats(g)
    if g.opset >= 18:
        axis = g.below(len(x.shape))
        size = 1 + g.below(x.shape[axis] + 2)
        g.take("CenterCropPad", [x, g.ints(size)], x,
               [*x.shape[:axis], size, *x.shape[axis + 1:]], exact=x.exact, axes=[axis])


# ---- Along axes -------------------------------------------------------------------------------

def grow_more_reductions(g):
    x = floats(g)
    g.take("Abs", [x], x)
    g.take("Add", [g.values[-1], g.constant(np.float32(0.5))], x)
    axis, keep = g.below(len(x.shape)), g.below(2)
    shape = [1 if i == axis else e for i, e in enumerate(x.shape) if keep or i != axis]
    op = g.pick(["ReduceProd", "ReduceLogSum", "LpNormalization", "MeanVarianceNormalization"])
    inputs = [g.values[-1]]
    if op == "LpNormalization":
        g.take(op, inputs, x, axis=axis, p=1 + g.below(2))
    elif op == "MeanVarianceNormalization":  # of what varies: without, nothing or 0 / 0
        spread = g.constant(np.linspace(-9, 9, int(np.prod(x.shape)), dtype=np.float32)
                            .reshape(x.shape))
        if x.shape[axis] > 2:
            g.take(op, [g.take("Add", [x, spread], x)], x, axes=[axis])
    elif g.opset >= 18:
        g.take(op, [*inputs, g.ints(axis)], x, shape, keepdims=keep)
    else:
        g.take(op, inputs, x, shape, axes=[axis], keepdims=keep)


def grow_more_norms(g):
    x = floats(g, least=3)
    c, kind = x.shape[1], g.below(3)
    if kind == 0 and len(x.shape) == 4:
        g.take("LRN", [x], x, size=1 + 2 * g.below(3), alpha=0.5, beta=0.75, bias=1.5)
    elif kind == 1 and g.opset >= 21:
        groups = g.pick([f for f in range(1, c + 1) if c % f == 0])
        g.take("GroupNormalization", [x, g.random([c]), g.random([c])], x, num_groups=groups,
               epsilon=0.5)
    elif kind == 2 and g.opset >= 23:
        axis = 1 + g.below(len(x.shape) - 1)
        g.take("RMSNormalization", [x, g.random(x.shape[axis:])], x, axis=axis, epsilon=0.5)


def grow_lp_pool(g):
    x = floats(g, rank=4)
    kernel = [1 + g.below(min(3, e)) for e in x.shape[2:]]
    strides = [1 + g.below(2) for _ in kernel]
    out = [(e - k) // s + 1 for e, k, s in zip(x.shape[2:], kernel, strides)]
    g.take("LpPool", [x], x, [*x.shape[:2], *out], kernel_shape=kernel, strides=strides,
           p=1 + g.below(2))


def grow_pool_with_places(g):
    x = floats(g, rank=4, exact=True)
    kernel = [1 + g.below(min(3, e)) for e in x.shape[2:]]
    strides = [1 + g.below(3) for _ in kernel]
    shape = [*x.shape[:2], *[(e - k) // s + 1 for e, k, s in zip(x.shape[2:], kernel, strides)]]
    g.take("MaxPool", [x], x, shape, exact=True, kernel_shape=kernel, strides=strides,
           more=[(shape, np.int64, True)])


def grow_unpool(g):
    x = floats(g, rank=4, exact=True)
    if x.shape[2] % 2 or x.shape[3] % 2:  # of places in a larger result ONNX Runtime has its own idea
        return
    shape = [*x.shape[:2], *[e // 2 for e in x.shape[2:]]]
    places = [(shape, np.int64, True)]
    y = g.take("MaxPool", [x], x, shape, exact=True, kernel_shape=[2, 2], strides=[2, 2],
               more=places)
    size = g.ints(*x.shape)
    g.take("MaxUnpool", [y, g.values[-2], size], x, exact=True, kernel_shape=[2, 2],
           strides=[2, 2])


# ---- Products ---------------------------------------------------------------------------------

EQUATIONS = {2: ["ij,jk->ik", "ij,kj->ik", "ij,ik->jk", "ij,ij->i", "ij,jk->ki"],
             3: ["bij,bjk->bik", "bij,kj->bki", "bij,bkj->bik", "bij,bij->bj", "bij,jk->ibk"],
             4: ["bhij,bhjk->bihk", "bhij,hj->bih", "bhij,bhkj->bhik", "bhij,jk->bkhi"]}


def grow_einsum(g):
    x = floats(g, least=2)
    equation = g.pick(EQUATIONS[len(x.shape)]) if len(x.shape) in EQUATIONS else None
    if not equation:
        return
    left, (right, result) = equation.split(",")[0], equation.split(",")[1].split("->")
    sizes = dict(zip(left, x.shape)) | {c: g.pick([1, 3, 7]) for c in right if c not in left}
    y = g.random([sizes[c] for c in right], low=-1, high=1)
    g.take("Einsum", [x, y], x, [sizes[c] for c in result], equation=equation)


def linear(g, x, columns, bias=True):
    y = g.take("MatMul", [x, g.random([x.shape[-1], columns], low=-1, high=1)], x,
               [*x.shape[:-1], columns])
    return g.take("Add", [y, g.random([columns])], y) if bias else y


def heads_of(g, x, heads, size, perm):
    b, s, _ = x.shape
    y = g.take("Reshape", [x, g.ints(b, s, heads, size)], x, [b, s, heads, size])
    return g.take("Transpose", [y], y, [y.shape[i] for i in perm], perm=perm)


def grow_attention(g):
    """Attention as exporters write it out."""
    x = floats(g, rank=3)
    b, s, _ = x.shape
    heads, size = g.pick([1, 2, 3]), g.pick([1, 4, 5])
    q, k, v = (heads_of(g, linear(g, x, heads * size, g.one_in(2)), heads, size, perm)
               for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]))
    scores = g.take("MatMul", [q, k], x, [b, heads, s, s])
    scores = g.take(g.pick(["Mul", "Div"]), [scores, g.constant(np.float32(0.375))], scores)
    if g.one_in(2):
        mask = np.triu(np.full((s, s), -1e4, np.float32), 1)
        scores = g.take("Add", [scores, g.constant(mask)], scores)
    weights = g.take("Softmax", [scores], scores, axis=-1)
    y = g.take("MatMul", [weights, v], x, [b, heads, s, size])
    y = g.take("Transpose", [y], x, [b, s, heads, size], perm=[0, 2, 1, 3])
    y = g.take("Reshape", [y, g.ints(0, 0, -1)], x, [b, s, heads * size])
    y = linear(g, y, x.shape[-1])
    g.take("Add", [y, x], x)


def grow_attention_operator(g):
    x = floats(g, rank=4)
    if g.opset < 23:
        return
    b, heads, s, d = x.shape
    keys = g.pick([1, 3, 7])
    if g.one_in(3) and d % 2 == 0:
        angles = [g.random([s + 1, d // 2], low=-1, high=1) for _ in range(2)]
        places = g.constant(g.rng.integers(0, s + 1, [b, s]))
        g.take("RotaryEmbedding", [x, *angles, places], x, interleaved=g.below(2))
        return
    k = g.random([b, heads, keys, d], low=-1, high=1)
    v = g.random([b, heads, keys, 3], low=-1, high=1)
    g.take("Attention", [x, k, v], x, [b, heads, s, 3], is_causal=g.below(2),
           softcap=g.pick([0.0, 2.0]))


def grow_feed_forward(g):
    """Two products, and GELU as it was written before it had a name."""
    x = floats(g, least=2)
    h = linear(g, x, g.pick([3, 8, 17]))
    e = g.take("Div", [h, g.constant(np.float32(2 ** 0.5))], h)
    e = g.take("Erf", [e], h)
    e = g.take("Add", [e, g.constant(np.float32(1))], h)
    h = g.take("Mul", [h, e], h)
    h = g.take("Mul", [h, g.constant(np.float32(0.5))], h)
    h = linear(g, h, x.shape[-1])
    g.take("Add", [x, h], x)


def grow_written_norm(g):
    """Layer normalisation in its nine steps."""
    x = floats(g, least=2)
    rows = [*x.shape[:-1], 1]
    axes = ([g.ints(-1)], {}) if g.opset >= 18 else ([], {"axes": [-1]})
    mean = g.take("ReduceMean", [x, *axes[0]], x, rows, **axes[1])
    centred = g.take("Sub", [x, mean], x)
    square = g.take("Pow", [centred, g.constant(np.float32(2))], x)
    variance = g.take("ReduceMean", [square, *axes[0]], x, rows, **axes[1])
    variance = g.take("Add", [variance, g.constant(np.float32(0.5))], x, rows)
    deviation = g.take("Sqrt", [variance], x, rows)
    y = g.take("Div", [centred, deviation], x)
    y = g.take("Mul", [y, g.random(x.shape[-1:])], x)
    g.take("Add", [y, g.random(x.shape[-1:])], x)


def grow_gate(g):
    """Squeeze and excite."""
    x = floats(g, rank=4)
    n, c, few = *x.shape[:2], g.pick([1, 3, 5])
    y = g.take("GlobalAveragePool", [x], x, [n, c, 1, 1])
    y = g.take("Conv", [y, g.random([few, c, 1, 1], low=-1, high=1)], x, [n, few, 1, 1])
    y = g.take("Relu", [y], y)
    y = g.take("Conv", [y, g.random([c, few, 1, 1], low=-1, high=1)], x, [n, c, 1, 1])
    y = g.take(g.pick(["Sigmoid", "HardSigmoid"]), [y], y)
    g.take("Mul", [x, y], x)


# ---- Numbers of few bits ----------------------------------------------------------------------

def quantized(g):
    """An exact value in eight bits: scales are powers of two, so that all rounding is one rounding."""
    x = floats(g, exact=True)
    kind = g.pick([np.uint8, np.int8])
    zero = kind(g.below(20))
    y = g.take("QuantizeLinear", [x, g.constant(np.float32(0.125)), g.constant(zero)], x,
               dtype=kind, exact=True)
    return y, zero


def grow_quantize(g):
    q, zero = quantized(g)
    if g.one_in(2):
        g.take("DequantizeLinear", [q, g.constant(np.float32(0.125)), g.constant(zero)], q,
               dtype=np.float32, exact=True)


def grow_quantized_product(g):
    q, zero = quantized(g)
    if len(q.shape) < 2:
        return
    n = g.pick([1, 3, 8, 17])
    weights = g.constant(g.rng.integers(-9, 10, (q.shape[-1], n)).astype(np.int8))
    shape = [*q.shape[:-1], n]
    if g.one_in(2):
        g.take("MatMulInteger", [q, weights, g.constant(zero)], q, shape, np.int32, True)
    else:
        scale = [g.constant(np.float32(s)) for s in (0.125, 0.25, 0.5)]
        kind = q.dtype
        g.take("QLinearMatMul", [q, scale[0], g.constant(zero), weights, scale[1],
                                 g.constant(np.int8(0)), scale[2], g.constant(kind(3))], q, shape,
               kind, True)


def grow_quantized_conv(g):
    q, zero = quantized(g)
    if len(q.shape) != 4:
        return
    filters, c = g.pick([1, 3, 8, 17]), q.shape[1]
    kernel = [1 + g.below(min(3, e)) for e in q.shape[2:]]
    pads = [g.below(k) for k in kernel * 2]
    out = [e + pads[i] + pads[i + 2] - k + 1 for i, (e, k) in enumerate(zip(q.shape[2:], kernel))]
    weights = g.rng.integers(-9, 10, (filters, c, *kernel))
    shape = [q.shape[0], filters, *out]
    if q.dtype == np.uint8 and g.one_in(2):
        w = g.constant((weights + 9).astype(np.uint8))
        g.take("ConvInteger", [q, w, g.constant(zero), g.constant(np.uint8(9))], q, shape, np.int32,
               True, kernel_shape=kernel, pads=pads)
        return
    scale = [g.constant(np.float32(s)) for s in (0.125, 0.25, 0.5)]
    bias = [g.constant(g.rng.integers(-99, 99, filters).astype(np.int32))] * g.below(2)
    g.take("QLinearConv", [q, scale[0], g.constant(zero), g.constant(weights.astype(np.int8)),
                           scale[1], g.constant(np.int8(0)), scale[2], g.constant(q.dtype(3)),
                           *bias], q, shape, exact=True, kernel_shape=kernel, pads=pads)


# ---- Resampling -------------------------------------------------------------------------------

def grow_resize(g):
    x = floats(g, rank=4)
    mode = g.pick(["nearest", "linear", "cubic"])
    coordinates = g.pick(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    scales = [1, 1, *(g.pick([1, 2, 3, 0.5, 1.5] if mode != "nearest" else [1, 2, 4]) for _ in "hw")]
    if mode == "nearest":  # a value halfway between two is rounded as the text says
        coordinates = "asymmetric"
    shape = [int(np.floor(e * s)) for e, s in zip(x.shape, scales)]
    whole = all(e * s == size for e, s, size in zip(x.shape, scales, shape))
    if coordinates in ("align_corners", "pytorch_half_pixel") and not whole:
        coordinates = "half_pixel"  # ONNX Runtime takes the size of the result, not what it was cut from
    if min(shape) < 1 or (coordinates == "align_corners" and min(shape[2:]) < 2):
        return
    attributes = {"nearest_mode": g.pick(["floor", "ceil", "round_prefer_floor"])}
    g.take("Resize", [x, "", g.constant(np.float32(scales))], x, shape,
           exact=x.exact and mode == "nearest", mode=mode,
           coordinate_transformation_mode=coordinates,
           **(attributes if mode == "nearest" else {}))


def grow_sample(g):
    x = floats(g, rank=4)
    n, c, h, w = x.shape
    out = [1 + g.below(5), 1 + g.below(5)]
    grid = g.rng.uniform(-1.2, 1.2, (n, *out, 2)).astype(np.float32)
    names = ["bilinear", "bicubic"] if g.opset < 20 else ["linear", "cubic"]
    g.take("GridSample", [x, g.constant(grid)], x, [n, c, *out], mode=g.pick(names),
           padding_mode=g.pick(["zeros", "border", "reflection"]), align_corners=g.below(2))


def grow_turned(g):
    x = floats(g, rank=4)
    n, c, h, w = x.shape
    if g.opset < 20:
        return
    aligned = g.below(2)
    out = [1 + aligned + g.below(5), 2 + g.below(5)]  # the standard leaves the position of a single aligned line open
    theta = g.constant(g.rng.uniform(-1, 1, (n, 2, 3)).astype(np.float32))
    grid = g.take("AffineGrid", [theta, g.ints(n, c, *out)], x, [n, *out, 2], hidden=True,
                  align_corners=aligned)
    g.take("GridSample", [x, grid], x, [n, c, *out], align_corners=aligned)


def grow_offsets(g):
    x = floats(g, rank=4)
    n, c, h, w = x.shape
    if g.opset < 19 or min(h, w) < 2:
        return
    filters, out = 1 + g.below(4), [h - 1, w - 1]
    offsets = g.constant(g.rng.uniform(-1, 1, (n, 8, *out)).astype(np.float32))
    g.take("DeformConv", [x, g.random([filters, c, 2, 2], low=-1, high=1), offsets], x,
           [n, filters, *out], kernel_shape=[2, 2])


def grow_regions(g):
    x = floats(g, rank=4)
    n, c, h, w = x.shape
    if g.opset >= 22:  # ONNX Runtime does not have it
        return
    count = 1 + g.below(3)
    corners = np.sort(g.rng.uniform(0, 1, (count, 2, 2)), 1) * [w, h]
    rois = g.constant(corners.reshape(count, 4).astype(np.float32))
    whose = g.constant(g.rng.integers(0, n, count))
    g.take("RoiAlign", [x, rois, whose], x, [count, c, 2, 3], output_height=2, output_width=3,
           sampling_ratio=2, spatial_scale=1.0)


def grow_fourier(g):
    x = floats(g, rank=3)
    if x.shape[-1] not in (1, 2) or g.opset < 20:
        return
    g.take("DFT", [x, "", g.constant(np.int64(1))], x, [*x.shape[:2], 2], inverse=0)


def grow_determinant(g):
    x = floats(g, least=2)
    if x.shape[-1] == x.shape[-2] and x.shape[-1] < 4:
        g.take("Det", [x], x, x.shape[:-2])


# ---- Recurrences, loops, branches -------------------------------------------------------------

def grow_recurrent(g):
    x = floats(g, rank=3)
    t, n, c = x.shape
    op, gates = g.pick([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    hidden, direction = g.pick([1, 3, 5]), g.pick(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    inputs = [x, g.random([d, gates * hidden, c], low=-1, high=1),
              g.random([d, gates * hidden, hidden], low=-1, high=1)]
    inputs += [g.random([d, 2 * gates * hidden], low=-1, high=1)] * g.below(2)
    attributes = {"linear_before_reset": g.below(2)} if op == "GRU" else {}
    g.take(op, inputs, x, [t, d, n, hidden], hidden_size=hidden, direction=direction,
           more=[([d, n, hidden], np.float32, False)], **attributes)


def inner(g, nodes, inputs, outputs, name):
    info = [[helper.make_tensor_value_info(n, tensor_type(t), s) for n, t, s in side]
            for side in (inputs, outputs)]
    return helper.make_graph(nodes, name, *info)


def grow_loop(g):
    x = floats(g, least=0)
    i, state, go, weight = (g.name() for _ in range(4))
    twice, after, still = (g.name() for _ in range(3))
    nodes = [helper.make_node("Constant", [], [weight], value_float=0.75),
             helper.make_node("Mul", [state, weight], [twice]),
             helper.make_node(g.pick(["Add", "Sub", "Max"]), [twice, x.name], [after]),
             helper.make_node("Identity", [go], [still])]
    trips, scans = 1 + g.below(4), g.below(2)
    body = inner(g, nodes, [(i, np.int64, []), (go, np.bool_, []), (state, np.float32, x.shape)],
                 [(still, np.bool_, []), (after, np.float32, x.shape)]
                 + [(twice, np.float32, x.shape)] * scans, "body")
    g.take("Loop", [g.constant(np.int64(trips)), "", x], x, body=body,
           more=[([trips, *x.shape], np.float32, False)] * scans)


def grow_scan(g):
    x = floats(g, least=1)
    rest = x.shape[1:]
    state, item, after, out = (g.name() for _ in range(4))
    nodes = [helper.make_node(g.pick(["Add", "Mul", "Max"]), [state, item], [after]),
             helper.make_node(g.pick(["Tanh", "Identity"]), [after], [out])]
    body = inner(g, nodes, [(state, np.float32, rest), (item, np.float32, rest)],
                 [(after, np.float32, rest), (out, np.float32, rest)], "body")
    g.take("Scan", [g.random(rest), x], x, rest, body=body, num_scan_inputs=1,
           scan_input_directions=[g.below(2)], more=[(x.shape, np.float32, False)])


def grow_branch(g):
    x = floats(g, least=0)
    conditions = [v for v in g.values if v.dtype == np.bool_ and not v.shape and v.exact]
    condition = g.pick(conditions) if conditions and g.one_in(2) else g.constant(
        np.bool_(g.below(2)))
    branches = []
    for op in (g.pick(["Tanh", "Abs"]), g.pick(["Neg", "Sigmoid"])):
        name = g.name()
        branches.append(inner(g, [helper.make_node(op, [x.name], [name])], [],
                              [(name, np.float32, x.shape)], op))
    g.take("If", [condition], x, then_branch=branches[0], else_branch=branches[1])


def grow_sequence(g):
    """A tensor taken apart into a sequence, of which parts come back."""
    x = floats(g, least=1)
    axis = g.below(len(x.shape))
    parts = g.take("SplitToSequence", [x], x, axis=axis, keepdims=1, hidden=True)
    item = [*x.shape[:axis], 1, *x.shape[axis + 1:]]
    kind = g.below(3)
    if kind == 0:
        place = g.constant(np.int64(g.below(x.shape[axis])))
        g.take("SequenceAt", [parts, place], x, item, exact=x.exact)
        return
    if kind == 1:
        one = g.take("SequenceAt", [parts, g.constant(np.int64(-1))], x, item, exact=x.exact)
        parts = g.take("SequenceInsert", [parts, one], x, hidden=True)
        item[axis] = 1 + x.shape[axis]
    else:
        item[axis] = x.shape[axis]
    g.take("ConcatFromSequence", [parts], x, item, exact=x.exact, axis=axis)


# ---- Features and trees -----------------------------------------------------------------------

def grow_features(g):
    x = floats(g, rank=2, exact=True)
    if g.one_in(2):
        g.take("Binarizer", [x], x, exact=True, threshold=0.5, domain="ai.onnx.ml")
    else:
        kept = g.rng.integers(0, x.shape[1], 3)
        g.take("ArrayFeatureExtractor", [x, g.constant(kept)], x, [x.shape[0], 3], exact=True,
               domain="ai.onnx.ml")


def grow_tree(g):
    """One tree of depth two for each of up to three targets."""
    x = floats(g, rank=2, exact=True)
    trees = 1 + g.below(3)
    splits = g.rng.integers(-8, 8, 3 * trees) / 4

    def tensor(name, values):
        return helper.make_tensor(name, TensorProto.FLOAT, [len(values)], values)
    below = [(3 * t + 1, 3 * t + 2, 0) if i == 0 else (4 * t + 2 * i - 2, 4 * t + 2 * i - 1, 1)
             for t in range(trees) for i in range(3)]
    g.take("TreeEnsemble", [x], x, [x.shape[0], trees], domain="ai.onnx.ml", n_targets=trees,
           aggregate_function=1, post_transform=0, tree_roots=[3 * t for t in range(trees)],
           nodes_featureids=[g.below(x.shape[1]) for _ in range(3 * trees)],
           nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [3 * trees],
                                          [g.below(4) for _ in range(3 * trees)]),
           nodes_splits=tensor("s", splits),
           nodes_truenodeids=[b[0] for b in below], nodes_falsenodeids=[b[1] for b in below],
           nodes_trueleafs=[b[2] for b in below], nodes_falseleafs=[b[2] for b in below],
           leaf_targetids=[t for t in range(trees) for _ in range(4)],
           leaf_weights=tensor("w", g.rng.integers(-8, 8, 4 * trees) / 4))
