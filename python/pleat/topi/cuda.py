# SPDX-License-Identifier: Apache-2.0
"""Schedules for devices by TVM's names, on each device of Pleat: elements are spread over blocks of threads, and the
threads of a block compute a sum together.

    B = topi.sum(A, axis=1)
    run = pleat.build(topi.cuda.schedule_reduce(B), [A, B], target="opencl")"""
from pleat import te
from pleat.topi.generic import schedule_injective as _inlined

THREADS, LANES = 64, 32  # of a block that computes elements, and of one that computes a sum


def _spread(stage, axes):
    """Spreads the elements of a stage over blocks of threads."""
    block, thread = stage.split(stage.fuse(*axes), THREADS)
    stage.bind(block, te.thread_axis("blockIdx.x"))
    stage.bind(thread, te.thread_axis("threadIdx.x"))
    return thread


def schedule_injective(outs):
    """Spreads the elements of each tensor over blocks of threads; what they are made of is computed in place. A
    reduction among that is computed by the threads for their elements."""
    s = _inlined(outs)
    for op in s.outputs:
        thread = _spread(s[op], s[op].op.axis)
        if len(s.outputs) == 1:
            _compute_at(s, s[op], thread)
    return s


def _compute_at(s, parent, loop):
    """Computes all other reductions at a loop of the output."""
    for stage in s.stages:
        if stage is not parent and stage.op.reduce_axis:
            stage.compute_at(parent, loop)


def _share(s, reduction):
    """Lets the threads of a block compute a reduction together: makes partial results, and gives a function that
    spreads them over threads once the reduction has its place."""
    _, lane = reduction.split(reduction.fuse(*reduction.op.reduce_axis), LANES)
    partial = s.rfactor(reduction.origin_op.output(0), lane)

    def spread():
        lane = reduction.op.reduce_axis[0]
        reduction.bind(lane, te.thread_axis("threadIdx.x"))
        s[partial].compute_at(reduction, lane)
    return spread


def schedule_reduce(outs):
    """A block for each element of the result, of which the threads compute the reduction together. Reductions to
    several tensors, and several reductions, are computed by one thread for each element."""
    s = _inlined(outs)
    reductions = [stage for stage in s.stages if stage.op.reduce_axis]
    if len(s.outputs) > 1 or len(reductions) != 1 or reductions[0].op.num_outputs > 1:
        return schedule_injective(outs)
    out, reduction = s[s.outputs[0]], reductions[0]
    spread = _share(s, reduction)
    block = out.fuse(*out.op.axis)
    out.bind(block, te.thread_axis("blockIdx.x"))
    if reduction is not out:
        reduction.compute_at(out, block)
    spread()
    return s


def schedule_softmax(outs):
    """A block for each row, of which the threads compute its sums together, where these are over the last axis."""
    s = _inlined(outs)
    out, reductions = s[s.outputs[0]], [stage for stage in s.stages if stage.op.reduce_axis]
    rows = [repr(a.dom.extent) for a in out.op.axis[:-1]]
    is_by_rows = all([repr(a.dom.extent) for a in stage.op.axis] == rows for stage in reductions)
    if len(s.outputs) > 1 or out in reductions or not rows or not is_by_rows:
        return schedule_injective(outs)
    spread = [_share(s, stage) for stage in reductions]
    block = out.fuse(*out.op.axis[:-1])
    out.bind(block, te.thread_axis("blockIdx.x"))
    _, lane = out.split(out.op.axis[-1], LANES)
    out.bind(lane, te.thread_axis("threadIdx.x"))
    for stage, by_threads in zip(reductions, spread):
        stage.compute_at(out, block)
        by_threads()
    return s


schedule_elemwise = schedule_broadcast = schedule_injective
schedule_pool = schedule_injective

__all__ = ["schedule_broadcast", "schedule_elemwise", "schedule_injective", "schedule_pool", "schedule_reduce",
           "schedule_softmax"]
