# SPDX-License-Identifier: Apache-2.0
"""Index maps under TVM's names."""
from pleat._expression import maximum as max, minimum as min, select as Select  # noqa: A004
from pleat.tir.index_map import IndexMap

__all__ = ["IndexMap", "Select", "max", "min"]
