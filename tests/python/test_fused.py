# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that ONNX Runtime's optimizer makes of several, compared with it."""
import numpy as np
import pytest

from built import skip_sanitized

skip_sanitized()
pytest.importorskip("onnxruntime")
from ort_case import Case  # noqa: E402

BATCH, TOKENS, HEADS, SIZE = 2, 5, 3, 4
WIDTH = HEADS * SIZE


def given(case, name, *shape):
    return case.given(name, case.random.standard_normal(shape).astype(np.float32))


def test_products_with_activations():
    case = Case()
    x, added = given(case, "x", 1, 3, 5, 7), given(case, "added", 1, 4, 5, 7)
    weight, bias = case.floats(4, 3, 3, 3), case.floats(4)
    for activation, numbers in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.2]),
                                ("Clip", [-0.3, 0.4]), ("HardSigmoid", [0.3, 0.4])):
        more = {"activation_params": numbers} if numbers else {}
        case.node("FusedConv", x, weight, bias, pads=[1, 1, 1, 1], activation=activation, **more)
    case.node("FusedConv", x, weight, bias, added, pads=[1, 1, 1, 1], activation="Relu")
    row = given(case, "row", 5, 7)
    case.node("FusedGemm", row, case.floats(6, 7), case.floats(6), transB=1, alpha=0.7,
              activation="LeakyRelu", activation_alpha=0.3)
    case.node("FusedGemm", row, case.floats(7, 6), activation="Relu")
    case.compare()


def test_fused_matmul():
    case = Case()
    a, b = given(case, "a", 2, 5, 7), given(case, "b", 2, 6, 7)
    case.node("FusedMatMul", a, b, alpha=0.3, transB=1)
    case.node("FusedMatMul", a, given(case, "c", 2, 5, 6), transA=1)
    rows = given(case, "rows", 5, 2, 7)
    case.node("FusedMatMul", rows, b, transBatchA=1, transB=1)
    case.node("FusedMatMul", rows, given(case, "d", 7, 2, 6), transBatchA=1, transBatchB=1)
    case.node("FusedMatMul", given(case, "e", 7, 2, 5), b, transBatchA=1, transA=1, transB=1)
    case.compare()


def test_activations():
    case = Case()
    x, bias = given(case, "x", 3, 5, 7), case.floats(7)
    case.node("Gelu", x)
    case.node("BiasGelu", x, bias)
    case.node("FastGelu", x)
    case.node("FastGelu", x, bias)
    case.node("QuickGelu", x)
    case.node("QuickGelu", x, alpha=1.1)
    case.compare()


def test_normalisations():
    case = Case()
    x, skip = given(case, "x", BATCH, TOKENS, WIDTH), given(case, "skip", BATCH, TOKENS, WIDTH)
    scale, shift, bias = case.floats(WIDTH), case.floats(WIDTH), case.floats(WIDTH)
    with_sum = (True, False, False, True)
    case.node("SkipLayerNormalization", x, skip, scale, shift, bias, outputs=with_sum, epsilon=1e-5)
    case.node("SkipLayerNormalization", x, skip, scale)
    case.node("SkipSimplifiedLayerNormalization", x, skip, scale, bias, outputs=with_sum)
    case.node("SimplifiedLayerNormalization", x, scale, domain="", epsilon=1e-3)
    ids = case.given("ids", case.random.integers(0, 9, (BATCH, TOKENS)).astype(np.int32))
    segments = case.given("segments", case.random.integers(0, 2, (BATCH, TOKENS)).astype(np.int32))
    mask = case.given("mask", np.array([[1] * 5, [1, 1, 1, 0, 0]], np.int32))
    places = case.given("places", np.array([[4, 3, 2, 1, 0]] * BATCH, np.int32))
    words, positions, kinds = case.floats(9, WIDTH), case.floats(8, WIDTH), case.floats(2, WIDTH)
    case.node("EmbedLayerNormalization", ids, segments, words, positions, kinds, scale, shift, mask,
              outputs=(True, True, True))
    case.node("EmbedLayerNormalization", ids, "", words, positions, "", scale, shift, "", places,
              outputs=(True, True))
    case.compare()


def masks(case, keys):
    lengths = case.given("lengths", np.array([keys, 2], np.int32))
    visible = case.random.integers(0, 2, (BATCH, keys)).astype(np.int32)
    visible[:, 0] = 1
    by_query = case.random.integers(0, 2, (BATCH, TOKENS, keys)).astype(np.int32)
    return lengths, case.given("visible", visible), case.given("by_query", by_query)


def test_attention():
    case = Case()
    x, bias = given(case, "x", BATCH, TOKENS, 7), case.floats(3 * WIDTH)
    weight = case.floats(7, 3 * WIDTH, scale=0.4)
    for mask in ("", *masks(case, TOKENS)):
        case.node("Attention", x, weight, bias, mask, num_heads=HEADS)
    case.node("Attention", x, weight, bias, num_heads=HEADS, unidirectional=1, scale=0.3)
    case.node("Attention", x, case.floats(7, 2 * WIDTH + 6), case.floats(2 * WIDTH + 6),
              num_heads=HEADS, qkv_hidden_sizes=[WIDTH, WIDTH, 6])
    past = given(case, "past", 2, BATCH, HEADS, 4, SIZE)
    case.node("Attention", x, weight, bias, "", past, outputs=(True, True), num_heads=HEADS,
              unidirectional=1)
    scores = given(case, "scores", 1, HEADS, TOKENS, TOKENS)
    case.node("Attention", x, weight, bias, "", "", scores, num_heads=HEADS)
    case.compare()


def test_multi_head_attention():
    case = Case()
    query = given(case, "query", BATCH, TOKENS, WIDTH)
    key, value = given(case, "key", BATCH, 6, WIDTH), given(case, "value", BATCH, 6, 9)
    bias, scores = case.floats(2 * WIDTH + 9), given(case, "scores", 1, HEADS, TOKENS, 6)
    for mask in ("", *masks(case, 6)):
        case.node("MultiHeadAttention", query, key, value, bias, mask, num_heads=HEADS)
    case.node("MultiHeadAttention", query, key, value, "", "", scores, num_heads=HEADS, scale=0.2)
    by_heads = [given(case, name, BATCH, HEADS, 6, SIZE) for name in ("keys", "values")]
    case.node("MultiHeadAttention", query, *by_heads, num_heads=HEADS)
    past = [given(case, name, BATCH, HEADS, 4, SIZE) for name in ("past_key", "past_value")]
    case.node("MultiHeadAttention", query, query, query, "", "", "", *past, num_heads=HEADS,
              unidirectional=1, outputs=(True, True, True))
    case.compare()


def test_attention_of_quantised_numbers():
    case = Case()
    x = case.integers("x", (BATCH, TOKENS, 7))
    weight = case.weight(case.random.integers(-64, 64, (7, 3 * WIDTH)), np.int8)
    lengths = case.given("lengths", np.array([TOKENS, 2], np.int32))
    case.node("QAttention", x, weight, case.floats(3 * WIDTH), *case.grid(0.01)[:1],
              *case.grid(0.01)[:1], lengths, case.weight(128, np.uint8), case.weight(2, np.int8),
              num_heads=HEADS)
    case.compare()


def test_refusals():
    case = Case()
    x = given(case, "x", BATCH, TOKENS, WIDTH)
    weight, scale = case.floats(WIDTH, 3 * WIDTH), case.floats(WIDTH)
    mask = case.given("mask", np.zeros(3 * BATCH + 2, np.int32))
    case.node("Attention", x, weight, "", mask, num_heads=HEADS)
    case.node("Attention", x, weight, num_heads=7)
    case.node("Attention", x, weight, num_heads=HEADS, do_rotary=1)
    case.node("MultiHeadAttention", x, "", "", num_heads=HEADS)
    case.node("SkipLayerNormalization", x, x, scale, outputs=(True, True))
    case.node("EmbedLayerNormalization", mask)
    case.node("FusedGemm", weight, weight, transB=1, activation="Softplus")
    text = case.message()
    for part in ("Attention: its mask has none of the supported shapes",
                 "Attention: its weights do not divide into three parts of 7 heads",
                 "Attention: attribute 'do_rotary' is not supported",
                 "MultiHeadAttention: ",
                 "SkipLayerNormalization: its result 1, a statistic, is not supported",
                 "EmbedLayerNormalization: its input 2 is absent",
                 "FusedGemm: its activation 'Softplus' is not supported"):
        assert part in text, part
