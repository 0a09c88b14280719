# SPDX-License-Identifier: Apache-2.0
"""The ranges of the loops of a schedule, and its statement, by the names that TVM has for the parts of lowering.

    ranges = te.schedule.InferBound(s)
    ranges[B.op.axis[0]].extent  # of the elements of B that are computed at the loop that compute_at names
    statement = te.schedule.ScheduleOps(s, ranges)

Both apply all steps, so that a step that is not proved legal is refused here."""
from pleat.arith import Analyzer
from pleat.te.lowering import _Lowering
from pleat.te.tensor import PlaceholderOp, ScanOp, Tensor
from pleat.tir import nodes
from pleat.tir.nodes import Range, Var
from pleat.tir.schedule import ScheduleError
from pleat.tir.stmt_functor import post_order_visit, pre_order_visit, substitute


def _arguments(schedule):
    """The inputs and outputs of a schedule, and the variables that their shapes do not define."""
    states = {t.op for stage in schedule.stages if isinstance(stage.op, ScanOp) for t in stage.op.state_placeholder}
    inputs = [stage.origin_op.output(0) for stage in schedule.stages
              if isinstance(stage.origin_op, PlaceholderOp) and stage.origin_op not in states]
    args = [*inputs, *(t for op in dict.fromkeys(schedule.outputs) for t in op._outputs if t not in inputs)]
    extents = [e for t in args for e in t.shape]
    used = dict.fromkeys(v for e in extents if not isinstance(e, int) for v in _variables(e))
    return [*args, *(v for v in used if not any(v is e for e in extents))]


class _Bounds(_Lowering):
    """A lowering that notes the range of each axis when its loop is made."""

    def __init__(self, schedule):
        args = _arguments(schedule)
        super().__init__(schedule, args, "main")
        self.ranges, self.analyzer = {}, Analyzer()
        extents = [e for t in args for e in (t.shape if isinstance(t, Tensor) else [t]) if not isinstance(e, int)]
        self.sizes = {v.name: v for e in extents for v in _variables(e)}

    def _note(self, axis, loop, block):
        """The range of an axis: the values of the variable that its loop alone counts, or those of the loop."""
        node = self.sch.get(loop)
        least = node.min
        for value in block.iter_values if block else ():
            if any(part is node.loop_var for part in _variables(value)):
                least = self.analyzer.simplify(substitute(value, {node.loop_var: node.min}))
        self.ranges[axis] = Range.from_min_extent(self._own(least), self._own(node.extent))

    def _own(self, expression):
        """An expression of the program over the variables of the schedule: sizes in shapes, and the axes of loops."""
        used = _variables(expression)
        own = {v: self.sizes[v.name] for v in used if v.name in self.sizes}
        for axis, loop in self.loops.items() if len(own) < len(used) else ():
            try:
                counted = self.sch.get(loop).loop_var
            except ScheduleError:  # a later step has replaced it
                continue
            own.update({v: axis for v in used if v is counted})
        return substitute(expression, own)

    def _take_loops(self, block, axes):
        super()._take_loops(block, axes)
        realize = _realize_of(self.sch.func.body, block.name)
        for axis in axes:
            self._note(axis, self.loops[axis], realize)

    def _made_loops(self, results):
        for axis in results:
            self._note(axis, self.loops[axis], None)


def _variables(expression):
    found = []
    post_order_visit(expression, lambda node: found.append(node) if isinstance(node, Var) else None)
    return found


def _realize_of(body, name):
    """The realization of the block of a name."""
    found = []

    def visit(node):
        if isinstance(node, nodes.BlockRealize) and node.block.name_hint == name:
            found.append(node)
    pre_order_visit(body, visit)
    return found[0]


def InferBound(sch):  # noqa: N802
    """The range of each axis and each loop of the stages that have loops of their own, as a dictionary. The range
    of an axis has what is computed in one iteration of the loop at which its stage is computed."""
    bounds = _Bounds(sch)
    bounds.apply()
    return bounds.ranges


def ScheduleOps(sch, bounds=None, debug_keep_trivial_loop=False):  # noqa: N802
    """The statement of the schedule: the loops over its tensors without blocks. Pleat finds the bounds itself."""
    from pleat.te.lowering import lower
    args = _arguments(sch)
    return lower(sch, args, simple_mode=True)["main"].body
