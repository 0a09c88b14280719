# SPDX-License-Identifier: Apache-2.0
"""Front ends that make graph functions of programs in Python."""
from pleat.relax.frontend import nn


def detach_params(mod):
    """The module and a dictionary of parameters that it holds: none, since they are arguments here."""
    return mod, {}


__all__ = ["nn"]
