# SPDX-License-Identifier: Apache-2.0
"""What index maps take from tensor expressions: the mark between physical axes."""
from pleat._expression import AXIS_SEPARATOR

__all__ = ["AXIS_SEPARATOR"]
