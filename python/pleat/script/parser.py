# SPDX-License-Identifier: Apache-2.0
"""The name under which tvm.script.parser has the dialects."""
from pleat.script import from_source, ir, relax, tir, tirx

__all__ = ["from_source", "ir", "relax", "tir", "tirx"]
