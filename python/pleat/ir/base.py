# SPDX-License-Identifier: Apache-2.0
"""The comparison of programs and their JSON, under the name of TVM's module."""
from pleat.ir._module import (assert_structural_equal, load_json, save_json, structural_equal,
                              structural_hash)

__all__ = ["assert_structural_equal", "load_json", "save_json", "structural_equal", "structural_hash"]
