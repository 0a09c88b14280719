# SPDX-License-Identifier: Apache-2.0
"""Pleat: layouts of tensors as data, and exact answers about them."""
from pleat import layout, te, tir
from pleat._library import PleatError, Undecided, version
from pleat.layout import Layout

__version__ = version()
__all__ = ["Layout", "PleatError", "Undecided", "layout", "te", "tir"]
