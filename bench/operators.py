#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares single operators of Pleat and ONNX Runtime, in this process on one thread.

Each case is a model of one operator at a size that networks have. Both run alternately, and the
minimum of each counts, so that other work on the machine disturbs both alike. The ratio is Pleat's
speed as a share of ONNX Runtime's; the slowest come last. From each time, the time of a model that
negates one number is subtracted, which is mostly Python. No figure makes the script fail.

    operators.py                 everything
    operators.py --only pool     cases whose name contains this
    operators.py --save DIR      the models, for `pleat run --profile`
"""
import argparse
import math
import pathlib
import sys
import time
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
import pleat  # noqa: E402

OPSET = 21
SECONDS = 0.6


class Draw:
    """Arrays for the inputs of one case, the same in every run."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))

    def f(self, *shape, dtype=np.float32):
        return self.random.standard_normal(shape, dtype=np.float32).astype(dtype)

    def positive(self, *shape):
        return np.abs(self.f(*shape)) + np.float32(0.1)

    def unit(self, *shape):
        return self.random.uniform(-1, 1, shape).astype(np.float32)

    def i(self, low, high, *shape, dtype=np.int64):
        return self.random.integers(low, high, shape).astype(dtype)

    def rois(self, count, size):
        corners = self.random.uniform(0, size * 0.6, (count, 2))
        sizes = self.random.uniform(size * 0.1, size * 0.4, (count, 2))
        return np.concatenate([corners, corners + sizes], axis=1).astype(np.float32)


class Const:
    """An input that is an initializer of the model."""

    def __init__(self, array):
        self.array = np.asarray(array)


def case(name, operator, make, outputs=1, domain="", **attributes):
    return name, operator, make, outputs, domain, attributes


def pool(name, operator, shape, kernel, **attributes):
    return case(name, operator, lambda d: [d.f(*shape)], kernel_shape=kernel, **attributes)


def conv(name, shape, weight, operator="Conv", **attributes):
    return case(name, operator, lambda d: [d.f(*shape), Const(d.f(*weight))], **attributes)


def unary(operator, shape=(8, 128, 768), make=None, **attributes):
    return case(f"{operator.lower()} {text(shape)}", operator,
                lambda d: [make(d, *shape) if make else d.f(*shape)], **attributes)


def text(shape):
    return "x".join(map(str, shape))


def reduced(operator, shape, axes):
    return case(f"{operator.lower()} {text(shape)} axes {axes}", operator,
                lambda d: [d.positive(*shape), Const(np.array(axes, np.int64))], keepdims=1)


def cases():
    image, tokens = (1, 64, 56, 56), (8, 128, 768)
    yield from convolutions()
    yield from pools(image)
    yield from reductions(image, tokens)
    yield from elementwise(image, tokens)
    yield from moves(image, tokens)
    yield from samplers()
    yield from ordered()
    yield from recurrent()
    yield from products()
    yield from quantized()
    yield from normalizations(image, tokens)


def convolutions():
    yield conv("conv 1x1 64x56x56", (1, 64, 56, 56), (64, 64, 1, 1))
    yield conv("conv 3x3 64x56x56", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4)
    yield conv("conv 3x3 stride 2", (1, 64, 56, 56), (128, 64, 3, 3), pads=[1] * 4, strides=[2, 2])
    yield conv("conv 3x3 dilated", (1, 64, 56, 56), (64, 64, 3, 3), pads=[2] * 4, dilations=[2, 2])
    yield conv("conv 7x7 stem", (1, 3, 224, 224), (64, 3, 7, 7), pads=[3] * 4, strides=[2, 2])
    yield conv("conv 3x3 odd", (1, 37, 53, 47), (41, 37, 3, 3), pads=[1] * 4)
    yield conv("conv to 1 channel", (1, 64, 56, 56), (1, 64, 3, 3), pads=[1] * 4)
    yield conv("conv of 1 channel", (1, 1, 112, 112), (32, 1, 5, 5), pads=[2] * 4)
    yield conv("depthwise 3x3", (1, 96, 56, 56), (96, 1, 3, 3), pads=[1] * 4, group=96)
    yield conv("depthwise 3x3 stride 2", (1, 96, 112, 112), (96, 1, 3, 3), pads=[1] * 4, group=96,
        strides=[2, 2])
    yield conv("depthwise 7x7", (1, 96, 56, 56), (96, 1, 7, 7), pads=[3] * 4, group=96)
    yield conv("depthwise x2", (1, 96, 28, 28), (192, 1, 3, 3), pads=[1] * 4, group=96)
    yield conv("grouped 32", (1, 128, 56, 56), (128, 4, 3, 3), pads=[1] * 4, group=32)
    yield conv("grouped 4", (1, 128, 28, 28), (128, 32, 3, 3), pads=[1] * 4, group=4)
    yield conv("conv 1-d", (1, 80, 1500), (384, 80, 3), pads=[1, 1])
    yield conv("conv 1-d dilated", (1, 64, 4000), (64, 64, 3), pads=[4, 4], dilations=[4])
    yield conv("depthwise 1-d", (1, 256, 1000), (256, 1, 15), pads=[7, 7], group=256)
    yield conv("depthwise 1-d 31", (1, 512, 400), (512, 1, 31), pads=[15, 15], group=512)
    yield conv("conv 3-d", (1, 32, 8, 28, 28), (32, 32, 3, 3, 3), pads=[1] * 6)
    yield conv("depthwise 3-d", (1, 64, 8, 28, 28), (64, 1, 3, 3, 3), pads=[1] * 6, group=64)
    up = dict(operator="ConvTranspose")
    yield conv("conv transpose 2x2 s2", (1, 64, 56, 56), (64, 32, 2, 2), strides=[2, 2], **up)
    yield conv("conv transpose 2x2 s2 wide", (1, 512, 28, 28), (512, 256, 2, 2), strides=[2, 2],
        **up)
    yield conv("conv transpose 3x3 s1", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4, **up)
    yield conv("conv transpose 3x3 s2", (1, 64, 56, 56), (64, 32, 3, 3), strides=[2, 2],
        pads=[1] * 4, output_padding=[1, 1], **up)
    yield conv("conv transpose 4x4 s2", (1, 128, 28, 28), (128, 64, 4, 4), strides=[2, 2],
        pads=[1] * 4, **up)
    yield conv("conv transpose 16x16 s8", (1, 21, 28, 28), (21, 21, 16, 16), strides=[8, 8],
        pads=[4] * 4, **up)
    yield conv("conv transpose to 3", (1, 64, 64, 64), (64, 3, 4, 4), strides=[2, 2], pads=[1] * 4,
        **up)
    yield conv("conv transpose depthwise", (1, 64, 56, 56), (64, 1, 4, 4), strides=[2, 2],
        pads=[1] * 4, group=64, **up)
    yield conv("conv transpose 1-d", (1, 256, 200), (256, 128, 16), strides=[8], pads=[4, 4], **up)
    yield conv("conv transpose 3-d", (1, 32, 8, 16, 16), (32, 16, 2, 2, 2), strides=[2, 2, 2],
        **up)


def pools(image):
    yield pool("max pool 3x3 s2", "MaxPool", (1, 64, 112, 112), [3, 3], strides=[2, 2],
        pads=[1] * 4)
    yield pool("max pool 2x2 s2", "MaxPool", image, [2, 2], strides=[2, 2])
    yield pool("max pool 5x5 s1", "MaxPool", (1, 256, 20, 20), [5, 5], pads=[2] * 4)
    yield pool("max pool 3-d", "MaxPool", (1, 32, 16, 28, 28), [3, 3, 3], strides=[2, 2, 2],
        pads=[1] * 6)
    yield pool("max pool 1-d", "MaxPool", (1, 128, 2000), [3], strides=[2])
    yield case("max pool with places", "MaxPool", lambda d: [d.f(*image)], 2, kernel_shape=[2, 2],
        strides=[2, 2])
    yield pool("average pool 3x3 s1", "AveragePool", image, [3, 3], pads=[1] * 4)
    yield pool("average pool 2x2 s2", "AveragePool", image, [2, 2], strides=[2, 2])
    yield pool("average pool 3-d", "AveragePool", (1, 32, 16, 28, 28), [2, 2, 2], strides=[2, 2,
        2])
    yield pool("lp pool", "LpPool", image, [3, 3], strides=[2, 2])
    yield case("global average pool", "GlobalAveragePool", lambda d: [d.f(1, 512, 7, 7)])
    yield case("global average pool 56", "GlobalAveragePool", lambda d: [d.f(*image)])
    yield case("global max pool 56", "GlobalMaxPool", lambda d: [d.f(*image)])
    yield case("max unpool", "MaxUnpool", lambda d: [d.f(1, 64, 28, 28),
        (np.arange(28 * 28 * 64).reshape(1, 64, 28, 28) * 4).astype(np.int64)], kernel_shape=[2,
        2], strides=[2, 2])


def reductions(image, tokens):
    for axes in ([2], [1], [0, 1], [0, 2], [0, 1, 2]):
        yield reduced("ReduceSum", tokens, axes)
    for axes in ([2, 3], [1], [3], [2], [0, 2, 3]):
        yield reduced("ReduceMean", image, axes)
    for operator in ("ReduceMax", "ReduceProd", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
            "ReduceL1"):
        yield reduced(operator, tokens, [2])
        yield reduced(operator, tokens, [1])
    yield reduced("ReduceMax", image, [1])
    for operator in ("ArgMax", "ArgMin"):
        for axis in (2, 1):
            yield case(f"{operator.lower()} 8x128x768 axis {axis}", operator,
                lambda d: [d.f(*tokens)], axis=axis)
    yield case("argmax 1x21x128x128 axis 1", "ArgMax", lambda d: [d.f(1, 21, 128, 128)], axis=1)
    yield case("argmax 1x50257", "ArgMax", lambda d: [d.f(1, 50257)], axis=1)


def elementwise(image, tokens):
    for operator in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Gelu", "Sqrt", "Abs", "Neg",
            "Floor", "Round",
                     "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Asinh", "Softplus",
                     "Softsign", "Elu", "Selu", "Celu", "Mish",
                     "HardSwish", "HardSigmoid", "LeakyRelu", "Reciprocal", "Ceil", "Sign",
                     "ThresholdedRelu"):
        yield unary(operator)
    yield unary("Log", make=Draw.positive)
    yield unary("Acosh", make=lambda d, *s: d.positive(*s) + 1)
    for operator in ("Asin", "Acos", "Atanh"):
        yield unary(operator, make=Draw.unit)
    for operator in ("Add", "Mul", "Div", "Max", "Greater"):
        yield case(f"{operator.lower()} 8x128x768", operator, lambda d: [d.f(*tokens),
            d.f(*tokens)])
    yield case("add a row", "Add", lambda d: [d.f(*tokens), d.f(768)])
    yield case("add a column", "Add", lambda d: [d.f(*tokens), d.f(8, 128, 1)])
    yield case("mul by channel", "Mul", lambda d: [d.f(*image), d.f(1, 64, 1, 1)])
    yield case("pow", "Pow", lambda d: [d.positive(*tokens), d.f(*tokens)])
    yield case("pow 2", "Pow", lambda d: [d.f(*tokens), Const(np.float32(2))])
    yield case("pow 2.5", "Pow", lambda d: [d.positive(*tokens), Const(np.float32(2.5))])
    yield case("mod", "Mod", lambda d: [d.f(*tokens), d.positive(*tokens)], fmod=1)
    yield case("mod int64", "Mod", lambda d: [d.i(-1000, 1000, *tokens), d.i(1, 100, *tokens)])
    yield case("div int64", "Div", lambda d: [d.i(-1000, 1000, *tokens), d.i(1, 100, *tokens)])
    yield case("div int32", "Div", lambda d: [d.i(-1000, 1000, *tokens, dtype=np.int32), d.i(1,
        100, *tokens, dtype=np.int32)])
    yield case("add int64", "Add", lambda d: [d.i(-1000, 1000, *tokens), d.i(1, 100, *tokens)])
    yield case("mul int64", "Mul", lambda d: [d.i(-1000, 1000, *tokens), d.i(1, 100, *tokens)])
    yield case("where", "Where", lambda d: [d.f(*tokens) > 0, d.f(*tokens), d.f(*tokens)])
    yield case("and", "And", lambda d: [d.f(*tokens) > 0, d.f(*tokens) > 0])
    yield case("not", "Not", lambda d: [d.f(*tokens) > 0])
    yield case("equal int64", "Equal", lambda d: [d.i(0, 5, *tokens), d.i(0, 5, *tokens)])
    yield case("clip", "Clip", lambda d: [d.f(*tokens), Const(np.float32(0)),
        Const(np.float32(6))])
    yield case("prelu", "PRelu", lambda d: [d.f(*image), Const(d.f(64, 1, 1))])
    yield case("isnan", "IsNaN", lambda d: [d.f(*tokens)])
    yield case("bitshift", "BitShift", lambda d: [d.i(0, 1000, *tokens, dtype=np.uint32), d.i(0, 9,
        *tokens, dtype=np.uint32)], direction="LEFT")
    for kind, to in (("float16", onnx.TensorProto.FLOAT16), ("int8", onnx.TensorProto.INT8),
            ("int64", onnx.TensorProto.INT64), ("double", onnx.TensorProto.DOUBLE), ("bfloat16",
            onnx.TensorProto.BFLOAT16), ("bool", onnx.TensorProto.BOOL)):
        yield case(f"cast to {kind}", "Cast", lambda d: [d.f(*tokens) * 10], to=to)
    yield case("cast from float16", "Cast", lambda d: [d.f(*tokens, dtype=np.float16)], to=1)
    yield case("cast from uint8", "Cast", lambda d: [d.i(0, 255, *tokens, dtype=np.uint8)], to=1)
    yield case("cast from int64", "Cast", lambda d: [d.i(0, 255, *tokens)], to=1)
    yield case("add float16", "Add", lambda d: [d.f(*tokens, dtype=np.float16), d.f(*tokens,
        dtype=np.float16)])
    yield case("exp double", "Exp", lambda d: [d.f(*tokens).astype(np.float64)])
    yield case("tanh double", "Tanh", lambda d: [d.f(*tokens).astype(np.float64)])
    yield case("sigmoid float16", "Sigmoid", lambda d: [d.f(*tokens, dtype=np.float16)])
    yield case("sum of 3", "Sum", lambda d: [d.f(*tokens), d.f(*tokens), d.f(*tokens)])


def moves(image, tokens):
    def ints(*values):
        return Const(np.array(values, np.int64))

    yield case("transpose 0 2 3 1", "Transpose", lambda d: [d.f(*image)], perm=[0, 2, 3, 1])
    yield case("transpose 0 3 1 2", "Transpose", lambda d: [d.f(1, 56, 56, 64)], perm=[0, 3, 1, 2])
    yield case("transpose heads", "Transpose", lambda d: [d.f(8, 128, 12, 64)], perm=[0, 2, 1, 3])
    yield case("transpose keys", "Transpose", lambda d: [d.f(8, 128, 12, 64)], perm=[0, 2, 3, 1])
    yield case("transpose 2-d", "Transpose", lambda d: [d.f(1000, 768)], perm=[1, 0])
    yield case("transpose uint8", "Transpose", lambda d: [d.i(0, 255, 1, 224, 224, 3,
        dtype=np.uint8)], perm=[0, 3, 1, 2])
    yield case("transpose rgb", "Transpose", lambda d: [d.f(1, 224, 224, 3)], perm=[0, 3, 1, 2])
    yield case("concat channels", "Concat", lambda d: [d.f(*image), d.f(*image)], axis=1)
    yield case("concat last", "Concat", lambda d: [d.f(1, 64, 56, 29), d.f(1, 64, 56, 27)], axis=3)
    yield case("split last", "Split", lambda d: [d.f(8, 128, 2304)], 3, axis=2, num_outputs=3)
    yield case("split channels", "Split", lambda d: [d.f(*image)], 2, axis=1, num_outputs=2)
    yield case("slice rows", "Slice", lambda d: [d.f(*tokens), ints(1), ints(65), ints(1)])
    yield case("slice step 2", "Slice", lambda d: [d.f(*image), ints(0, 0), ints(56, 56), ints(2,
        3), ints(2, 2)])
    yield case("slice reversed", "Slice", lambda d: [d.f(*tokens), ints(-1), ints(-1000), ints(2),
        ints(-1)])
    yield case("pad", "Pad", lambda d: [d.f(*image), ints(0, 0, 1, 1, 0, 0, 1, 1)])
    for mode in ("reflect", "edge", "wrap"):
        yield case(f"pad {mode}", "Pad", lambda d: [d.f(*image), ints(0, 0, 3, 3, 0, 0, 3, 3)],
            mode=mode)
    yield case("gather rows", "Gather", lambda d: [Const(d.f(30000, 768)), d.i(0, 30000, 8, 128)])
    yield case("gather axis 1", "Gather", lambda d: [d.f(*image), d.i(0, 64, 32)], axis=1)
    yield case("gather last", "Gather", lambda d: [d.f(*tokens), d.i(0, 768, 384)], axis=2)
    yield case("gather elements", "GatherElements", lambda d: [d.f(*tokens), d.i(0, 768, 8, 128,
        64)], axis=2)
    yield case("gather elements 1", "GatherElements", lambda d: [d.f(*tokens), d.i(0, 128, 8, 64,
        768)], axis=1)
    yield case("gather nd", "GatherND", lambda d: [d.f(100, 100, 64), d.i(0, 100, 1000, 2)])
    yield case("scatter elements", "ScatterElements", lambda d: [d.f(8, 128, 768), d.i(0, 768, 8,
        128, 64), d.f(8, 128, 64)], axis=2)
    yield case("scatter elements add", "ScatterElements", lambda d: [d.f(1000, 64), d.i(0, 1000,
        5000, 64), d.f(5000, 64)], axis=0, reduction="add")
    yield case("scatter nd", "ScatterND", lambda d: [d.f(1000, 256), d.i(0, 1000, 500, 1), d.f(500,
        256)])
    yield case("scatter nd points", "ScatterND", lambda d: [d.f(400, 400), d.i(0, 400, 20000, 2),
        d.f(20000)])
    yield case("tile", "Tile", lambda d: [d.f(1, 128, 96), ints(8, 1, 8)])
    yield case("expand", "Expand", lambda d: [d.f(8, 128, 1), ints(8, 128, 768)])
    yield case("depth to space", "DepthToSpace", lambda d: [d.f(1, 64, 56, 56)], blocksize=2,
        mode="CRD")
    yield case("space to depth", "SpaceToDepth", lambda d: [d.f(1, 16, 112, 112)], blocksize=2)
    yield case("one hot", "OneHot", lambda d: [d.i(0, 1000, 512), Const(np.int64(1000)),
        Const(np.array([0, 1], np.float32))])
    yield case("trilu", "Trilu", lambda d: [d.f(12, 256, 256)], upper=0)
    yield case("eye like", "EyeLike", lambda d: [d.f(512, 512)])
    yield case("reverse sequence", "ReverseSequence", lambda d: [d.f(100, 16, 128), d.i(1, 100,
        16)], batch_axis=1, time_axis=0)
    yield case("compress", "Compress", lambda d: [d.f(*tokens), Const(np.arange(128) % 3 == 0)],
        axis=1)
    yield case("range of constants", "Range", lambda d: [Const(np.float32(0)),
        Const(np.float32(1000)), Const(np.float32(1))])
    yield case("col2im", "Col2Im", lambda d: [d.f(1, 64 * 9, 784), ints(28, 28), ints(3, 3)],
        pads=[1] * 4)
    yield case("center crop pad", "CenterCropPad", lambda d: [d.f(1, 64, 56, 56), ints(48, 60)],
        axes=[2, 3])


def samplers():
    def resize(name, shape, scales, **attributes):
        return case(name, "Resize", lambda d: [d.f(*shape), Const(np.array([], np.float32)),
            Const(np.array(scales, np.float32))], **attributes)

    yield resize("resize nearest x2", (1, 64, 28, 28), [1, 1, 2, 2], mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield resize("resize nearest x1.5", (1, 64, 28, 28), [1, 1, 1.5, 1.5], mode="nearest")
    yield resize("resize linear x2", (1, 64, 28, 28), [1, 1, 2, 2], mode="linear")
    yield resize("resize linear x4", (1, 21, 32, 32), [1, 1, 4, 4], mode="linear",
        coordinate_transformation_mode="align_corners")
    yield resize("resize linear down", (1, 3, 512, 512), [1, 1, 0.4375, 0.4375], mode="linear")
    yield resize("resize linear antialias", (1, 3, 512, 512), [1, 1, 0.4375, 0.4375],
        mode="linear", antialias=1)
    yield resize("resize cubic x2", (1, 16, 28, 28), [1, 1, 2, 2], mode="cubic")
    yield resize("resize cubic antialias", (1, 3, 512, 512), [1, 1, 0.4375, 0.4375], mode="cubic",
        antialias=1)
    yield resize("resize linear 1-d", (1, 64, 1000), [1, 1, 2], mode="linear")
    yield resize("resize linear 3-d", (1, 8, 16, 28, 28), [1, 1, 2, 2, 2], mode="linear")
    for mode in ("linear", "nearest", "cubic"):
        yield case(f"grid sample {mode}", "GridSample", lambda d: [d.f(1, 64, 56, 56), d.unit(1,
            56, 56, 2)], mode=mode)
    yield case("grid sample border", "GridSample", lambda d: [d.f(1, 64, 56, 56), d.unit(1, 56, 56,
        2)], padding_mode="border", align_corners=1)
    yield case("grid sample reflection", "GridSample", lambda d: [d.f(1, 64, 56, 56), d.unit(1, 56,
        56, 2)], padding_mode="reflection")
    yield case("grid sample 3-d", "GridSample", lambda d: [d.f(1, 8, 16, 28, 28), d.unit(1, 16, 28,
        28, 3)])
    yield case("affine grid", "AffineGrid", lambda d: [d.f(4, 2, 3), Const(np.array([4, 3, 112,
        112], np.int64))])
    for mode in ("avg", "max"):
        yield case(f"roi align {mode}", "RoiAlign", lambda d: [d.f(1, 64, 50, 50), d.rois(100, 50),
            np.zeros(100, np.int64)], mode=mode, output_height=7, output_width=7, sampling_ratio=2)
    yield case("roi align adaptive", "RoiAlign", lambda d: [d.f(1, 64, 50, 50), d.rois(50, 50),
        np.zeros(50, np.int64)], output_height=7, output_width=7, sampling_ratio=0)
    yield case("max roi pool", "MaxRoiPool", lambda d: [d.f(1, 64, 50, 50),
        np.concatenate([np.zeros((50, 1), np.float32), d.rois(50, 50)], 1)], pooled_shape=[7, 7])
    yield case("deform conv 3x3", "DeformConv", lambda d: [d.f(1, 64, 28, 28), Const(d.f(64, 64, 3,
        3)), d.f(1, 18, 28, 28), Const(d.f(64)), d.unit(1, 9, 28, 28)], kernel_shape=[3, 3],
        pads=[1] * 4)
    yield case("deform conv 3x3 256", "DeformConv", lambda d: [d.f(1, 256, 14, 14), Const(d.f(256,
        256, 3, 3)), d.f(1, 18, 14, 14)], kernel_shape=[3, 3], pads=[1] * 4)


def ordered():
    k = Const
    yield case("topk 5 of 1000", "TopK", lambda d: [d.f(1, 1000), k(np.array([5], np.int64))], 2)
    yield case("topk 5 of 64x1000", "TopK", lambda d: [d.f(64, 1000), k(np.array([5], np.int64))],
        2)
    yield case("topk 1 of 50257", "TopK", lambda d: [d.f(1, 50257), k(np.array([1], np.int64))], 2)
    yield case("topk 50 of 50257", "TopK", lambda d: [d.f(1, 50257), k(np.array([50], np.int64))],
        2)
    yield case("topk 300 of 8400", "TopK", lambda d: [d.f(1, 8400), k(np.array([300], np.int64))],
        2)
    yield case("topk 1000 of 20000", "TopK", lambda d: [d.f(1, 20000), k(np.array([1000],
        np.int64))], 2)
    yield case("topk all of 4096", "TopK", lambda d: [d.f(4, 4096), k(np.array([4096], np.int64))],
        2)
    yield case("topk axis 1", "TopK", lambda d: [d.f(8, 128, 64), k(np.array([4], np.int64))], 2,
        axis=1)
    yield case("cumsum last", "CumSum", lambda d: [d.f(8, 128, 768), k(np.int64(2))])
    yield case("cumsum first", "CumSum", lambda d: [d.f(8, 128, 768), k(np.int64(1))])
    yield case("cumsum int64", "CumSum", lambda d: [d.i(0, 2, 8, 512), k(np.int64(1))])
    yield case("cumsum reverse", "CumSum", lambda d: [d.f(8, 128, 768), k(np.int64(2))], reverse=1,
        exclusive=1)
    yield case("hardmax", "Hardmax", lambda d: [d.f(64, 1000)])


def recurrent():
    def layer(operator, gates, seq, batch, size, hidden, **attributes):
        name = f"{operator.lower()} {seq} steps {batch}x{size} to {hidden} {' '.join(attributes)}"
        return case(name.strip(), operator,
                    lambda d: [d.f(seq, batch, size),
                        Const(d.f(1 + (attributes.get("direction") == "bidirectional"),
                        gates * hidden, size) * 0.1),
                               Const(d.f(1 + (attributes.get("direction") == "bidirectional"),
                                   gates * hidden, hidden) * 0.1),
                               Const(d.f(1 + (attributes.get("direction") == "bidirectional"),
                                   2 * gates * hidden) * 0.1)],
                    1, hidden_size=hidden, **attributes)

    yield layer("LSTM", 4, 50, 1, 256, 256)
    yield layer("LSTM", 4, 50, 8, 128, 128)
    yield layer("LSTM", 4, 30, 1, 64, 64, direction="bidirectional")
    yield layer("GRU", 3, 50, 1, 256, 256)
    yield layer("GRU", 3, 50, 1, 128, 128, linear_before_reset=1)
    yield layer("RNN", 1, 50, 1, 256, 256)
    yield layer("RNN", 1, 50, 8, 100, 100)


def products():
    def product(name, a, b, dtype=np.float32, constant=False):
        return case(name, "MatMul", lambda d: [d.f(*a, dtype=dtype), Const(d.f(*b,
            dtype=dtype)) if constant else d.f(*b, dtype=dtype)])

    yield product("matmul 128x768x768", (128, 768), (768, 768), constant=True)
    yield product("matmul 128x768x768 computed", (128, 768), (768, 768))
    yield product("matmul vector 1x2048x1000", (1, 2048), (2048, 1000), constant=True)
    yield product("matmul vector 1x768x3072", (1, 768), (768, 3072), constant=True)
    yield product("matmul vector 4x768x3072", (4, 768), (768, 3072), constant=True)
    yield product("matmul vector computed", (1, 768), (768, 3072))
    yield product("matmul by a vector", (3072, 768), (768,))
    yield product("matmul dot", (4096,), (4096,))
    yield product("matmul outer", (768, 1), (1, 768))
    yield product("matmul scores", (12, 128, 64), (12, 64, 128))
    yield product("matmul values", (12, 128, 128), (12, 128, 64))
    yield product("matmul odd", (127, 251), (251, 113))
    yield product("matmul tall", (50000, 8), (8, 8))
    yield product("matmul small batch", (1024, 4, 4), (1024, 4, 4))
    yield product("matmul one query", (12, 1, 64), (12, 64, 512))
    yield product("matmul float16", (128, 768), (768, 768), dtype=np.float16, constant=True)
    yield case("matmul double", "MatMul", lambda d: [d.f(128, 256).astype(np.float64),
        Const(d.f(256, 256).astype(np.float64))])
    yield case("matmul int32", "MatMul", lambda d: [d.i(-9, 9, 128, 256, dtype=np.int32), d.i(-9,
        9, 256, 256, dtype=np.int32)])
    yield case("gemm", "Gemm", lambda d: [d.f(128, 768), Const(d.f(768, 768)), Const(d.f(768))],
        transB=1)
    yield case("gemm batch 1", "Gemm", lambda d: [d.f(1, 2048), Const(d.f(1000, 2048)),
        Const(d.f(1000))], transB=1)
    yield case("gemm computed transposed", "Gemm", lambda d: [d.f(256, 128), d.f(300, 256)],
        transA=1, transB=1)

    def einsum(equation, *shapes):
        return case(f"einsum {equation}", "Einsum", lambda d: [d.f(*shape) for shape in shapes],
            equation=equation)

    yield einsum("bhqd,bhkd->bhqk", (1, 12, 128, 64), (1, 12, 128, 64))
    yield einsum("bqhd,bkhd->bhqk", (1, 128, 12, 64), (1, 128, 12, 64))
    yield einsum("bhqk,bkhd->bqhd", (1, 12, 128, 128), (1, 128, 12, 64))
    yield einsum("bchw,bkc->bkhw", (1, 64, 28, 28), (1, 19, 64))
    yield einsum("nctv,vw->nctw", (1, 64, 100, 25), (25, 25))
    yield einsum("ij,ij->i", (512, 768), (512, 768))
    yield einsum("i,j->ij", (512,), (768,))
    yield einsum("bij->bji", (8, 128, 768))
    yield einsum("bii->bi", (8, 300, 300))
    yield einsum("abc,cd,bde->ae", (16, 16, 64), (64, 64), (16, 64, 32))


def quantized():
    u8, i8 = np.uint8, np.int8

    def i8_conv(name, shape, weight, **attributes):
        return case(name, "QLinearConv", lambda d: [
            d.i(0, 255, *shape, dtype=u8), Const(np.float32(0.02)), Const(u8(128)), Const(d.i(-127,
                127, *weight, dtype=i8)),
            Const(np.full(weight[0], 0.01, np.float32)), Const(np.zeros(weight[0],
                i8)), Const(np.float32(0.5)), Const(u8(120)),
            Const(d.i(-1000, 1000, weight[0], dtype=np.int32))], **attributes)

    yield i8_conv("qlinear conv 3x3", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4)
    yield i8_conv("qlinear conv 1x1", (1, 64, 56, 56), (256, 64, 1, 1))
    yield i8_conv("qlinear depthwise", (1, 96, 56, 56), (96, 1, 3, 3), pads=[1] * 4, group=96)
    yield case("conv integer", "ConvInteger", lambda d: [d.i(0, 255, 1, 64, 28, 28, dtype=u8),
        Const(d.i(0, 255, 64, 64, 3, 3, dtype=u8)), Const(u8(128)), Const(u8(128))], pads=[1] * 4)
    yield case("matmul integer", "MatMulInteger", lambda d: [d.i(0, 255, 128, 768, dtype=u8),
        Const(d.i(-127, 127, 768, 768, dtype=i8)), Const(u8(128)), Const(i8(0))])
    yield case("matmul integer vector", "MatMulInteger", lambda d: [d.i(0, 255, 1, 768, dtype=u8),
        Const(d.i(-127, 127, 768, 3072, dtype=i8)), Const(u8(128)), Const(i8(0))])
    yield case("qlinear matmul", "QLinearMatMul", lambda d: [d.i(0, 255, 128, 768, dtype=u8),
        Const(np.float32(0.02)), Const(u8(128)), Const(d.i(-127, 127, 768, 768, dtype=i8)),
        Const(np.float32(0.01)), Const(i8(0)), Const(np.float32(0.5)), Const(u8(120))])
    yield case("quantize", "QuantizeLinear", lambda d: [d.f(8, 128, 768), Const(np.float32(0.02)),
        Const(u8(128))])
    yield case("quantize channels", "QuantizeLinear", lambda d: [d.f(1, 64, 56, 56),
        Const(d.positive(64)), Const(np.full(64, 128, u8))], axis=1)
    yield case("dequantize", "DequantizeLinear", lambda d: [d.i(0, 255, 8, 128, 768, dtype=u8),
        Const(np.float32(0.02)), Const(u8(128))])
    yield case("dynamic quantize", "DynamicQuantizeLinear", lambda d: [d.f(8, 128, 768)], 3)


def normalizations(image, tokens):
    yield case("softmax last", "Softmax", lambda d: [d.f(12, 128, 128)], axis=-1)
    yield case("softmax 1000", "Softmax", lambda d: [d.f(1, 1000)], axis=-1)
    yield case("softmax 50257", "Softmax", lambda d: [d.f(1, 50257)], axis=-1)
    yield case("softmax axis 1", "Softmax", lambda d: [d.f(1, 21, 128, 128)], axis=1)
    yield case("softmax axis 2", "Softmax", lambda d: [d.f(1, 12, 128, 128)], axis=2)
    yield case("softmax 3", "Softmax", lambda d: [d.f(8400, 3)], axis=1)
    yield case("log softmax", "LogSoftmax", lambda d: [d.f(128, 1000)], axis=-1)
    yield case("log softmax axis 1", "LogSoftmax", lambda d: [d.f(1, 21, 128, 128)], axis=1)
    yield case("layer norm", "LayerNormalization", lambda d: [d.f(*tokens), Const(d.f(768)),
        Const(d.f(768))])
    yield case("rms norm", "RMSNormalization", lambda d: [d.f(*tokens), Const(d.f(768))])
    yield case("instance norm", "InstanceNormalization", lambda d: [d.f(*image), Const(d.f(64)),
        Const(d.f(64))])
    yield case("group norm", "GroupNormalization", lambda d: [d.f(*image), Const(d.f(64)),
        Const(d.f(64))], num_groups=8)
    yield case("batch norm", "BatchNormalization", lambda d: [d.f(*image), Const(d.f(64)),
        Const(d.f(64)), Const(d.f(64)), Const(d.positive(64))])
    yield case("lrn", "LRN", lambda d: [d.f(1, 96, 55, 55)], size=5)
    yield case("lp norm", "LpNormalization", lambda d: [d.f(*tokens)], axis=2, p=2)
    yield case("lp norm axis 1", "LpNormalization", lambda d: [d.f(*image)], axis=1, p=2)
    yield case("mvn", "MeanVarianceNormalization", lambda d: [d.f(*image)])
    yield case("dft", "DFT", lambda d: [d.f(16, 512, 1)], onesided=1, axis=1)
    yield case("stft", "STFT", lambda d: [d.f(1, 16000, 1), Const(np.int64(160)),
        Const(np.hanning(400).astype(np.float32))], onesided=1)
    yield case("mel weights", "MelWeightMatrix", lambda d: [Const(np.int64(80)),
        Const(np.int64(512)), Const(np.int64(16000)), Const(np.float32(0)),
        Const(np.float32(8000))])
    yield case("det", "Det", lambda d: [d.f(1000, 3, 3)])
    yield case("nllloss", "NegativeLogLikelihoodLoss", lambda d: [d.f(64, 1000), d.i(0, 1000, 64)])


def model_of(one):
    """The model of a case and its inputs."""
    name, operator, make, outputs, domain, attributes = one
    arrays, inputs, names, initializers, feeds = make(Draw(name)), [], [], [], {}
    for i, value in enumerate(arrays):
        names.append(f"x{i}")
        if isinstance(value, Const):
            initializers.append(numpy_helper.from_array(value.array, names[-1]))
        else:
            feeds[names[-1]] = value
            inputs.append(helper.make_tensor_value_info(names[-1],
                helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    graph = helper.make_graph([node], "operator", inputs,
        [helper.make_empty_tensor_value_info(r) for r in results], initializers)
    opset = 23 if operator == "RMSNormalization" else OPSET
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model), feeds


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
        providers=["CPUExecutionProvider"])


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def minima(calls, seconds):
    """The best times of alternating rounds that take that long together."""
    for call in calls:
        call()
    best, end = [math.inf] * len(calls), time.perf_counter() + seconds
    while True:
        for i, call in enumerate(calls):
            best[i] = min(best[i], timed(call), timed(call))
        if time.perf_counter() > end:
            return best


def far_apart(ours, theirs):
    """The first result that differs by more than rounding, or None."""
    for mine, other in zip(ours, theirs):
        mine, other = (np.asarray(value).astype(np.float64) for value in (mine, other))
        if mine.shape != other.shape:
            return f"shapes {mine.shape} {other.shape}"
        scale = max(1.0, float(np.nanmax(np.abs(np.where(np.isfinite(other), other, 0)),
            initial=0)))
        worst = float(np.nanmax(np.abs(np.where(np.isfinite(other), mine - other, 0)), initial=0))
        if worst > 2e-3 * scale:
            return f"differs by {worst:.3g} of {scale:.3g}"
    return None


def measure(one, arguments):
    name = one[0]
    model, feeds = model_of(one)
    if arguments.save:
        onnx.save(model, pathlib.Path(arguments.save) / f"{name.replace(' ', '_')}.onnx")
    try:
        session = session_of(model)
        theirs = session.run(None, feeds)
    except Exception as error:  # whatever it refuses
        session = None
        print(f"# {name}: ONNX Runtime: {str(error).splitlines()[0][:120]}", file=sys.stderr)
    ours = pleat.compile(model, threads=1, cpu=arguments.cpu)
    outputs = list(ours.run(feeds))
    calls = [lambda: ours.run(feeds, outputs=outputs)]
    if session is None:
        return name, minima(calls, arguments.seconds / 2)[0], None, None
    binding = bound(session, feeds)
    calls.append(lambda: session.run_with_iobinding(binding))
    return (name, *minima(calls, arguments.seconds), far_apart(outputs, theirs))


def bound(session, feeds):
    """Binds the inputs in place, and the outputs to the memory of the first run."""
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.run_with_iobinding(binding)
    values = binding.get_outputs()
    for output, value in zip(session.get_outputs(), values):
        binding.bind_ortvalue_output(output.name, value)
    return binding


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--cpu", help="the level of processor")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--save", help="a folder for the models")
    arguments = parser.parse_args()
    call = measure(case("calling", "Neg", lambda d: [d.f(1)]), arguments)
    rows = []
    for one in cases():
        if arguments.only not in one[0]:
            continue
        try:
            rows.append(measure(one, arguments))
        except pleat.PleatError as error:
            print(f"# {one[0]}: {str(error).splitlines()[0]}", file=sys.stderr)
    rows.sort(key=lambda row: -((row[2] - call[2]) / (row[1] - call[1]) if row[2] else math.inf))
    print("| operator | Pleat µs | ONNX Runtime µs | ratio | |\n| --- | --- | --- | --- | --- |")
    for name, mine, other, wrong in rows:
        mine, other = mine - call[1], other and other - call[2]
        print(f"| {name} | {mine * 1e6:.1f} | {other * 1e6 if other else math.nan:.1f} |"
              f" {other / mine if other else math.nan:.2f} | {wrong or ''} |")


if __name__ == "__main__":
    main()
