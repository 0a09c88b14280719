# SPDX-License-Identifier: Apache-2.0
"""Temporary folders (utils), the C compiler (cc) and products of matrices as external code (cblas) as
programs for TVM use them, with its names."""
import importlib

from pleat.contrib import cc, utils

__all__ = ["cblas", "cc", "utils"]


def __getattr__(name):
    if name == "cblas":
        return importlib.import_module("pleat.contrib.cblas")
    raise AttributeError(f"module 'pleat.contrib' has no attribute {name!r}")
