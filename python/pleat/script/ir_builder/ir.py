# SPDX-License-Identifier: Apache-2.0
"""The dialect I of modules inside of `with IRBuilder()`."""
from pleat._library import PleatError
from pleat.script.ir_builder._builder import Frame, IRBuilder


class _Module(Frame):
    """`with I.ir_module()`."""

    def __init__(self):
        super().__init__(None)

    def __enter__(self):
        builder = IRBuilder.current()
        if builder._functions is not None:
            raise PleatError("I.ir_module: the builder has a function or module already")
        builder._functions = []
        super().__enter__()


def ir_module():
    """A module: each `with T.prim_func()` inside adds a function to it."""
    return _Module()
