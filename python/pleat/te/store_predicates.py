# SPDX-License-Identifier: Apache-2.0
"""The predicates of set_store_predicate, under which a stage stores its elements.

In the programs here, the threads that share a reduction combine their values, and each element is
stored once. So a predicate changes nothing where it chooses one of these threads, as `tx == 0` does
if a loop of the stage's reduction is bound to tx. Another predicate would leave elements unwritten,
and is refused."""
from pleat._library import Message
from pleat.te.tensor import REDUCE, THREAD, IterVar
from pleat.tir import nodes
from pleat.tir.op import as_expression
from pleat.tir.schedule import ScheduleError


def _conditions(predicate):
    if isinstance(predicate, nodes.And):
        return _conditions(predicate.a) + _conditions(predicate.b)
    return [predicate]


def _extent_of_reduction(stage, tag):
    """The number of threads of a tag that share the reduction of a stage; 0 where they do not."""
    for step in stage.steps:
        axis = step.arguments[0] if step.name == "mark" else None
        if axis is None or step.arguments[1:] != ("bind", (tag,)) or axis.iter_type != REDUCE:
            continue
        if any(leaf is axis for leaf in stage.leaf_iter_vars) and axis.dom is not None:
            return int(axis.dom.extent) if isinstance(axis.dom.extent, (int, nodes.IntImm)) else 0
    return 0


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
    extent = _extent_of_reduction(stage, thread.thread_tag)
    if not extent:
        return f"no loop of the reduction of {stage.op.name} is bound to {thread.thread_tag}"
    if not 0 <= number.value < extent:
        return f"the threads {thread.thread_tag} are 0 to {extent - 1}"
    return None


def check_store_predicate(stage, step):
    """Refuses, at the line of the step, a predicate that may leave elements unwritten."""
    for condition in _conditions(as_expression(step.arguments[0])):
        why = _obstacle(stage, condition)
        if why:
            file, line = step.place
            text = (f"set_store_predicate: {stage.op.name} is not proved to be stored under "
                    f"`{condition}`: {why}")
            raise ScheduleError(f"{file}:{line}: error: {text}",
                                [Message("error", "schedule", text, file, line)])
