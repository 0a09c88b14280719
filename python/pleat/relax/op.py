# SPDX-License-Identifier: Apache-2.0
"""The operators of graph functions as functions of expressions: relax.op.nn.relu(x) is R.nn.relu(x)."""
from pleat.script._values import Value


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Value(f"R.{name}")
