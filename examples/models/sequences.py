# SPDX-License-Identifier: Apache-2.0
"""Transformers and recurrent networks, each as in its paper."""
import numpy as np
from onnx import TensorProto


def width_of(b, width, heads):
    """Width and heads, reduced for small models."""
    return (24, 3) if b.small else (width, heads)


# ---- BERT-base: Devlin and others, 2018

def bert(b):
    tokens, words = (11, 97) if b.small else (128, 30522)
    width, heads = width_of(b, 768, 12)
    ids, kinds, mask = (b.input(name, [1, tokens], TensorProto.INT64) for name in
                        ("input_ids", "token_type_ids", "attention_mask"))
    x = b("Gather", b.weight("words", words, width), ids)
    x = b("Add", x, b("Gather", b.weight("kinds", 2, width), kinds))
    x = b("Add", x, b.weight("positions", 1, tokens, width))
    x = b.layer_norm("embedding.norm", x, width, 1e-12)
    hidden = b("Sub", b.scalar(1), b("Cast", b("Unsqueeze", mask, b.integers([1, 2])),
                                     to=TensorProto.FLOAT))
    hidden = b("Mul", hidden, b.scalar(-10000))
    for i in range(b.blocks(12)):
        name = f"layer{i}"
        y = b.attention(name + ".attention", x, width, heads, tokens,
                        adjust=lambda scores: b("Add", scores, hidden))
        x = b.layer_norm(name + ".norm1", b("Add", y, x), width, 1e-12)
        y = b.feed_forward(name + ".mlp", x, width)
        x = b.layer_norm(name + ".norm2", b("Add", y, x), width, 1e-12)
    b.output(x, "last_hidden_state")


# ---- GPT-2, small: Radford and others, 2019; the embedding is the last layer's weight too

def gpt2(b):
    tokens, words = (9, 97) if b.small else (64, 50257)
    width, heads = width_of(b, 768, 12)
    ids = b.input("input_ids", [1, tokens], TensorProto.INT64)
    embedding = b.weight("words", words, width, scale=0.3)
    x = b("Add", b("Gather", embedding, ids), b.weight("positions", 1, tokens, width, scale=0.3))
    causal = b.constant("causal", np.tril(np.ones((1, 1, tokens, tokens))), bool)
    for i in range(b.blocks(12)):
        x = b.pre_norm_block(f"layer{i}", x, width, heads, tokens, gelu=b.gelu_tanh, joint=True,
                             adjust=lambda scores: b("Where", causal, scores, b.scalar(-1e4)))
    x = b.layer_norm("last.norm", x, width)
    b.output(b("MatMul", x, b.transpose(embedding, 1, 0)), "logits")


# ---- ViT-B/16: Dosovitskiy and others, 2020

def vit(b):
    size = 48 if b.small else 224
    width, heads = width_of(b, 768, 12)
    tokens = (size // 16) ** 2 + 1
    x = b.conv("patches", (b.input("image", [1, 3, size, size]), 3), width, 16, 16, pads=0, gain=1.0)
    x = b.transpose(b.reshape(x[0], 1, width, tokens - 1), 0, 2, 1)
    x = b("Concat", b.weight("class", 1, 1, width), x, axis=1)
    x = b("Add", x, b.weight("positions", 1, tokens, width, scale=0.3))
    for i in range(b.blocks(12)):
        x = b.pre_norm_block(f"layer{i}", x, width, heads, tokens, joint=True)
    x = b.layer_norm("last.norm", x, width, 1e-6)
    x = b("Gather", x, b.constant("first", np.array(0), np.int64), axis=1), width
    b.output(b.dense("classifier", x, 10 if b.small else 1000)[0], "logits")


# ---- Swin-T: Liu and others, 2021

def shift_mask(side, window, shift):
    """The mask of a shifted window: tokens do not attend to those from the opposite edge."""
    regions = np.zeros((side, side))
    cuts = (slice(0, -window), slice(-window, -shift), slice(-shift, None))
    for i, rows in enumerate(cuts):
        for k, columns in enumerate(cuts):
            regions[rows, columns] = 3 * i + k
    count = side // window
    parts = regions.reshape(count, window, count, window).transpose(0, 2, 1, 3)
    parts = parts.reshape(count * count, 1, window * window)
    return np.where(parts != parts.transpose(0, 2, 1), -100.0, 0.0)[:, None]


def swin(b):
    side, window = (16, 4) if b.small else (56, 7)
    width = 12 if b.small else 96
    stages = ((2, 3), (2, 6), (6, 12), (2, 24))[:2 if b.small else 4]
    tokens = window * window

    def rolled(x, by):
        for axis in (1, 2):
            x = b("Concat", b.slice(x, axis, by, 2 ** 31), b.slice(x, axis, 0, by), axis=axis)
        return x

    def block(name, x, width, heads, side, shift):
        count = side // window
        bias = b.weight(name + ".bias", 1, heads, tokens, tokens, scale=0.2)
        mask = b.constant(name + ".mask", shift_mask(side, window, shift)) if shift else None

        def adjust(scores):
            scores = b("Add", scores, bias)
            return b("Add", scores, mask) if mask else scores

        y = b.reshape(b.layer_norm(name + ".norm1", x, width), 1, side, side, width)
        y = rolled(y, shift) if shift else y
        y = b.transpose(b.reshape(y, 1, count, window, count, window, width), 0, 1, 3, 2, 4, 5)
        y = b.reshape(y, count * count, tokens, width)
        y = b.attention(name + ".attention", y, width, heads, tokens, lead=count * count,
                        adjust=adjust, joint=True)
        y = b.transpose(b.reshape(y, 1, count, count, window, window, width), 0, 1, 3, 2, 4, 5)
        y = b.reshape(y, 1, side, side, width)
        y = rolled(y, side - shift) if shift else y
        x = b("Add", x, b.reshape(y, 1, side * side, width))
        y = b.feed_forward(name + ".mlp", b.layer_norm(name + ".norm2", x, width), width)
        return b("Add", x, y)

    def merged(name, x, width, side):
        """Merges four adjacent tokens into one of twice the width."""
        x = b.reshape(x, 1, side, side, width)
        corners = [b.slice(b.slice(x, 1, i, 2 ** 31, 2), 2, k, 2 ** 31, 2)
                   for k in range(2) for i in range(2)]
        x = b.reshape(b("Concat", *corners, axis=3), 1, side * side // 4, 4 * width)
        return b.linear(name, b.layer_norm(name + ".norm", x, 4 * width), 4 * width, 2 * width,
                        bias=False)

    x = b.conv("patches", (b.input("image", [1, 3, 4 * side, 4 * side]), 3), width, 4, 4, pads=0,
               gain=1.0)
    x = b.transpose(b.reshape(x[0], 1, width, side * side), 0, 2, 1)
    x = b.layer_norm("patches.norm", x, width)
    for stage, (blocks, heads) in enumerate(stages):
        if stage:
            x = merged(f"merge{stage}", x, width, side)
            width, side = 2 * width, side // 2
        for i in range(blocks):
            x = block(f"layer{stage}.{i}", x, width, heads, side,
                      window // 2 if i % 2 and side > window else 0)
    x = b.layer_norm("last.norm", x, width)
    x = b("ReduceMean", x, axes=[1], keepdims=0), width
    b.output(b.dense("classifier", x, 10 if b.small else 1000)[0], "logits")


# ---- Whisper-tiny, its encoder: Radford and others, 2022

def whisper(b):
    frames, bands = (26, 13) if b.small else (3000, 80)
    width, heads = width_of(b, 384, 6)
    tokens = frames // 2
    x = b.conv("conv1", (b.input("mel", [1, bands, frames]), bands), width, 3, axes=1)
    x = b.conv("conv2", (b.gelu(x[0]), width), width, 3, 2, axes=1)
    x = b.transpose(b.gelu(x[0]), 0, 2, 1)
    time = np.arange(tokens)[:, None] * np.exp(-np.log(10000) / (width // 2 - 1)
                                               * np.arange(width // 2))
    x = b("Add", x, b.constant("positions", np.concatenate([np.sin(time), np.cos(time)], 1)[None]))
    for i in range(b.blocks(4)):
        x = b.pre_norm_block(f"layer{i}", x, width, heads, tokens)
    b.output(b.layer_norm("last.norm", x, width), "last_hidden_state")


# ---- LSTM language model, medium: Zaremba and others, 2014

def lstm(b):
    tokens, words, width = (7, 31, 13) if b.small else (35, 10000, 650)
    ids = b.input("input_ids", [tokens, 1], TensorProto.INT64)
    x = b("Gather", b.weight("words", words, width), ids)
    for i in range(2):
        scale = np.sqrt(1 / width)
        y = b.node("LSTM", f"lstm{i}", [
            x, b.weight(f"lstm{i}.input", 1, 4 * width, width, scale=scale),
            b.weight(f"lstm{i}.recurrent", 1, 4 * width, width, scale=scale),
            b.weight(f"lstm{i}.bias", 1, 8 * width, scale=0.1)], hidden_size=width)
        x = b("Squeeze", y, b.integers([1]))
    b.output(b.linear("decoder", x, width, words), "logits")
