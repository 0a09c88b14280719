# SPDX-License-Identifier: Apache-2.0
"""The comparison of programs, under the name of TVM's module."""
from pleat.ir._module import assert_structural_equal, structural_equal, structural_hash

__all__ = ["assert_structural_equal", "structural_equal", "structural_hash"]
