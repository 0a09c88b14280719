# SPDX-License-Identifier: Apache-2.0
"""The functions that lower and build programs, and the program of a schedule of tensor expressions."""
from pleat.runtime import build  # noqa: F401
from pleat.te.lowering import lower, schedule_of


def schedule_to_module(sch, args=None, name="main", binds=None):
    """The module of a te.Schedule, with blocks, before any pass. `binds` is empty: the parameters are compact."""
    if binds:
        raise ValueError("binds: a parameter has the layout that the schedule gives it by transform_layout")
    if args is None:
        raise TypeError("a te.Schedule needs the list of its arguments, args=[A, B]")
    return schedule_of(sch, args, name).mod
