# SPDX-License-Identifier: Apache-2.0
"""Patterns by their names, for FuseOpsByPattern."""
from pleat.relax.composite import FusionPattern

__all__ = ["get_pattern", "get_patterns_with_prefix", "register_patterns"]

_patterns = {}


def register_patterns(patterns):
    """Keeps patterns: FusionPatterns, or tuples of their first fields. Later ones come first."""
    for one in patterns:
        if not isinstance(one, (FusionPattern, tuple)):
            raise TypeError(f"Cannot register type {type(one)} as pattern")
        one = one if isinstance(one, FusionPattern) else FusionPattern(*one)
        _patterns.pop(one.name, None)
        _patterns[one.name] = one


def get_patterns_with_prefix(prefix):
    """The patterns whose names begin so, the last one first."""
    return [one for name, one in reversed(_patterns.items()) if name.startswith(prefix)]


def get_pattern(name):
    """The pattern of this name, or None."""
    return _patterns.get(name)
