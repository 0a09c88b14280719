# SPDX-License-Identifier: Apache-2.0
"""The classes that visit and rewrite expressions."""
from pleat.tir.functor import ExprFunctor, ExprMutator, ExprVisitor

__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor"]
