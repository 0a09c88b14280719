# SPDX-License-Identifier: Apache-2.0
"""Numbers in shapes, for schedules that need them."""
from pleat.te.tensor import as_extent


def get_const_int(expr):
    """An integer constant as Python's number."""
    value = as_extent(expr)
    if not isinstance(value, int):
        raise ValueError(f"expected an integer constant, saw {expr!r}")
    return value


def get_const_tuple(in_tuple):
    """A shape with Python's numbers where extents are constant."""
    return tuple(map(as_extent, in_tuple))
