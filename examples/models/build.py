#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes well-known networks as ONNX, with random weights and statistics.

  build.py --list                        their names
  build.py resnet50 out.onnx             25.6 M weights, 1x3x224x224 to 1x1000
  build.py bert_base small.onnx --small  all operators, but narrow and short, for tests
  build.py resnet50 tiny.onnx --small --scale 2   half as many channels again, smaller images

Topology and sizes are those of the papers that convolutional.py and sequences.py name. Equal
arguments produce equal files. Weights are scaled such that values stay near 1 in all layers; batch
normalisations are separate nodes that shift and scale values a little. Needs numpy and onnx.
"""
import argparse

import convolutional as c
import onnx
import sequences as s
from builder import Builder, finished

MODELS = {"resnet50": c.resnet50, "mobilenetv2": c.mobilenetv2, "mobilenetv3": c.mobilenetv3,
          "efficientnet_b0": c.efficientnet, "shufflenetv2": c.shufflenetv2,
          "squeezenet": c.squeezenet, "densenet121": c.densenet121, "inceptionv3": c.inceptionv3,
          "vgg16": c.vgg16, "convnext_t": c.convnext, "unet": c.unet, "yolo_head": c.yolo,
          "resnet3d": c.resnet3d, "bert_base": s.bert, "gpt2": s.gpt2, "vit_b16": s.vit,
          "swin_t": s.swin, "whisper_tiny": s.whisper, "lstm": s.lstm}


def build(name, small=False, scale=1):
    b = Builder((1 / 8 if small else 1) / scale, small, scale)
    MODELS[name](b)
    return finished(b.model(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS, nargs="?")
    parser.add_argument("path", nargs="?")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--small", action="store_true", help="narrow, short, 10 classes")
    parser.add_argument("--scale", type=int, default=1, help="divides channels and images")
    arguments = parser.parse_args()
    if arguments.list:
        print(*MODELS)
    elif not arguments.path:
        parser.error("a model and the path to write it to are needed")
    else:
        onnx.save(build(arguments.model, arguments.small, arguments.scale), arguments.path)


if __name__ == "__main__":
    main()
