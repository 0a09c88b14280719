# SPDX-License-Identifier: Apache-2.0
"""The names of pleat.tir under TVM's name for them since 2026."""
import importlib
import sys

from pleat import tir
from pleat.tir import *  # noqa: F403

# A module is the same under both names.
for _name in tir.MODULES:
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"pleat.tir.{_name}")


def __getattr__(name):
    return getattr(tir, name)
