# SPDX-License-Identifier: Apache-2.0
"""Runs the emitted C of a model, built as a shared library, through the functions of its header."""
import ctypes
import re
import statistics
import time

import numpy


def aligned(size):
    """`size` bytes at an address that is a multiple of 64, as a NumPy array."""
    raw = numpy.zeros(size + 64, numpy.uint8)
    return raw[-raw.ctypes.data % 64:][:size]


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def pointers(arrays):
    return (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])


def median_ms(header, library, feeds, repeat):
    text = header.read_text()
    run = getattr(ctypes.CDLL(str(library)), re.search(r"int (\w+_run)\(", text).group(1))
    sizes = dict(re.findall(r"#define \w+?_((?:OUTPUT_\d+|ARENA)_BYTES) (\d+)", text))
    arena = aligned(int(sizes.pop("ARENA_BYTES")) + 64)
    outputs = [aligned(int(size)) for size in sizes.values()]
    inputs = []
    for value in feeds.values():
        inputs.append(aligned(value.nbytes))
        inputs[-1][:] = numpy.frombuffer(value.tobytes(), numpy.uint8)
    arguments = [pointers(inputs), pointers(outputs), pointer(arena)]
    weights_file = header.with_suffix(".c.weights")
    if re.search(r"_run\(const void \*weights", text):
        weights = aligned(weights_file.stat().st_size)
        weights[:] = numpy.fromfile(weights_file, numpy.uint8)
        arguments.insert(0, pointer(weights))
    if run(*arguments):
        raise RuntimeError(f"{library}: the run failed")
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run(*arguments)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
