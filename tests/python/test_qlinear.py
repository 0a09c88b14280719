# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft on quantised numbers, as onnxruntime.quantization writes them (QOperator
files, dynamic quantisation), compared with ONNX Runtime: at most one step apart, where a value is in the
middle between two steps."""
import numpy as np
import pytest

from built import skip_sanitized

skip_sanitized()
pytest.importorskip("onnxruntime")
from ort_case import Case  # noqa: E402

IMAGE, MATRIX = (1, 3, 5, 7), (5, 7)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_each_operator(kind):
    case = Case(kind)
    middle = 120 if kind == np.uint8 else -3
    a = [case.integers("a", IMAGE), *case.grid(0.02, middle)]
    b = [case.integers("b", IMAGE), *case.grid(0.013, middle + 5)]
    row = [case.integers("row", (1, 3, 1, 1)), *case.grid(0.03, 0)]
    result, positive = case.grid(0.04, middle), case.grid(1 / 256, np.iinfo(kind).min)
    case.node("QLinearAdd", *a, *b, *result)
    case.node("QLinearMul", *a, *row, *result)
    case.node("QLinearSigmoid", *a, *positive)
    case.node("QLinearLeakyRelu", *a, *result, alpha=0.2)
    case.node("QLinearSoftmax", *a, *positive, axis=-1, opset=17)
    case.node("QLinearAveragePool", *a, *result, kernel_shape=[3, 2], strides=[2, 1],
              pads=[1, 0, 1, 1], count_include_pad=1)
    case.node("QLinearGlobalAveragePool", *a, *result)
    case.node("QLinearGlobalAveragePool", *a, *result, channels_last=1)
    case.node("QLinearConcat", *result, *a, b[0], *case.grid([0.013], [middle]), axis=1)
    flags = case.given("flags", case.random.integers(0, 2, IMAGE).astype(bool))
    case.node("QLinearWhere", flags, *a, *b, *result)
    case.compare()


def test_products():
    case = Case(np.uint8)
    a = [case.integers("a", MATRIX), *case.grid(0.02, 130)]
    b = case.random.integers(-64, 64, (7, 11)).astype(np.int8)  # ONNX Runtime adds pairs in 16 bits
    scales = [case.weight(0.01, np.float32), case.weight(case.random.uniform(0.01, 0.02, 11), np.float32)]
    zeros = [case.weight(3, np.int8), case.weight(np.zeros(11), np.int8)]
    bias = case.weight(case.random.integers(-900, 900, 11), np.int32)
    offset = case.weight(case.random.standard_normal(11), np.float32)
    floats = case.given("x", case.random.standard_normal((2, *MATRIX)).astype(np.float32))
    right, turned = case.weight(b), case.weight(np.ascontiguousarray(b.T))
    result = case.grid(0.3, 128)
    case.node("QGemm", *a, turned, scales[0], zeros[0], bias, *result, transB=1, alpha=1.5)
    case.node("QGemm", *a, right, scales[1], zeros[1], bias, *result)
    case.node("QGemm", *a, right, scales[1], zeros[1])
    case.node("MatMulIntegerToFloat", a[0], right, a[1], scales[1], a[2], zeros[1], offset)
    case.node("DynamicQuantizeMatMul", floats, right, scales[0], zeros[0], offset)
    case.node("DynamicQuantizeMatMul", floats, right, scales[1])
    case.compare()


def test_numbers_of_16_bits():
    case = Case(np.int16)
    x = case.given("x", case.random.standard_normal(MATRIX).astype(np.float32))
    case.node("QuantizeLinear", x, *case.grid(1e-4, -70))
    case.node("DequantizeLinear", case.integers("q", MATRIX), *case.grid(1e-4, 5))
    case.compare()


def test_refusals():
    case = Case(np.uint8, opset=12)
    a = [case.integers("a", IMAGE), *case.grid(0.02, 120)]
    case.node("QLinearSoftmax", *a, *case.grid(0.01, 0), axis=1, opset=13)
    case.node("QLinearAdd", *a, a[0], *case.grid(0.1, 0))
    case.node("QGemm", *a, *a)
    text = case.message()
    assert "QLinearSoftmax: attribute 'opset' is 13 in a model of opset 12" in text
    assert "QLinearAdd: a tensor or a scale is absent" in text
    assert "QGemm: takes matrices" in text
