# SPDX-License-Identifier: Apache-2.0
"""Graph functions, with TVM's name."""
from pleat.ir._module import Function

__all__ = ["Function"]
