# SPDX-License-Identifier: Apache-2.0
"""Pleat: layouts of tensors as objects, exact answers about them, and compiled models."""
from pleat import layout, te, tir
from pleat._library import Message, PleatError, Undecided, version
from pleat.layout import Layout
from pleat.model import (Model, PleatCancelled, PleatFault, Session, compile, load, plan,
                         plan_tensor, write)

__all__ = ["Layout", "Message", "Model", "PleatCancelled", "PleatError", "PleatFault", "Session",
           "Undecided", "compile", "layout", "load", "plan", "plan_tensor", "te", "tir", "version",
           "write"]


def __getattr__(name):
    if name == "__version__":
        return version()
    raise AttributeError(f"module 'pleat' has no attribute {name!r}")
