# SPDX-License-Identifier: Apache-2.0
"""TVMScript in Python, with the names of tvm.script:

    from pleat.script import ir as I, relax as R, tir as T

The source text of a function under @T.prim_func or @R.function, or of a class under @I.ir_module, is
read by the library. The names that it takes from the Python program around it are evaluated there.
"""
from pleat.script import ir, relax, tir, tirx
from pleat.script._parse import format, from_source
from pleat.script.ir import ir_module

__all__ = ["format", "from_source", "ir", "ir_module", "relax", "tir", "tirx"]
