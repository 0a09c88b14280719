# SPDX-License-Identifier: Apache-2.0
"""The predicates of set_store_predicate, under which a stage stores its elements.

In the programs here, the threads that share a reduction combine their values, and each element is
stored once, also where other threads would repeat a stage. So a predicate changes nothing where it
chooses one of these threads, as `tx == 0` does if a loop of the stage's reduction is bound to tx, or
none of its loops. Another predicate would leave elements unwritten, and is refused."""
from pleat._library import Message
from pleat.te.tensor import REDUCE, THREAD, IterVar
from pleat.tir import nodes
from pleat.tir.op import as_expression
from pleat.tir.schedule import ScheduleError


def _conditions(predicate):
    if isinstance(predicate, nodes.And):
        return _conditions(predicate.a) + _conditions(predicate.b)
    return [predicate]


def _bound_loops(stage):
    """The loops of a stage that are bound to threads, with their tags."""
    marks = {step.arguments[0]: step.arguments[2][0] for step in stage.steps
             if step.name == "mark" and step.arguments[1] == "bind"}
    return [(axis, str(marks[axis])) for axis in stage.leaf_iter_vars if axis in marks]


def thread_of(stage, axis):
    """The tag of the threads that a loop of a stage is bound to, or an empty text."""
    return next((tag for bound, tag in _bound_loops(stage) if bound is axis), "")


def loop_in_the_end(stage):
    """The loop at which a stage is computed: where later steps split it, the inner part, and where they fuse it,
    the fused loop, as in TVM."""
    loop = stage.attach_ivar
    for step in stage.attach_stage.steps:
        is_split = step.name == "split" and step.arguments[0] is loop
        if is_split or step.name == "fuse" and any(a is loop for a in step.arguments[0]):
            loop = step.results[-1]
    return loop


def threads_around(stage):
    """The tags of the threads of the loops in which a stage is computed."""
    found = []
    while stage.placement == "at":
        parent, at = stage.attach_stage, list(map(id, stage.attach_stage.leaf_iter_vars))
        loop = id(loop_in_the_end(stage))
        end = at.index(loop) if loop in at else -1
        found += [tag for axis, tag in _bound_loops(parent) if at.index(id(axis)) <= end]
        stage = parent
    return found


def _extent(axis):
    extent = axis.dom.extent if axis.dom is not None else 0
    return int(extent) if isinstance(extent, (int, nodes.IntImm)) else 0


def _extent_of_threads(stage, tag):
    """The number of threads of a tag that share the reduction of a stage, or that repeat it since none of its
    loops is over them; 0 where they do not."""
    own = [axis for axis, bound in _bound_loops(stage) if bound == tag]
    if own or tag in threads_around(stage):
        return sum(_extent(axis) for axis in own if axis.iter_type == REDUCE)
    if not tag.startswith("threadIdx"):
        return 0
    bound = [axis for other in stage.schedule.stages for axis, thread in _bound_loops(other) if thread == tag]
    return max(map(_extent, bound), default=0)


def _obstacle(stage, condition):
    """Why a condition may leave elements unwritten; None where it chooses one thread."""
    if isinstance(condition, nodes.IntImm):
        return None if condition.value else "no element is stored under it"
    if not isinstance(condition, nodes.EQ):
        return "it is no comparison of a thread with a number"
    thread, number = condition.a, condition.b
    if isinstance(thread, nodes.IntImm):
        thread, number = number, thread
    is_thread = isinstance(thread, IterVar) and thread.iter_type == THREAD
    if not is_thread or not isinstance(number, nodes.IntImm):
        return "it is no comparison of a thread with a number"
    extent = _extent_of_threads(stage, thread.thread_tag)
    if not extent:
        return (f"neither do the threads {thread.thread_tag} repeat it, nor is a loop of the reduction of "
                f"{stage.op.name} bound to {thread.thread_tag}")
    if not 0 <= number.value < extent:
        return f"the threads {thread.thread_tag} are 0 to {extent - 1}"
    return None


def refuse(place, text):
    """Raises a ScheduleError at the line of a step, (file, line)."""
    file, line = place
    raise ScheduleError(f"{file}:{line}: error: {text}", [Message("error", "schedule", text, file, line)])


def check_store_predicate(stage, step):
    """Refuses, at the line of the step, a predicate that may leave elements unwritten."""
    for condition in _conditions(as_expression(step.arguments[0])):
        why = _obstacle(stage, condition)
        if why:
            refuse(step.place, f"set_store_predicate: {stage.op.name} is not proved to be stored under "
                         f"`{condition}`: {why}")
