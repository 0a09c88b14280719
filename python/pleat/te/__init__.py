# SPDX-License-Identifier: Apache-2.0
"""The part of TVM's `te` that index maps use: the mark between groups of physical axes."""
from pleat._expression import AXIS_SEPARATOR

__all__ = ["AXIS_SEPARATOR"]
