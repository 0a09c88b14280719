# SPDX-License-Identifier: Apache-2.0
"""Loads a saved model and runs it from four threads, each with a session of its own:

    python -c 'import pleat; pleat.compile("digits.onnx").save("digits.pleat")'
    python threads.py digits.pleat images.npy"""
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import pleat

THREADS = 4
model = pleat.load(sys.argv[1])
images = np.load(sys.argv[2])


def classify(part):
    session = model.session(threads=1)
    return [int(session(image[np.newaxis]).argmax()) for image in part]


with ThreadPoolExecutor(THREADS) as pool:
    for digits in pool.map(classify, np.array_split(images, THREADS)):
        print(*digits, sep="\n")
