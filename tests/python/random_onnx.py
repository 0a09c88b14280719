#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random ONNX graphs: operators, types, shapes and attributes drawn by chance, compiled and run by
Pleat and by ONNX Runtime.

    random_onnx.py 1000 1            a thousand graphs from seed 1
    random_onnx.py 1 4711 --save x.onnx

Extents are small and odd: 1, primes, what no block divides. A value is "exact" when both sides must
have the same bits; only those reach what jumps (rounding, comparing, casting to integers). A graph
that either side refuses is counted, with the reason. The seed also says for which processor, on how
many threads, and with how much work code is made: a quarter of the graphs with all of it, and another
quarter has a constant that is read as inputs are.
"""
import argparse
import collections
import sys

import numpy as np
import onnx
import random_growers
from built import ROOT
from onnx import helper, numpy_helper

sys.path.insert(0, str(ROOT / "scripts"))

OPSETS, MOST_ELEMENTS = (17, 17, 21, 23), 8000
Value = collections.namedtuple("Value", "name shape dtype exact")
FLOATS, INTS = (np.float32, np.float64), (np.int32, np.int64)


class Unfit(Exception):
    """The graph so far has no value that suits the operator that was to be added."""


class Graph:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.opset = self.pick(OPSETS)
        self.nodes, self.constants, self.values, self.inputs = [], [], [], []
        self.count = 0

    # ---- Chance

    def below(self, n):
        return int(self.rng.integers(n))

    def one_in(self, n):
        return self.below(n) == 0

    def pick(self, things):
        return things[self.below(len(things))]

    def value(self, *kinds, rank=None, least=0, exact=False):
        """A value so far of such a type and rank; the newest are the most likely."""
        fits = [v for v in self.values if (not kinds or v.dtype in kinds)
                and (rank is None or len(v.shape) == rank) and len(v.shape) >= least
                and (v.exact or not exact)]
        if not fits:
            raise Unfit
        return fits[-1 - min(self.below(len(fits)), self.below(len(fits)))]

    # ---- Building

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def numbers(self, shape, dtype, low=-2, high=2):
        """Multiples of 1/8, which sums and products of a few keep exactly."""
        values = self.rng.integers(8 * low, 8 * high + 1, shape) / 8
        if dtype == np.bool_:
            return values > 0
        if dtype in FLOATS:
            return values.astype(dtype)
        lowest = 0 if np.dtype(dtype).kind == "u" else 4 * low
        return self.rng.integers(lowest, 4 * high + 1, shape).astype(dtype)

    def constant(self, array):
        name = self.name()
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def random(self, shape, dtype=np.float32, **limits):
        return self.constant(self.numbers(tuple(shape), dtype, **limits))

    def input(self, shape, dtype):
        value = Value(f"x{len(self.inputs)}", tuple(shape), dtype, True)
        self.inputs.append(value)
        self.values.append(value)

    def known(self, shape, dtype):
        """A constant that operators read as they read inputs."""
        name = self.random(shape, dtype)
        self.values.append(Value(name, tuple(shape), dtype, True))

    def take(self, op, inputs, like=None, shape=None, dtype=None, exact=False, outputs=1, more=(),
             hidden=False, **attributes):
        """Adds the node whose first result is of this shape and type; `like` gives both. `more` has
        (shape, dtype, exact) of further results. One that is hidden is no value that others find."""
        shape = tuple(int(e) for e in (like.shape if shape is None else shape))
        if np.prod(shape, dtype=float) > MOST_ELEMENTS or len(shape) > 6:
            raise Unfit
        names = [self.name() for _ in range(max(outputs, 1 + len(more)))]
        names_in = [v.name if isinstance(v, Value) else v for v in inputs]
        self.nodes.append(helper.make_node(op, names_in, names, **attributes))
        result = Value(names[0], shape, dtype or like.dtype, exact)
        kept = [] if hidden else [Value(name, tuple(int(e) for e in s), t, e)
                                  for name, (s, t, e) in zip(names[1:], more)] + [result]
        self.values += kept
        return result

    def model(self):
        results = [self.values[-1]]
        if len(self.values) > 3 and self.one_in(2):
            results.append(self.pick(self.values[len(self.inputs):-1]))
        bodies = [a.g for node in self.nodes for a in node.attribute if a.HasField("g")]
        used = {name for nodes in (self.nodes, *(body.node for body in bodies)) for node in nodes
                for name in node.input}

        def info(v):
            return helper.make_tensor_value_info(
                v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), v.shape)
        graph = helper.make_graph(
            self.nodes, "random", [info(v) for v in self.inputs if v.name in used],
            [info(v) for v in dict.fromkeys(results)], self.constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("ai.onnx.ml", 5)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


# ---- Elementwise ------------------------------------------------------------------------------

def grow_unary(g):
    x = g.value(*FLOATS)
    smooth = ["Sigmoid", "Tanh", "Erf", "Sin", "Cos", "Softplus", "Softsign", "HardSigmoid", "Elu",
              "Selu", "Celu", "HardSwish", "Atan", "Asinh"]
    kept = ["Relu", "Abs", "Neg", "Identity"]
    if x.dtype == np.float64:
        smooth = ["Sigmoid", "Tanh", "Sin", "Cos", "Softplus"]
    op = g.pick(smooth + kept * 3)
    attributes = {"alpha": 0.25} if op in ("Elu", "HardSigmoid") else {}
    g.take(op, [x], x, exact=x.exact and op in kept, **attributes)


def grow_jump(g):
    x = g.value(np.float32, exact=True)
    g.take(g.pick(["Floor", "Ceil", "Round", "Sign"]), [x], x, exact=True)


def grow_domain(g):
    """Functions of what is positive."""
    x = g.value(np.float32)
    g.take("Abs", [x], x, exact=x.exact)
    g.take("Add", [g.values[-1], g.constant(np.float32(0.5))], x, exact=x.exact)
    g.take(g.pick(["Sqrt", "Log", "Reciprocal"]), [g.values[-1]], x)


def broadcast(g, x):
    """An operand that broadcasts with x: an earlier value or a constant, and the joint shape."""
    for other in g.values[::-1]:
        try:
            shape = np.broadcast_shapes(x.shape, other.shape)
        except ValueError:
            continue
        if other.dtype == x.dtype and other.name != x.name and g.one_in(2):
            return other, shape
    shape = [e if g.one_in(2) else 1 for e in x.shape][g.below(len(x.shape) + 1):]
    array = g.numbers(tuple(shape), x.dtype)
    return Value(g.constant(array), tuple(shape), x.dtype, True), x.shape


def grow_binary(g):
    x = g.value(*FLOATS, *INTS)
    y, shape = broadcast(g, x)
    op = g.pick(["Add", "Add", "Sub", "Mul", "Max", "Min"])
    exact = x.dtype in INTS or (x.exact and y.exact and op in ("Max", "Min"))
    operands = [y, x] if g.one_in(3) else [x, y]
    g.take(op, operands, x, shape, exact=exact)


def grow_division(g):
    x = g.value(*FLOATS, *INTS)
    array = g.numbers(x.shape[-1:], x.dtype)
    divisor = g.constant(np.where(array == 0, x.dtype(3), array).astype(x.dtype))
    op = "Mod" if x.dtype in INTS and g.one_in(2) else "Div"
    g.take(op, [x, divisor], x, exact=x.dtype in INTS)


def grow_comparison(g):
    x = g.value(np.float32, *INTS, exact=True)
    y, shape = broadcast(g, x)
    if y.exact:
        op = g.pick(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
        g.take(op, [x, y], x, shape, np.bool_, exact=True)


def grow_logic(g):
    x = g.value(np.bool_)
    if g.one_in(3):
        g.take("Not", [x], x, exact=x.exact)
    else:
        y, shape = broadcast(g, x)
        g.take(g.pick(["And", "Or", "Xor"]), [x, y], x, shape, exact=x.exact and y.exact)


def grow_where(g):
    condition, x = g.value(np.bool_), g.value(np.float32, np.int64)
    y, shape = broadcast(g, x)
    try:
        shape = np.broadcast_shapes(shape, condition.shape)
    except ValueError:
        return
    g.take("Where", [condition, x, y], x, shape, exact=x.exact and y.exact)


def grow_cast(g):
    x = g.value(exact=True)
    to = g.pick([*FLOATS, *INTS, np.bool_, np.float32])
    if not (x.dtype in FLOATS and to in FLOATS and x.dtype != to and not x.exact):
        g.take("Cast", [x], x, dtype=to, exact=True,
               to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def grow_clip(g):
    x = g.value(np.float32)
    bounds = [g.constant(np.float32(-0.75)) if g.below(3) else "",
              g.constant(np.float32(1.25)) if g.below(3) else ""]
    g.take("Clip", [x, *bounds], x, exact=x.exact)


# ---- Shapes -----------------------------------------------------------------------------------

def grow_transpose(g):
    x = g.value(least=2)
    perm = [int(i) for i in g.rng.permutation(len(x.shape))]
    g.take("Transpose", [x], x, [x.shape[i] for i in perm], exact=x.exact, perm=perm)


def grow_reshape(g):
    x = g.value(least=1)
    shape, at = list(x.shape), g.below(len(x.shape))
    if at and g.one_in(2):
        shape[at - 1:at + 1] = [shape[at - 1] * shape[at]]
    else:
        factor = g.pick([f for f in range(1, shape[at] + 1) if shape[at] % f == 0] or [1])
        shape[at:at + 1] = [factor, shape[at] // factor]
    given = list(shape)
    if g.one_in(2) and 0 not in shape:
        given[g.below(len(given))] = -1
    g.take("Reshape", [x, g.ints(*given)], x, shape, exact=x.exact)


def grow_concat(g):
    x = g.value(least=1)
    axis = g.below(len(x.shape))
    parts = [v for v in g.values if v.dtype == x.dtype and len(v.shape) == len(x.shape)
             and all(i == axis or a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)))]
    parts = [g.pick(parts) for _ in range(1 + g.below(3))] + [x]
    shape = list(x.shape)
    shape[axis] = sum(v.shape[axis] for v in parts)
    g.take("Concat", parts, x, shape, exact=all(v.exact for v in parts),
           axis=axis - len(shape) * g.below(2))


def grow_slice(g):
    x = g.value(least=1)
    axis = g.below(len(x.shape))
    start, end = g.below(x.shape[axis]), 1 + g.below(x.shape[axis])
    step = g.pick([1, 1, 2, -1, -2])
    if step < 0:
        start, end = max(start, end - 1), min(start, end - 1) - 1
        given_end = -2 ** 40 if end < 0 else end
        extent = len(range(start, end, step))
    else:
        start, end = min(start, end - 1), max(start + 1, end)
        given_end, extent = end, len(range(start, end, step))
    shape = list(x.shape)
    shape[axis] = extent
    g.take("Slice", [x, g.ints(start), g.ints(given_end), g.ints(axis), g.ints(step)], x, shape,
           exact=x.exact)


def grow_split(g):
    x = g.value(least=1)
    axis = g.below(len(x.shape))
    if x.shape[axis] > 1:
        first = 1 + g.below(x.shape[axis] - 1)
        shape = list(x.shape)
        shape[axis] = first
        g.take("Split", [x, g.ints(first, x.shape[axis] - first)], x, shape, exact=x.exact,
               outputs=2, axis=axis)


def grow_pad(g):
    x = g.value(np.float32, least=1)
    rank, mode = len(x.shape), g.pick(["constant", "constant", "edge", "reflect"])
    most = [min(e - 1, 2) if mode == "reflect" else 2 for e in x.shape]
    pads = [g.below(most[i % rank] + 1) if g.one_in(2) else 0 for i in range(2 * rank)]
    shape = [e + pads[i] + pads[i + rank] for i, e in enumerate(x.shape)]
    inputs = [x, g.ints(*pads)] + [g.constant(np.float32(0.5))] * (mode == "constant" and g.below(2))
    g.take("Pad", inputs, x, shape, exact=x.exact, mode=mode)


def grow_gather(g):
    x = g.value(least=1)
    axis = g.below(len(x.shape))
    e = x.shape[axis]
    shape = [1 + g.below(3) for _ in range(g.below(3))]
    indices = g.constant(g.rng.integers(-e, e, shape))
    g.take("Gather", [x, indices], x, (*x.shape[:axis], *shape, *x.shape[axis + 1:]), exact=x.exact,
           axis=axis)


def grow_gather_elements(g):
    x = g.value(least=1)
    axis = g.below(len(x.shape))
    shape = [1 + g.below(e) for e in x.shape]
    indices = g.constant(g.rng.integers(-x.shape[axis], x.shape[axis], shape))
    g.take("GatherElements", [x, indices], x, shape, exact=x.exact, axis=axis)


def grow_expand(g):
    x = g.value()
    shape = [2 + g.below(2) if e == 1 else e for e in x.shape]
    shape = [1 + g.below(3)] * g.below(2) + shape
    g.take("Expand", [x, g.ints(*shape)] if shape else [x, g.constant(np.zeros(0, np.int64))], x,
           shape, exact=x.exact)


def grow_tile(g):
    x = g.value(np.float32, least=1)
    times = [g.pick([1, 1, 2, 3]) for _ in x.shape]
    g.take("Tile", [x, g.ints(*times)], x, [a * b for a, b in zip(x.shape, times)], exact=x.exact)


def grow_unsqueeze(g):
    x = g.value()
    axis = g.below(len(x.shape) + 1)
    g.take("Unsqueeze", [x, g.ints(axis)], x, (*x.shape[:axis], 1, *x.shape[axis:]), exact=x.exact)


# ---- Along axes -------------------------------------------------------------------------------

def grow_reduction(g):
    x = g.value(np.float32, least=1)
    axes = sorted({g.below(len(x.shape)) for _ in range(1 + g.below(2))})
    keep = g.below(2)
    shape = [1 if i in axes else e for i, e in enumerate(x.shape) if keep or i not in axes]
    op = g.pick(["Sum", "Mean", "Max", "Min", "L1", "L2", "LogSumExp", "SumSquare"])
    exact = x.exact and op in ("Max", "Min")
    if op == "Sum" or g.opset >= 18:
        g.take("Reduce" + op, [x, g.ints(*axes)], x, shape, exact=exact, keepdims=keep)
    else:
        g.take("Reduce" + op, [x], x, shape, exact=exact, axes=axes, keepdims=keep)


def grow_place(g):
    x = g.value(np.float32, exact=True, least=1)
    axis, keep = g.below(len(x.shape)), g.below(2)
    shape = [1 if i == axis else e for i, e in enumerate(x.shape) if keep or i != axis]
    g.take(g.pick(["ArgMax", "ArgMin"]), [x], x, shape, np.int64, True, axis=axis, keepdims=keep,
           select_last_index=g.below(2))


def grow_running_sum(g):
    x = g.value(np.float32, np.int64, least=1)
    g.take("CumSum", [x, g.constant(np.int64(g.below(len(x.shape))))], x, exact=x.dtype == np.int64,
           exclusive=g.below(2), reverse=g.below(2))


def grow_softmax(g):
    x = g.value(np.float32, least=1)
    g.take(g.pick(["Softmax", "LogSoftmax"]), [x], x, axis=g.below(len(x.shape)) - len(x.shape))


def grow_norm(g):
    x = g.value(np.float32, least=3)
    c = x.shape[1]
    kind = g.below(3)
    if kind == 0:
        g.take("BatchNormalization", [x, g.random([c]), g.random([c]), g.random([c]),
                                      g.random([c], low=1, high=2)], x, epsilon=1e-3)
    elif kind == 1:
        g.take("InstanceNormalization", [x, g.random([c]), g.random([c])], x, epsilon=0.5)
    else:
        axis = 1 + g.below(len(x.shape) - 1)
        g.take("LayerNormalization", [x, g.random(x.shape[axis:]), g.random(x.shape[axis:])], x,
               axis=axis, epsilon=0.5)


# ---- Windows and products ---------------------------------------------------------------------

def window(g, x, groups=1):
    axes = len(x.shape) - 2
    kernel = [1 + g.below(min(3, e)) for e in x.shape[2:]]
    strides = [1 + g.below(2) for _ in kernel]
    pads = [g.below(k) for k in kernel * 2]
    dilations = [1 + (g.one_in(4) and 2 * (k - 1) < e) for k, e in zip(kernel, x.shape[2:])]
    out = [(e + pads[i] + pads[i + axes] - d * (k - 1) - 1) // s + 1 for i, (e, k, d, s) in
           enumerate(zip(x.shape[2:], kernel, dilations, strides))]
    return kernel, strides, pads, dilations, out


def image(g):
    fits = [v for v in g.values if v.dtype == np.float32 and 3 <= len(v.shape) <= 5
            and all(v.shape)]
    if not fits:
        raise Unfit
    return g.pick(fits)


def grow_conv(g):
    x = image(g)
    c = x.shape[1]
    groups = g.pick([f for f in (1, 1, 2, c) if c % f == 0])
    filters = groups * (1 + g.below(9))
    kernel, strides, pads, dilations, out = window(g, x)
    if min(out) < 1:
        return
    inputs = [x, g.random([filters, c // groups, *kernel], low=-1, high=1)]
    inputs += [g.random([filters])] * g.below(2)
    g.take("Conv", inputs, x, [x.shape[0], filters, *out], kernel_shape=kernel, strides=strides,
           pads=pads, dilations=[int(d) for d in dilations], group=groups)


def grow_deconv(g):
    x = image(g)
    groups = g.pick([f for f in (1, 1, 2) if x.shape[1] % f == 0])
    filters = 1 + g.below(4)
    kernel, strides, pads, _, _ = window(g, x)
    axes = len(kernel)
    out = [(e - 1) * s + k - pads[i] - pads[i + axes] for i, (e, s, k) in
           enumerate(zip(x.shape[2:], strides, kernel))]
    if min(out) < 1:
        return
    weight = g.random([x.shape[1], filters, *kernel], low=-1, high=1)
    g.take("ConvTranspose", [x, weight], x, [x.shape[0], filters * groups, *out],
           kernel_shape=kernel, strides=strides, pads=pads, group=groups)


def grow_pool(g):
    x = image(g)
    if g.one_in(4):
        op = g.pick(["GlobalAveragePool", "GlobalMaxPool"])
        g.take(op, [x], x, (*x.shape[:2], *[1] * (len(x.shape) - 2)),
               exact=x.exact and op == "GlobalMaxPool")
        return
    kernel, strides, pads, _, _ = window(g, x)
    axes, ceil = len(kernel), g.below(2)
    spans = [e + pads[i] + pads[i + axes] - k for i, (e, k) in enumerate(zip(x.shape[2:], kernel))]
    out = [(span + (s - 1) * ceil) // s + 1 for span, s in zip(spans, strides)]
    for i, (o, s) in enumerate(zip(out, strides)):  # the last window begins inside
        if ceil and (o - 1) * s >= x.shape[2 + i] + pads[i]:
            out[i] -= 1
    if min(spans) < 0:
        return
    op = g.pick(["MaxPool", "AveragePool"])
    attributes = {} if op == "MaxPool" else {"count_include_pad": g.below(2)}
    g.take(op, [x], x, [*x.shape[:2], *out], exact=x.exact and op == "MaxPool", kernel_shape=kernel,
           strides=strides, pads=pads, ceil_mode=ceil, **attributes)


def grow_matmul(g):
    x = g.value(np.float32, least=1)
    columns = g.pick([1, 3, 7, 10, 16, 19])
    pairs = [v for v in g.values if v.dtype == np.float32 and len(v.shape) > 1 and len(x.shape) > 1
             and v.shape[-2] == x.shape[-1] and v.shape[:-2] == x.shape[:-2]]
    if pairs and g.one_in(2):
        y = g.pick(pairs)
        g.take("MatMul", [x, y], x, (*x.shape[:-1], y.shape[-1]))
    else:
        weight = g.random([x.shape[-1], columns], low=-1, high=1)
        g.take("MatMul", [x, weight], x, (*x.shape[:-1], columns))


def grow_gemm(g):
    x = g.value(np.float32, rank=2)
    ta, tb, n = g.below(2), g.below(2), 1 + g.below(17)
    m, k = x.shape[::-1] if ta else x.shape
    weight = g.random([n, k] if tb else [k, n], low=-1, high=1)
    g.take("Gemm", [x, weight, g.random(g.pick([[n], [m, 1], [1], []]))], x, [m, n], transA=ta,
           transB=tb, alpha=0.5, beta=2.0)


GROWERS = [grow for names in (globals(), vars(random_growers)) for name, grow in
           sorted(names.items()) if name.startswith("grow_")]
OFTEN = [grow_conv, grow_conv, grow_binary, grow_matmul, grow_unary, grow_transpose]


def random_model(seed, with_constant=False):
    g = Graph(seed)
    extents = [1, 2, 3, 5, 7, 8, 11, 13, 16, 17]
    rank = g.pick([1, 2, 3, 3, 4, 4, 4, 5])
    shape = [g.pick(extents[:3])] + [g.pick(extents if rank < 5 else extents[:5])
                                     for _ in range(rank - 1)]
    g.input(shape, np.float32)
    if g.one_in(3):
        kinds = [np.float64, *INTS, np.bool_, g.pick(random_growers.NARROW)]
        g.input(shape if g.one_in(2) else shape[-1:], g.pick(kinds))
    if with_constant:  # what is computed from it alone is computed while compiling
        g.known(shape if g.one_in(2) else [g.pick(extents[:5]) for _ in shape], np.float32)
    wanted = 2 + g.below(9)
    for _ in range(80):
        if len(g.nodes) >= wanted:
            break
        try:
            g.pick(GROWERS + OFTEN)(g)
        except Unfit:
            pass
    return g.model() if g.nodes else None


# ---- Runs -------------------------------------------------------------------------------------

def feeds_of(model, seed):
    g = Graph(seed)
    feeds = {}
    for value in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).type
        shape = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        feeds[value.name] = g.numbers(shape, dtype)
    return feeds


def difference(want, got):
    """A text that says how the arrays differ, or None. Floats may be 1e-4 of the largest apart."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{got.dtype} {list(got.shape)}, expected {want.dtype} {list(want.shape)}"
    if want.dtype.kind != "f":
        wrong = np.flatnonzero(want != got)
    else:
        scale = np.abs(want[np.isfinite(want)]).max(initial=1e-3)
        close = np.isclose(got, want, rtol=1e-4, atol=1e-4 * scale, equal_nan=True)
        wrong = np.flatnonzero(~close)
    if not wrong.size:
        return None
    at = wrong[0]
    return f"{wrong.size} of {want.size} differ: [{at}] is {got.flat[at]}, expected {want.flat[at]}"


def compared_model(seed):
    """The graph of this seed that is compared with ONNX Runtime."""
    return random_model(seed, with_constant=seed % 4 == 1)


CPUS = [None, None, "avx2", "baseline", "scalar"]


def ways_of(seed):
    """How pleat.Model compiles the graph of this seed."""
    return {"quick": seed % 4 != 0, "threads": 2 if seed % 8 == 0 else 1,
            "cpu": CPUS[seed % len(CPUS)]}


def onnxruntime_session(model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    # its rewriting of pairs of QuantizeLinear and DequantizeLinear rounds otherwise
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def run_seed(seed):
    """[outcome, reason]: passed, refused by one of the two, or wrong."""
    import pleat

    model = compared_model(seed)
    if model is None:
        return ["empty", ""]
    feeds = feeds_of(model, seed)
    try:
        expected = onnxruntime_session(model).run(None, feeds)
    except Exception as error:
        return ["refused by ONNX Runtime", str(error)[:300]]
    try:
        got = pleat.Model(model, **ways_of(seed)).run(feeds)
    except pleat.PleatFault as error:
        return ["wrong", str(error)]
    except pleat.PleatError as error:
        return ["refused", str(error)]
    for value, want, have in zip(model.graph.output, expected, got):
        what = difference(want, have)
        if what:
            return ["wrong", f"'{value.name}': {what}"]
    return ["passed", ""]


def run_seeds(seeds, processes=2, run=run_seed):
    """(seed, outcome, reason) for each; one that crashes is an outcome too."""
    import isolated

    seeds = list(seeds)
    for number, value, how in isolated.call_all(run, seeds, processes, slowest_s=120):
        outcome, reason = value or ("crashed", how)
        yield seeds[number], outcome, reason


def main(run=run_seed):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--save", help="write the first graph here")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.save:
        onnx.save(compared_model(options.seed), options.save)
    counts, reasons = collections.Counter(), collections.Counter()
    for seed, outcome, reason in run_seeds(range(options.seed, options.seed + options.count),
                                           options.processes, run):
        counts[outcome] += 1
        if outcome in ("wrong", "crashed"):
            print(f"{outcome}: seed {seed}: {reason}", flush=True)
        elif outcome != "passed":
            reasons[f"{outcome}: {reason.splitlines()[0] if reason else ''}"] += 1
    for reason, count in reasons.most_common(20):
        print(f"{count} {reason[:200]}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
    return 1 if counts["wrong"] or counts["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
