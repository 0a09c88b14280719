# SPDX-License-Identifier: Apache-2.0
"""Pleat: layouts of tensors as objects, exact answers about them, and compiled models."""
from pleat import layout, te, tir
from pleat._library import Message, PleatError, Undecided, version
from pleat.layout import Layout
from pleat.model import Model, PleatFault, Session, compile, load

__version__ = version()
__all__ = ["Layout", "Message", "Model", "PleatError", "PleatFault", "Session", "Undecided", "compile",
           "layout", "load", "te", "tir"]
