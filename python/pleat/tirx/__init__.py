# SPDX-License-Identifier: Apache-2.0
"""The names of pleat.tir under TVM's name for them since 2026."""
from pleat import tir
from pleat.tir import *  # noqa: F403

__getattr__, __dir__ = tir._as_package(__name__)
