# SPDX-License-Identifier: Apache-2.0
"""Patterns on graph functions, with TVM's names."""
from pleat.relax.dpl import context, pattern
from pleat.relax.dpl.context import *  # noqa: F401,F403
from pleat.relax.dpl.pattern import *  # noqa: F401,F403

__all__ = [*context.__all__, *pattern.__all__]
