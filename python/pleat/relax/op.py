# SPDX-License-Identifier: Apache-2.0
"""The operators of graph functions as functions of expressions, which give a Call: relax.op.nn.relu(x) is
R.nn.relu(x)."""
from pleat.ir._module import Op
from pleat.relax.expr import Call
from pleat.script._values import Value


class Operator(Value):
    """An operator, or the operators of a name such as nn, by its text R.NAME."""

    def __getattr__(self, name):
        return super().__getattr__(name) if name.startswith("__") else Operator(f"{self}.{name}")

    def __call__(self, *args, **attrs):
        return Call(Op(f"relax.{str(self).removeprefix('R.')}"), args, attrs)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Operator(f"R.{name}")
