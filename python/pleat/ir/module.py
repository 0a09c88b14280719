# SPDX-License-Identifier: Apache-2.0
"""Modules under TVM's name of the file that has them."""
from pleat.ir._module import GlobalVar, IRModule

__all__ = ["GlobalVar", "IRModule"]
