# SPDX-License-Identifier: Apache-2.0
"""The dialect T since 2026 inside of `with IRBuilder()`."""
from pleat.script.ir_builder import _statements


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _statements.named(name, "tirx")
