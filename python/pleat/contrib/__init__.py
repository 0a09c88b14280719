# SPDX-License-Identifier: Apache-2.0
"""Temporary folders (utils) and the C compiler (cc) as programs for TVM use them, with its names."""
from pleat.contrib import cc, utils

__all__ = ["cc", "utils"]
