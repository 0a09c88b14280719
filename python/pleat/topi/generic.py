# SPDX-License-Identifier: Apache-2.0
"""Schedules for processors by TVM's names: what has no reduction is computed where it is read."""
from pleat import te
from pleat.te.schedule import AutoInlineInjective


def schedule_injective(outs):
    """The schedule of one tensor, or of a list of them."""
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    s = te.create_schedule([out.op for out in outs])
    AutoInlineInjective(s)
    return s


schedule_elemwise = schedule_broadcast = schedule_reduce = schedule_softmax = schedule_pool = schedule_injective

__all__ = ["schedule_broadcast", "schedule_elemwise", "schedule_injective", "schedule_pool", "schedule_reduce",
           "schedule_softmax"]
