# SPDX-License-Identifier: Apache-2.0
"""Patterns of generators of code, with TVM's names."""
from pleat.relax.backend.pattern_registry import get_pattern, get_patterns_with_prefix, register_patterns

__all__ = ["get_pattern", "get_patterns_with_prefix", "register_patterns"]
