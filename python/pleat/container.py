# SPDX-License-Identifier: Apache-2.0
"""Lists and dictionaries by the names that TVM's module of containers has for them."""
from pleat.ir import Array, Map

__all__ = ["Array", "Map"]
