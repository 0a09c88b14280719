# SPDX-License-Identifier: Apache-2.0
"""Groups of stages, which are placed together."""
from pleat.te.tensor import PlaceholderOp


def _listed(tensors):
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


class Group:
    """The stages that compute tensors from others. What places the group places each stage in it that has no place of
    its own in another one. A group that is made later and has all of its stages is the one around it, `group`."""

    attach_stage = None  # the stage at a loop of which the group is computed

    def __init__(self, schedule, outputs, inputs, include_inputs=False):
        ends = {schedule[tensor] for tensor in _listed(inputs)}
        wanted, known = [schedule[tensor] for tensor in _listed(outputs)], {}

        def depends(stage):  # on an input of the group
            if stage not in known:
                known[stage] = stage in ends or any([depends(schedule[t]) for t in stage.op.input_tensors])
            return known[stage]

        if not all([depends(stage) for stage in wanted]):
            missing = next(stage for stage in wanted if not depends(stage))
            missing._refuse("it is computed from none of the group's inputs")
        self.stages = [stage for stage in schedule.stages
                       if known.get(stage) and not isinstance(stage.op, PlaceholderOp)
                       and (include_inputs or stage not in ends)]
        self.schedule = schedule

    @property
    def group(self):
        """The group around this one; None where there is none."""
        later = self.schedule.groups[self.schedule.groups.index(self) + 1:]
        return next((one for one in later if set(self.stages) <= set(one.stages)), None)

    @property
    def num_child_stages(self):
        """The number of stages and groups directly inside."""
        return sum(stage.group is self for stage in self.stages) + sum(one.group is self for one in self.schedule.groups)

    def _is_around(self, other):
        return other is not None and (other is self or self._is_around(other.group))

    def _placed(self, place):
        for stage in self.stages:
            placed_by = stage.placed_by
            if stage.placement is None or placed_by is not None and placed_by._is_around(self):
                place(stage)
                stage.placed_by = self

    def compute_at(self, parent, scope):
        """Computes, in each iteration of a loop of another stage, the elements read there."""
        self.attach_stage = parent
        self._placed(lambda stage: stage.compute_at(parent, scope))

    def compute_inline(self):
        """Computes each element where it is read."""
        self._placed(lambda stage: stage.compute_inline())

    def compute_root(self):
        """Computes the whole tensors before the stages that read them."""
        for stage in self.stages:
            stage.compute_root()

    def __repr__(self):
        return f"group({', '.join(stage.op.name for stage in self.stages)})"
