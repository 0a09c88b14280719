# SPDX-License-Identifier: Apache-2.0
"""Groups of stages, which are placed together."""
from pleat.te.tensor import PlaceholderOp


def _listed(tensors):
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


class Group:
    """The stages that compute tensors from others. What places the group places each stage in it that has no place of
    its own in another one."""

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

    def _placed(self, place):
        for stage in self.stages:
            if stage.attach_type is None:
                place(stage)

    def compute_at(self, parent, scope):
        """Computes, in each iteration of a loop of another stage, the elements read there."""
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
