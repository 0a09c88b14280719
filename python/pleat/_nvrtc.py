# SPDX-License-Identifier: Apache-2.0
"""Finds NVRTC where it is a Python package, so that the library does, which looks for it by name."""
import functools
import pathlib

from pleat._library import Lazy

ctypes = Lazy("ctypes")
util = Lazy("importlib.util")


@functools.cache
def find_nvrtc():
    """Loads the compiler of the package nvidia-cuda-nvrtc, if it is installed."""
    found = util.find_spec("nvidia")
    for folder in (found and found.submodule_search_locations) or ():
        for path in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.[0-9]*"), reverse=True):
            return ctypes.CDLL(str(path))
    return None
