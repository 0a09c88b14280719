# SPDX-License-Identifier: Apache-2.0
"""Operators of com.microsoft that exporters of language models write, compared with ONNX Runtime."""
import numpy as np
import pytest

from built import skip_sanitized

skip_sanitized()
pytest.importorskip("onnxruntime")
from ort_case import Case  # noqa: E402

BATCH, HEADS, GROUPS, SIZE = 2, 4, 2, 16


def given(case, name, *shape):
    return case.given(name, case.random.standard_normal(shape).astype(np.float32))


# ---- GroupQueryAttention ----------------------------------------------------------------------

class Cache:
    """Inputs of one GroupQueryAttention: `new` tokens after `past` ones, `total` in the longest."""

    def __init__(self, new, past=0, total=None, lengths=None, batch=BATCH):
        self.case, self.new, self.past, self.batch = Case(), new, past, batch
        self.total = total or past + new
        case = self.case
        self.lengths = case.given("lengths", np.array(lengths or [self.total - 1] * batch, np.int32))
        self.parts = [given(case, name, batch, new, heads * SIZE) for name, heads in
                      (("query", HEADS), ("key", GROUPS), ("value", GROUPS))]
        self.cache = [given(case, name, batch, GROUPS, past, SIZE) if past else ""
                      for name in ("past_key", "past_value")]
        angles = case.random.standard_normal((self.total + 3, SIZE // 2))
        self.tables = [case.weight(np.cos(angles), np.float32), case.weight(np.sin(angles), np.float32)]

    def node(self, *more, parts=None, rotate=0, **attributes):
        self.case.node("GroupQueryAttention", *(parts or self.parts), *self.cache, self.lengths,
                       self.case.weight(self.total, np.int32), *(self.tables if rotate else ["", ""]),
                       *more, outputs=(True, True, True), num_heads=HEADS, kv_num_heads=GROUPS,
                       do_rotary=rotate, **attributes)


def test_group_query_prompt():
    new = Cache(5, lengths=[4, 2])  # the second text is shorter, padded at its end
    new.node()
    new.node(rotate=1)
    new.node(rotate=1, rotary_interleaved=1)
    new.node(new.case.weight([[1, 4, 3, 2, 0]] * BATCH, np.int64), rotate=1)
    new.node(scale=0.2, softcap=1.5)
    new.node(local_window_size=3)
    new.node(causal=0)
    new.node("", given(new.case, "scores", 1, HEADS, 5, 5))
    new.node("", "", new.case.floats(HEADS))
    new.node(smooth_softmax=1)
    packed = given(new.case, "packed", BATCH, 5, (HEADS + 2 * GROUPS) * SIZE)
    new.node(rotate=1, parts=[packed, "", ""])
    new.case.compare()


@pytest.mark.parametrize("total", [7, 5])  # as long as the past and the new token, or less
def test_group_query_step(total):
    step = Cache(1, 6, total, [total - 1, 3])
    step.node()
    step.node(step.case.weight([[2], [5]], np.int64), rotate=1)
    step.node("", given(step.case, "scores", BATCH, 1, 1, total), local_window_size=3)
    step.node(rotate=1, smooth_softmax=1)
    step.case.compare()


def test_group_query_without_its_past():
    step = Cache(1, 6, 9)
    step.node()
    assert "has 9 keys in all, but 6 of the past and 1 new ones" in step.case.message()


def test_group_query_further_prompt():
    more = Cache(3, 7, batch=1)
    more.node(rotate=1)
    more.node(more.case.weight([[2, 3, 1]], np.int64), rotate=1, local_window_size=2)
    more.node(causal=0)
    more.case.compare()


def test_rotary_embedding():
    case = Case()
    angles = case.random.standard_normal((9, 4))
    tables = [case.weight(np.cos(angles), np.float32), case.weight(np.sin(angles), np.float32)]
    flat, heads = given(case, "flat", BATCH, 5, 24), given(case, "heads", BATCH, 3, 5, 8)
    first = case.given("first", np.array([3], np.int64))
    each = case.given("each", case.random.integers(0, 9, (BATCH, 5)))
    for interleaved in (0, 1):
        for positions in (first, each):
            for x in (flat, heads):
                case.node("RotaryEmbedding", x, positions, *tables, interleaved=interleaved)
    wide = given(case, "wide", BATCH, 5, 3 * 12)
    case.node("RotaryEmbedding", wide, each, *tables, num_heads=3, rotary_embedding_dim=8)
    case.compare()


# ---- Weights in blocks ------------------------------------------------------------------------

def packed(case, rows, columns, block, bits, zero):
    blocks = -(-columns // block)
    numbers = [case.weight(case.random.integers(0, 256, (rows, blocks, block * bits // 8)), np.uint8),
               case.weight(case.random.uniform(0.01, 0.02, (rows, blocks)), np.float32)]
    if zero == "packed":
        return numbers + [case.weight(case.random.integers(0, 256, (rows, -(-blocks * bits // 8))),
                                      np.uint8)]
    return numbers + ([case.floats(rows, blocks, scale=4)] if zero else [])


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_matmul_bits(bits):
    case = Case()
    for rows, columns, block in ((13, 80, 32), (7, 48, 16)):
        x = given(case, f"x{rows}", 2, 3, columns)
        for zero in ("", "packed", "floats"):
            weights = packed(case, rows, columns, block, bits, zero)
            if bits == 8 and zero == "floats":
                continue  # ONNX Runtime has no kernel for it
            case.node("MatMulNBits", x, *weights, N=rows, K=columns, bits=bits, block_size=block)
            if bits == 4:
                absent = [""] * (5 - 1 - len(weights))
                case.node("MatMulNBits", x, *weights, *absent, case.floats(rows), N=rows, K=columns,
                          bits=bits, block_size=block)
    case.compare()


def test_gather_blocks():
    case = Case()
    numbers = case.given("numbers", np.array([[3, 0, 4], [1, 6, -1]], np.int64))
    for bits in (4, 8):
        each = 8 // bits
        table = case.weight(case.random.integers(0, 256, (7, 96 // each)), np.uint8)
        scale = case.weight(case.random.uniform(0.01, 0.02, (7, 3)), np.float32)
        zero = case.weight(case.random.integers(0, 256, (7, -(-3 // each))), np.uint8)
        for zeros in ([], [zero]):
            case.node("GatherBlockQuantized", table, numbers, scale, *zeros, bits=bits, block_size=32)
    case.compare()


def test_refusals():
    case = Case()
    x, table = given(case, "x", 1, 2, HEADS * SIZE), case.floats(4, SIZE)
    lengths, total = case.weight([1], np.int32), case.weight(2, np.int32)
    heads = {"num_heads": HEADS, "kv_num_heads": HEADS}
    case.node("GroupQueryAttention", x, x, x, **heads)
    case.node("GroupQueryAttention", x, x, x, "", "", lengths, total, num_heads=3, kv_num_heads=2)
    case.node("GroupQueryAttention", x, x, x, "", "", lengths, total, do_rotary=1, **heads)
    case.node("GroupQueryAttention", x, x, x, "", "", lengths, total, table, table, do_rotary=1,
              **heads)
    case.node("GroupQueryAttention", x, x, x, "", "", lengths, total, k_quant_type="PER_TENSOR",
              **heads)
    weights = packed(case, 5, 64, 32, 4, "")
    case.node("MatMulNBits", x, *weights, N=5, K=64, bits=3, block_size=32)
    case.node("MatMulNBits", x, *weights, N=5, K=63, block_size=16)
    case.node("MatMulNBits", x, *weights, N=5, K=2 ** 40, block_size=32)
    text = case.message()
    for part in ("takes seqlens_k and total_sequence_length",
                 "3 heads of queries, 2 of keys and values",
                 "rotates without tables of rank 2",
                 "rotates 32 of 16 numbers",
                 "'k_quant_type' is 'PER_TENSOR': only caches of floats are supported",
                 "weights of 3 bits are not supported",
                 "its weights and scales do not fit N, K and block_size",
                 "weights of 5 x 1099511627776 in blocks of 32"):
        assert part in text, part
