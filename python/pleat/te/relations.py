# SPDX-License-Identifier: Apache-2.0
"""The recorded steps of a stage in the forms that TVM gives them: relations of loops, and what loops are."""
import collections

from pleat.te.tensor import IterVar
from pleat.tir.nodes import StringImm, converted

Split = collections.namedtuple("Split", "parent outer inner factor nparts")
Fuse = collections.namedtuple("Fuse", "outer inner fused")
Singleton = collections.namedtuple("Singleton", "iter")
IterVarAttr = collections.namedtuple("IterVarAttr", "iter_type bind_thread pragma_keys pragma_values")

_KINDS = {"vectorize": IterVar.Vectorized, "unroll": IterVar.Unrolled, "parallel": IterVar.Parallelized}
# The numbers of TVM's Stage.attach_type.
_PLACES = {None: 1, "inline": 2, "at": 4}


def _fused(step):
    """The relations of a fused loop: of more than two loops, one after the other."""
    outer, *others = step.arguments[0]
    for i, inner in enumerate(others):
        is_last = i + 1 == len(others)
        fused = step.results[0] if is_last else IterVar.make(None, f"{outer.name}.{inner.name}.fused", outer.iter_type)
        yield Fuse(outer, inner, fused)
        outer = fused


def relations_of(stage):
    """The splits and fusions that made the loops of a stage, in the order of the steps."""
    found = []
    for step in stage.steps:
        if step.name == "split":
            outer_extent, inner_extent = step.arguments[1]
            found.append(Split(step.arguments[0], *step.results, inner_extent, outer_extent))
        elif step.name == "fuse":
            found += _fused(step)
        elif step.name == "unit":
            found.append(Singleton(step.results[0]))
    return found


def all_axes_of(stage):
    """The axes of a stage and all loops that steps made of them."""
    made = [axis for step in stage.steps for axis in step.results]
    return list(dict.fromkeys([*stage.data_axes, *stage.op.reduce_axis, *made]))


def attributes_of(stage):
    """The kinds, threads and pragmas that steps gave loops, by loop."""
    found = {}
    for step in stage.steps:
        if step.name == "tensorize":
            found[step.arguments[0]] = IterVarAttr(IterVar.Tensorized, None, [], [])
        if step.name != "mark":
            continue
        axis, name, arguments = step.arguments
        kind, thread, keys, values = found.get(axis, IterVarAttr(axis.iter_type, None, [], []))
        if name == "bind":
            kind, thread = IterVar.ThreadIndex, arguments[0]
        elif name == "annotate":
            keys = [*keys, StringImm(arguments[0].removeprefix("pragma_"))]
            values = [*values, converted(arguments[1])]
        found[axis] = IterVarAttr(_KINDS.get(name, kind), thread, keys, values)
    return found


def attach_type_of(stage):
    """The number of the place where a stage is computed: 1 for a nest of its own, 2 for where it is read, and 4 for
    a loop of another stage."""
    return _PLACES[stage.placement]
