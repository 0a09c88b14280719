# SPDX-License-Identifier: Apache-2.0
"""Convolutional networks, each as in its paper."""
import numpy as np


def side_of(b, size, small):
    return (small if b.small else size) // b.scale


def image(b, size, small):
    return b.input("image", [1, 3] + [side_of(b, size, small)] * 2), 3


def classes(b):
    return 10 if b.small else 1000


# ---- ResNet: He and others, 2015; the bottleneck's stride is in its 3x3 convolution (v1.5)

def bottleneck(b, name, x, filters, stride):
    inner = b.channels(filters)
    y = b.relu(name + ".relu1", b.conv_norm(name + ".conv1", x, inner, 1))
    y = b.relu(name + ".relu2", b.conv_norm(name + ".conv2", y, inner, 3, stride))
    y = b.conv_norm(name + ".conv3", y, b.channels(4 * filters), 1, gain=0.5)
    if x[1] != y[1] or stride != 1:
        x = b.conv_norm(name + ".project", x, y[1], 1, stride, gain=1.0)
    return b.relu(name + ".relu3", b.add(name + ".add", y, x))


def resnet50(b):
    x = b.relu("stem.relu", b.conv_norm("stem.conv", image(b, 224, 64), b.channels(64), 7, 2))
    x = b.max_pool(x, 3, 2, 1)
    for stage, (blocks, filters) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        for block in range(b.blocks(blocks, 2)):
            stride = 2 if block == 0 and stage > 1 else 1
            x = bottleneck(b, f"layer{stage}.{block}", x, filters, stride)
    b.classifier(x, classes(b))


# ---- R3D-18: Tran and others, "A Closer Look at Spatiotemporal Convolutions", 2018

def resnet3d(b):
    frames, size = (8, 20) if b.small else (16, 112)
    x = b.input("clip", [1, 3, frames, size, size]), 3
    x = b.relu("stem.relu", b.conv_norm("stem.conv", x, b.channels(64), (3, 7, 7), (1, 2, 2), axes=3))
    for stage, filters in enumerate((64, 128, 256, 512), 1):
        for block in range(b.blocks(2)):
            name, stride = f"layer{stage}.{block}", 2 if block == 0 and stage > 1 else 1
            y = b.conv_norm(name + ".conv1", x, b.channels(filters), 3, stride, axes=3)
            y = b.conv_norm(name + ".conv2", b.relu(name + ".relu1", y), b.channels(filters), 3,
                            gain=0.5, axes=3)
            if stride != 1:
                x = b.conv_norm(name + ".project", x, b.channels(filters), 1, stride, gain=1.0, axes=3)
            x = b.relu(name + ".relu2", b.add(name + ".add", y, x))
    b.classifier(x, 5 if b.small else 400)


# ---- MobileNet-V2: Sandler and others, 2018

def inverted_residual(b, name, x, filters, stride, expansion):
    y = x
    if expansion > 1:
        y = b.relu6(name + ".relu1", b.conv_norm(name + ".expand", y, x[1] * expansion, 1))
    y = b.relu6(name + ".relu2", b.conv_norm(name + ".depthwise", y, y[1], 3, stride, y[1]))
    y = b.conv_norm(name + ".project", y, filters, 1, gain=1.0)
    return b.add(name + ".add", x, y) if stride == 1 and x[1] == filters else y


def mobilenetv2(b):
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))  # expansion, channels, blocks, first stride
    x = b.relu6("stem.relu", b.conv_norm("stem.conv", image(b, 224, 64), b.channels(32), 3, 2))
    for stage, (expansion, channels, blocks, stride) in enumerate(rows, 1):
        for block in range(b.blocks(blocks, 2)):
            x = inverted_residual(b, f"layer{stage}.{block}", x, b.channels(channels),
                                  stride if block == 0 else 1, expansion)
    x = b.relu6("last.relu", b.conv_norm("last.conv", x, b.channels(1280), 1))
    b.classifier(x, classes(b))


# ---- MobileNet-V3, large: Howard and others, 2019

def mobilenetv3(b):
    rows = ((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
            (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2),
            (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
            (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1), (5, 672, 160, 1, 1, 2),
            (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1))
    # kernel, expanded, channels, squeeze and excite?, hard swish?, stride
    if b.small:
        rows = rows[:4] + rows[6:7] + rows[10:11] + rows[13:14]
    x = b.hard_swish("stem.act", b.conv_norm("stem.conv", image(b, 224, 48), b.channels(16), 3, 2))
    for i, (size, expanded, channels, excite, swish, stride) in enumerate(rows):
        name, act = f"layer{i}", b.hard_swish if swish else b.relu
        y, inner, filters = x, b.channels(expanded), b.channels(channels)
        if inner != x[1]:
            y = act(name + ".act1", b.conv_norm(name + ".expand", y, inner, 1))
        y = act(name + ".act2", b.conv_norm(name + ".depthwise", y, inner, size, stride, inner))
        if excite:
            y = b.squeeze_excite(name + ".excite", y, max(3, inner // 4), b.relu, "HardSigmoid",
                                 alpha=1 / 6, beta=0.5)
        y = b.conv_norm(name + ".project", y, filters, 1, gain=1.0)
        x = b.add(name + ".add", x, y) if stride == 1 and x[1] == filters else y
    x = b.hard_swish("last.act", b.conv_norm("last.conv", x, b.channels(960), 1))
    x = b.flat((b("GlobalAveragePool", x[0]), x[1]))
    x = b.hard_swish("hidden.act", b.dense("hidden", x, b.channels(1280), gain=2.0))
    b.output(b.dense("classifier", x, classes(b))[0], "logits")


# ---- EfficientNet-B0: Tan and Le, 2019

def efficientnet(b):
    rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
            (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
    # expansion, channels, blocks, first stride, kernel
    rows = rows[:4] + rows[6:] if b.small else rows
    x = b.silu("stem.act", b.conv_norm("stem.conv", image(b, 224, 48), b.channels(32), 3, 2))
    for stage, (expansion, channels, blocks, first, size) in enumerate(rows, 1):
        for block in range(b.blocks(blocks, 1)):
            name, stride = f"layer{stage}.{block}", first if block == 0 else 1
            y, inner = x, x[1] * expansion
            if expansion > 1:
                y = b.silu(name + ".act1", b.conv_norm(name + ".expand", y, inner, 1))
            y = b.silu(name + ".act2", b.conv_norm(name + ".depthwise", y, inner, size, stride, inner))
            y = b.squeeze_excite(name + ".excite", y, max(2, x[1] // 4), b.silu, "Sigmoid")
            y = b.conv_norm(name + ".project", y, b.channels(channels), 1, gain=1.0)
            x = b.add(name + ".add", x, y) if stride == 1 and x[1] == y[1] else y
    x = b.silu("last.act", b.conv_norm("last.conv", x, b.channels(1280), 1))
    b.classifier(x, classes(b))


# ---- DenseNet-121: Huang and others, 2017

def densenet121(b):
    growth = b.channels(32)
    x = b.relu("stem.relu", b.conv_norm("stem.conv", image(b, 224, 64), b.channels(64), 7, 2))
    x = b.max_pool(x, 3, 2, 1)
    for stage, blocks in enumerate((6, 12, 24, 16)):
        for block in range(b.blocks(blocks, 2)):
            name = f"dense{stage}.{block}"
            y = b.relu(name + ".relu1", b.norm(name + ".first", x))
            y = b.conv_norm(name + ".conv1", y, 4 * growth, 1)
            y = b.conv(name + ".conv2", b.relu(name + ".relu2", y), growth, 3, bias=False)
            x = b.concat(x, y)
        x = b.relu(f"after{stage}.relu", b.norm(f"after{stage}", x))
        if stage < 3:
            x = b.conv(f"transition{stage}", x, x[1] // 2, 1, bias=False)
            x = b.average_pool(x, 2, 2)
    b.classifier(x, classes(b))


# ---- SqueezeNet 1.0: Iandola and others, 2016

def squeezenet(b):
    def fire(i, x, squeeze, expand):
        name = f"fire{i}"
        y = b.relu(name + ".relu", b.conv(name + ".squeeze", x, b.channels(squeeze), 1))
        return b.concat(*[b.relu(f"{name}.expand{size}.relu",
                                 b.conv(f"{name}.expand{size}", y, b.channels(expand), size))
                          for size in (1, 3)])

    x = b.relu("stem.relu", b.conv("stem", image(b, 224, 63), b.channels(96), 7, 2, pads=0))
    x = b.max_pool(x, 3, 2)
    for i, squeeze in enumerate((16, 16, 32, 32, 48, 48, 64, 64), 2):
        x = fire(i, x, squeeze, 4 * squeeze)
        if i in (4, 8):
            x = b.max_pool(x, 3, 2)
    x = b.relu("last.relu", b.conv("last", x, classes(b), 1))
    b.output(b.flat((b("GlobalAveragePool", x[0]), x[1]))[0], "logits")


# ---- VGG-16: Simonyan and Zisserman, 2014

def vgg16(b):
    x, size = image(b, 224, 32), side_of(b, 224, 32)
    for stage, (convolutions, filters) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))):
        for i in range(b.blocks(convolutions, 1 + stage % 2)):
            x = b.relu(f"relu{stage}.{i}", b.conv(f"conv{stage}.{i}", x, b.channels(filters), 3))
        x, size = b.max_pool(x, 2, 2), size // 2
    x = b.flat(x, size * size)
    for i in range(2):
        x = b.relu(f"dense{i}.relu", b.dense(f"dense{i}", x, b.channels(4096), gain=2.0))
    b.output(b.dense("classifier", x, classes(b))[0], "logits")


# ---- Inception-V3: Szegedy and others, 2015

def inceptionv3(b):
    count = 0

    def unit(x, filters, size, stride=1, pads=None):
        nonlocal count
        count += 1
        name = f"conv{count}"
        return b.relu(name + ".relu", b.conv_norm(name, x, b.channels(filters), size, stride,
                                                  pads=pads))

    def chain(x, *units):
        for one in units:
            x = unit(x, *one)
        return x

    def pooled(x, filters):
        return unit(b.average_pool(x, 3, 1, 1), filters, 1)

    def block_a(x, pool):
        return b.concat(unit(x, 64, 1), chain(x, (48, 1), (64, 5)),
                        chain(x, (64, 1), (96, 3), (96, 3)), pooled(x, pool))

    def block_b(x, c):
        row, column = (1, 7), (7, 1)
        return b.concat(unit(x, 192, 1), chain(x, (c, 1), (c, row), (192, column)),
                        chain(x, (c, 1), (c, column), (c, row), (c, column), (192, row)),
                        pooled(x, 192))

    def block_c(x):
        def fork(y):
            return [unit(y, 384, (1, 3)), unit(y, 384, (3, 1))]
        return b.concat(unit(x, 320, 1), *fork(unit(x, 384, 1)),
                        *fork(chain(x, (448, 1), (384, 3))), pooled(x, 192))

    x = chain(image(b, 299, 75), (32, 3, 2, 0), (32, 3, 1, 0), (64, 3))
    x = chain(b.max_pool(x, 3, 2), (80, 1), (192, 3, 1, 0))
    x = b.max_pool(x, 3, 2)
    for pool in (32, 64, 64)[:b.blocks(3)]:
        x = block_a(x, pool)
    x = b.concat(unit(x, 384, 3, 2, 0), chain(x, (64, 1), (96, 3), (96, 3, 2, 0)),
                 b.max_pool(x, 3, 2))
    for c in (128, 160, 160, 192)[:b.blocks(4)]:
        x = block_b(x, c)
    x = b.concat(chain(x, (192, 1), (320, 3, 2, 0)),
                 chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)),
                 b.max_pool(x, 3, 2))
    for _ in range(b.blocks(2)):
        x = block_c(x)
    b.classifier(x, classes(b))


# ---- ShuffleNet-V2 1x: Ma and others, 2018

def shufflenetv2(b):
    size = side_of(b, 224, 64) // 4

    def branch(name, x, filters, stride):
        y = b.relu(name + ".relu1", b.conv_norm(name + ".conv1", x, filters, 1))
        y = b.conv_norm(name + ".depthwise", y, filters, 3, stride, filters, gain=1.0)
        return b.relu(name + ".relu2", b.conv_norm(name + ".conv2", y, filters, 1))

    def shuffle(x, side):
        value, channels = x
        value = b.transpose(b.reshape(value, 1, 2, channels // 2, side, side), 0, 2, 1, 3, 4)
        return b.reshape(value, 1, channels, side, side), channels

    x = b.relu("stem.relu", b.conv_norm("stem.conv", image(b, 224, 64), b.channels(24), 3, 2))
    x = b.max_pool(x, 3, 2, 1)
    for stage, (blocks, filters) in enumerate(((4, 116), (8, 232), (4, 464)), 2):
        half = b.channels(filters // 2)
        for block in range(b.blocks(blocks, 2)):
            name = f"stage{stage}.{block}"
            if block == 0:
                y = b.conv_norm(name + ".left.depthwise", x, x[1], 3, 2, x[1], gain=1.0)
                left = b.relu(name + ".left.relu", b.conv_norm(name + ".left.conv", y, half, 1))
                right, size = branch(name, x, half, 2), size // 2
            else:
                first, second = b.split(x[0], [half, half], 1)
                left, right = (first, half), branch(name, (second, half), half, 1)
            x = shuffle(b.concat(left, right), size)
    x = b.relu("last.relu", b.conv_norm("last.conv", x, b.channels(1024), 1))
    b.classifier(x, classes(b))


# ---- ConvNeXt-T: Liu and others, 2022

def convnext(b):
    def normed(name, x):
        """LayerNormalization over the channels of an image."""
        y = b.layer_norm(name, b.transpose(x[0], 0, 2, 3, 1), x[1], 1e-6)
        return b.transpose(y, 0, 3, 1, 2), x[1]

    x = normed("stem.norm", b.conv("stem", image(b, 224, 32), b.channels(96), 4, 4, pads=0, gain=1.0))
    for stage, (blocks, filters) in enumerate(((3, 96), (3, 192), (9, 384), (3, 768))):
        if stage:
            x = b.conv(f"down{stage}", normed(f"down{stage}.norm", x), b.channels(filters), 2, 2,
                       pads=0, gain=1.0)
        for block in range(b.blocks(blocks)):
            name = f"layer{stage}.{block}"
            y = b.conv(name + ".depthwise", x, x[1], 7, 1, x[1], gain=1.0)
            y = b.layer_norm(name + ".norm", b.transpose(y[0], 0, 2, 3, 1), x[1], 1e-6)
            y = b.feed_forward(name, y, x[1])
            y = b("Mul", y, b.constant(name + ".scale", b.rng.uniform(0.3, 0.6, x[1])))
            x = b.add(name + ".add", x, (b.transpose(y, 0, 3, 1, 2), x[1]))
    y = b.flat((b("GlobalAveragePool", x[0]), x[1]))
    y = b.layer_norm("last.norm", y[0], x[1], 1e-6), x[1]
    b.output(b.dense("classifier", y, classes(b))[0], "logits")


# ---- U-Net: Ronneberger and others, 2015: convolutions without padding, cropped copies

def unet(b):
    side = 92 if b.small else 572
    depth = 2 if b.small else 4

    def twice(name, x, filters, size):
        for i in range(2):
            x = b.relu(f"{name}.relu{i}", b.conv(f"{name}.conv{i}", x, filters, 3, pads=0))
        return x, size - 4

    def cropped(x, size, to):
        start = (size - to) // 2
        y = b("Slice", x[0], b.integers([start] * 2), b.integers([start + to] * 2), b.integers([2, 3]))
        return y, x[1]

    x, kept = (b.input("image", [1, 1, side, side]), 1), []
    for level in range(depth):
        x, side = twice(f"down{level}", x, b.channels(64 << level), side)
        kept.append((x, side))
        x, side = b.max_pool(x, 2, 2), side // 2
    x, side = twice("bottom", x, b.channels(64 << depth), side)
    for level in reversed(range(depth)):
        filters, name = b.channels(64 << level), f"up{level}"
        weight = b.weight(name + ".weight", x[1], filters, 2, 2, scale=np.sqrt(1 / x[1]))
        y = b.node("ConvTranspose", name, [x[0], weight, b.weight(name + ".bias", filters, scale=0.1)],
                   kernel_shape=[2, 2], strides=[2, 2]), filters
        side *= 2
        (copy, size) = kept[level]
        x, side = twice(name + ".conv", b.concat(cropped(copy, size, side), y), filters, side)
    b.output(b.conv("last", x, 2, 1, gain=1.0)[0], "segments")


# ---- The head of YOLOv3: Redmon and Farhadi, 2018, on the features of a backbone at 416x416

ANCHORS = (((116, 90), (156, 198), (373, 326)), ((30, 61), (62, 45), (59, 119)),
           ((10, 13), (16, 30), (33, 23)))


def yolo(b):
    kinds, side = (3, 3) if b.small else (80, 13)
    features = [(b.input(f"features{i}", [1, b.channels(c), side << i, side << i]), b.channels(c))
                for i, c in enumerate((1024, 512, 256))]

    def unit(name, x, filters, size):
        return b.leaky_relu(name + ".act", b.conv_norm(name, x, filters, size))

    def decoded(name, x, size, anchors, stride):
        """[1, 3 (5 + kinds), h, w] to boxes [1, 3 h w, 5 + kinds]: centre, extents, scores."""
        y = b.transpose(b.reshape(x[0], 1, 3, 5 + kinds, size, size), 0, 1, 3, 4, 2)
        centre, extent, scores = b.split(y, [2, 2, 1 + kinds], 4)
        rows, columns = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
        grid = b.constant(name + ".grid", np.stack([columns, rows], -1)[None, None])
        sizes = b.constant(name + ".anchors", np.array(anchors).reshape(1, 3, 1, 1, 2))
        centre = b("Mul", b("Add", b("Sigmoid", centre), grid), b.scalar(stride))
        extent = b("Mul", b("Exp", extent), sizes)
        boxes = b("Concat", centre, extent, b("Sigmoid", scores), axis=4)
        return b.reshape(boxes, 1, 3 * size * size, 5 + kinds)

    boxes, up = [], None
    for i, x in enumerate(features):
        filters = b.channels(512 >> i)
        if up:
            scales = b.constant(f"up{i}.scales", np.array([1, 1, 2, 2]))
            y = b.node("Resize", f"up{i}", [up[0], "", scales], mode="nearest",
                       coordinate_transformation_mode="asymmetric", nearest_mode="floor")
            x = b.concat((y, up[1]), x)
        for k in range(b.blocks(5, 3)):
            x = unit(f"head{i}.{k}", x, filters * (1 + k % 2), 3 if k % 2 else 1)
        y = unit(f"head{i}.last", x, 2 * filters, 3)
        y = b.conv(f"head{i}.boxes", y, 3 * (5 + kinds), 1, gain=0.1)
        boxes.append(decoded(f"decode{i}", y, side << i, ANCHORS[i], 32 >> i))
        if i < 2:
            up = unit(f"lateral{i}", x, filters // 2, 1)
    b.output(b("Concat", *boxes, axis=1), "boxes")
