# SPDX-License-Identifier: Apache-2.0
"""Patterns on graph functions, with TVM's names: what they match, and what takes its place."""
from pleat.relax.dpl import context, pattern, rewrite
from pleat.relax.dpl.context import *  # noqa: F401,F403
from pleat.relax.dpl.pattern import *  # noqa: F401,F403
from pleat.relax.dpl.rewrite import *  # noqa: F401,F403

__all__ = [*context.__all__, *pattern.__all__, *rewrite.__all__]
