# SPDX-License-Identifier: Apache-2.0
"""Intrinsics for the step tensorize, by TVM's names: a module for each kind of device, which registers its
intrinsics when it is imported."""
import importlib

MODULES = ("arm_cpu", "cuda", "dot_product_common", "hexagon", "rocm", "x86")


def __getattr__(name):
    if name in MODULES:
        return importlib.import_module(f"pleat.tir.tensor_intrin.{name}")
    raise AttributeError(f"module 'pleat.tir.tensor_intrin' has no attribute {name!r}")


def __dir__():
    return sorted(MODULES)
