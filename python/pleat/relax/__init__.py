# SPDX-License-Identifier: Apache-2.0
"""Graph functions, their passes and analyses, with TVM's names."""
from pleat.ir._module import Function
from pleat.relax import analysis, transform

__all__ = ["Function", "analysis", "transform"]
