# SPDX-License-Identifier: Apache-2.0
"""Schedules of tensor expressions with TVM's names: each tensor is a stage with loops, its axes.

    s = te.create_schedule(C.op)
    outer, inner = s[C].split(s[C].op.axis[1], factor=8)
    n, c, h, w, ci = s[A].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    run = pleat.build(s, [A, B, C])

Steps are recorded, and applied by `lower` and `build` as those of pleat.tir.Schedule: a step that is
not proved legal is refused there, at the Python line that made it. The order of steps on different
stages does not matter, as in TVM: pleat/te/lowering.py has the order in which they are applied."""
import sys

from pleat._expression import AXIS_SEPARATOR
from pleat.te.groups import Group
from pleat.te.program import operations_of
from pleat.te.relations import Fuse, Singleton, Split, all_axes_of, attach_type_of, attributes_of, relations_of
from pleat.te.tensor import (DATA_PARALLEL, REDUCE, ComputeOp, ExternOp, IterVar, PlaceholderOp,
                             Reduce, ScanOp, Tensor, TensorLoad, as_extent)
from pleat.tir import op as functions
from pleat.tir.index_map import IndexMap
from pleat.tir.nodes import Buffer, IntImm, Range, const
from pleat.tir.schedule import ScheduleError, TensorIntrin
from pleat.tir.stmt_functor import post_order_visit, substitute


def user_place():
    """(file, line) of the caller outside of this package."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("pleat.te"):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def stage_op(name, axis, body):
    """The operation of a stage after cache_read, cache_write or rfactor, with axes of its own."""
    shape = [a.dom.extent if a.dom else None for a in axis]
    return ComputeOp(name, axis, body, shape)


class LayoutAxes(tuple):
    """The axes of a layout, as transform_layout gives them. They are also its `op.axis`, and s[…] of
    them is the stage."""

    def __new__(cls, stage, axes):
        made = super().__new__(cls, axes)
        made.stage = stage
        return made

    @property
    def op(self):
        return self

    @property
    def axis(self):
        return list(self)


class Step:
    """A recorded step: its name, its arguments, the axes that it gives, and its place."""

    def __init__(self, name, arguments, results=()):
        self.name, self.arguments, self.results = name, arguments, list(results)
        self.place = user_place()


def copied(axis, name=None):
    return IterVar.make(axis.dom, name or axis.name, axis.iter_type)


def _extent(axis):
    """The extent of an axis, a number or an expression; None where it is not known."""
    return None if axis.dom is None else as_extent(axis.dom.extent)


def _with_axes(body, axes, sources=None):
    """Expressions over other axes, which the dictionary `axes` has. Of a reduction, the axes are
    those that `sources` has the values of, and others are replaced by expressions of these."""
    if not isinstance(body[0], Reduce):
        return [substitute(b, axes) for b in body]
    reductions = list(body[0].axis) if sources is None else sources
    condition = None if body[0].condition is None else substitute(body[0].condition, axes)
    values = [substitute(value, axes) for value in body[0].source]
    first = [substitute(value, axes) for value in body[0].init]
    return [b.with_fields(source=values, axis=reductions, condition=condition, init=first)
            for b in body]


def _is_exact(parent, inner):
    """Do the parts of a split have as many iterations as the loop itself, as far as numbers say so?"""
    whole, factor = _extent(parent), _extent(inner)
    return isinstance(whole, int) and isinstance(factor, int) and whole % factor == 0


def _values(steps, axes):
    """The value of each axis over the loops that steps made of these, and the conditions under which
    the values of split axes are in range."""
    values, conditions = {}, []
    for step in reversed(steps):
        if step.name == "split":
            parent, (outer, inner) = step.arguments[0], step.results
            values[parent] = values.get(outer, outer) * _extent(inner) + values.get(inner, inner)
            if not _is_exact(parent, inner):
                conditions.append(values[parent] < _extent(parent))
        elif step.name == "fuse":
            rest = values.get(step.results[0], step.results[0])
            for axis in reversed(step.arguments[0][1:]):
                values[axis], rest = rest % _extent(axis), rest // _extent(axis)
            values[step.arguments[0][0]] = rest
    return {axis: values.get(axis, axis) for axis in axes}, conditions


def _place_of_loops(steps, axes, loops):
    """The function from an index over the axes to the values of the loops that steps made of them."""
    def place(*index):
        values = dict(zip(axes, index))
        for step in steps:
            if step.name == "split":
                parent, (outer, inner) = step.arguments[0], step.results
                values[outer], values[inner] = values[parent] // _extent(inner), values[parent] % _extent(inner)
            elif step.name == "fuse":
                first, *others = step.arguments[0]
                fused = values[first]
                for axis in others:
                    fused = fused * _extent(axis) + values[axis]
                values[step.results[0]] = fused
        return [values[loop] for loop in loops]
    return place


def _where(body, conditions):
    """A body whose elements count where conditions hold, and are 0 elsewhere."""
    if not conditions:
        return body
    if not isinstance(body[0], Reduce):
        return [functions.if_then_else(functions.all(*conditions), b, const(0, b.dtype)) for b in body]
    given = [] if body[0].condition is None else [body[0].condition]
    return [b.with_fields(condition=functions.all(*given, *conditions)) for b in body]


def _axis(name, extent, like):
    dom = None if extent is None else Range(0, extent)
    return IterVar.make(dom, name, like.iter_type)


class Stage:
    """The loops of a tensor. `op` is what it computes, `leaf_iter_vars` are its loops, outermost
    first. Its methods are steps, and give the loops that they make."""

    def __init__(self, schedule, op):
        self.schedule, self.op, self.origin_op = schedule, op, op
        self.steps, self.layouts, self.shape = [], [], op.output(0).shape
        self.environment = None  # the step env_threads
        self.placed_by = None  # the group that placed the stage; None where it has a place of its own
        self.placement, self.attach_stage, self.attach_ivar, self.attach_place = None, None, None, None
        self.reset()

    def reset(self):
        """Starts again with the axes of the operation as loops."""
        self.data_axes = list(self.op.axis)
        self.leaf_iter_vars = self.data_axes + list(self.op.reduce_axis)
        self.intrinsic = None  # the step tensorize of a value that is an intrinsic's
        if getattr(self.op, "intrinsic", None):
            inner = list(self.op.inner_axes)
            self.leaf_iter_vars = [a for a in self.leaf_iter_vars if a not in inner] + inner
            self.intrinsic = Step("tensorize", (inner[0], self.op.intrinsic))
        if isinstance(self.op, ScanOp):
            self.leaf_iter_vars = [self.op.scan_axis]

    def __repr__(self):
        return f"stage({self.op.name})"

    @property
    def group(self):
        """The first group that was made with this stage; None where there is none."""
        return next((one for one in self.schedule.groups if self in one.stages), None)

    relations = property(relations_of)
    all_iter_vars = property(all_axes_of)
    iter_var_attrs = property(attributes_of)
    attach_type = property(attach_type_of)

    # ---- Checks -------------------------------------------------------------------------------

    def _refuse(self, why):
        raise ScheduleError(f"{self.op.name}: {why}")

    def _leaf(self, axis):
        """The position of a loop."""
        for i, leaf in enumerate(self.leaf_iter_vars):
            if leaf is axis:
                return i
        names = ", ".join(a.name for a in self.leaf_iter_vars) or "none"
        other = next((stage for stage in self.schedule.stages for leaf in stage.leaf_iter_vars if leaf is axis), None)
        owner = f"a loop of {other.op.name}, not" if other else "no loop"
        self._refuse(f"{axis!r} is {owner} of this stage now; its loops are {names}")

    def _record(self, name, arguments, results=()):
        if isinstance(self.op, PlaceholderOp):
            self._refuse("an input has no loops")
        if isinstance(self.op, ScanOp):
            self._refuse("the loop over the steps of a scan stays as it is; schedule its update")
        self.steps.append(Step(name, arguments, results))

    def _mark(self, axis, name, *arguments):
        self._leaf(axis)
        self._record("mark", (axis, name, arguments))

    # ---- Loops --------------------------------------------------------------------------------

    def split(self, parent, factor=None, nparts=None, disable_predication=False):
        """Splits a loop in an outer and an inner one: the inner one has `factor` iterations, or the
        outer one `nparts`."""
        if (factor is None) == (nparts is None):
            self._refuse("split takes either factor or nparts")
        at, extent = self._leaf(parent), _extent(parent)
        given = as_extent(nparts if factor is None else factor)
        if not isinstance(given, int) or given < 1:
            self._refuse(f"split takes a positive number, not {given}")
        other = None if extent is None else (extent + (given - 1)) // given
        sizes = (other, given) if nparts is None else (given, other)
        results = [_axis(f"{parent.name}.{part}", size, parent)
                   for part, size in zip(("outer", "inner"), sizes)]
        factors = [None, given] if nparts is None else [given, None]
        self._record("split", (parent, factors), results)
        self.leaf_iter_vars[at:at + 1] = results
        return tuple(results)

    def fuse(self, *args):
        """Makes one loop of loops that follow each other, outermost first; of none, a loop of one
        iteration outside of the others."""
        axes = list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)
        if not axes:
            result = IterVar.make(Range(0, 1), "singleton", DATA_PARALLEL)
            self._record("unit", (), [result])
            self.leaf_iter_vars.insert(0, result)
            return result
        at = self._leaf(axes[0])
        if any(self._leaf(a) != at + i for i, a in enumerate(axes)):
            self._refuse("the loops that are fused follow each other, outermost first")
        size, reductions = 1, [a for a in axes if a.iter_type == REDUCE]
        for extent in map(_extent, axes):
            size = None if extent is None or size is None else size * extent
        result = axes[0] if len(axes) == 1 else _axis(".".join(a.name for a in axes) + ".fused", size,
                                                      (reductions or axes)[0])
        if len(axes) > 1:
            self._record("fuse", (axes,), [result])
            self.leaf_iter_vars[at:at + len(axes)] = [result]
        return result

    def reorder(self, *args):
        """Puts loops in this order, at the positions that they have together."""
        places = sorted(self._leaf(a) for a in args)
        if len(set(places)) != len(args):
            self._refuse("reorder takes each loop once")
        for at, axis in zip(places, args):
            self.leaf_iter_vars[at] = axis
        self._record("reorder", (list(args),))

    def tile(self, x_parent, y_parent, x_factor, y_factor):
        """Splits two loops that follow each other: gives x outer, y outer, x inner, y inner, which
        is their order."""
        x_outer, x_inner = self.split(x_parent, x_factor)
        y_outer, y_inner = self.split(y_parent, y_factor)
        self.reorder(x_outer, y_outer, x_inner, y_inner)
        return x_outer, y_outer, x_inner, y_inner

    # ---- Kinds of loops -----------------------------------------------------------------------

    def bind(self, ivar, thread_ivar):
        """Makes the iterations of a loop those of threads: te.thread_axis("threadIdx.x")."""
        self._mark(ivar, "bind", getattr(thread_ivar, "thread_tag", thread_ivar))

    def vectorize(self, var):
        """Makes the iterations of a loop lanes of vectors."""
        self._mark(var, "vectorize")

    def parallel(self, var):
        """Runs the iterations of a loop on several threads of the processor."""
        self._mark(var, "parallel")

    def set_store_predicate(self, predicate):
        """Stores the elements under a predicate alone. It chooses one of the threads that share the
        reduction or that repeat the stage, `tx == 0` or `tx.var.equal(0)`; one of these stores each element
        anyway. `lower` refuses a predicate under which elements may not be stored."""
        self._record("store_predicate", (predicate,))

    def unroll(self, var):
        """Writes the iterations of a loop one behind the other."""
        self._mark(var, "unroll")

    def pragma(self, var, pragma_type, pragma_value=None):
        """Annotates a loop with pragma_ and the type; "vectorize", "unroll" and "parallel" are these steps."""
        if pragma_type in ("vectorize", "unroll", "parallel"):
            return getattr(self, pragma_type)(var)
        if pragma_type in ("import_llvm", "import_c"):
            self._refuse(f"a program holds no other code, as pragma {pragma_type} asks; compile that to a shared "
                         "library, load it by ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL), and then build the program")
        value = 1 if pragma_value is None else pragma_value
        return self._mark(var, "annotate", f"pragma_{pragma_type}", value)

    def prefetch(self, tensor, var, offset):
        """Asks for the elements of a tensor that the iteration `offset` later of a loop reads."""
        self._leaf(var)
        self._record("prefetch", (tensor, var, int(offset)))

    def tensorize(self, var, tensor_intrin):
        """Replaces a loop and what is inside of it by an intrinsic, which describes the same: one of
        te.decl_tensor_intrin, a pleat.tir.TensorIntrin, or the name of a registered one. The first
        values of a reduction are stored before it, and the intrinsic adds to them. Of several for one loop, the
        last one counts."""
        if isinstance(tensor_intrin, TensorIntrin):
            tensor_intrin = TensorIntrin.name_of(tensor_intrin)
        elif isinstance(tensor_intrin, str) and TensorIntrin.get(tensor_intrin, allow_missing=True) is None:
            self._refuse(f"no tensor intrinsic {tensor_intrin!r} is registered")
        self._leaf(var)
        self.steps = [step for step in self.steps if step.name != "tensorize" or step.arguments[0] is not var]
        self._record("tensorize", (var, tensor_intrin))

    def env_threads(self, threads):
        """Runs all steps of a scan in each thread: the loops of its update that are bound to these threads
        become outermost. The stages of init and update bind loops to them as always. `lower` refuses it
        where the threads need values of one another from step to step."""
        if not isinstance(self.op, ScanOp):
            self._refuse("env_threads takes the stage of a scan; bind the loops of other stages")
        threads = list(threads) if isinstance(threads, (list, tuple)) else [threads]
        self.environment = Step("env_threads", ([getattr(t, "thread_tag", t) for t in threads],))

    # ---- Memory -------------------------------------------------------------------------------

    def set_scope(self, scope):
        """Puts the tensor in a memory such as "shared" or "local"."""
        if isinstance(self.op, PlaceholderOp):
            self._refuse("the memory of an input is the caller's; a copy of it may be elsewhere: "
                         f's.cache_read({self.op.name}, "{scope}", readers)')
        if scope != "global" or self.origin_op not in self.schedule.outputs:  # those are the caller's
            self._record("block", ("set_scope", (0, scope), {}))

    def double_buffer(self):
        """Asks to fill the tensor one iteration ahead, in the loop in which it is computed: `lower` puts
        the attribute double_buffer_scope around what fills it, and `build` runs InjectDoubleBuffer,
        which leaves a tensor as it is, with a note, where that is not proved to be right."""
        if self.op in self.schedule.outputs:
            self._refuse("an output is not filled ahead of its use")
        self._record("block", ("annotate", ("double_buffer_scope", 0), {}))

    def rolling_buffer(self):
        """Keeps the elements that two iterations of the loop share in which the stage is computed."""
        self._record("block", ("rolling_buffer", (0,), {}))

    def storage_align(self, axis, factor, offset):
        """Makes the stride of an axis of the tensor factor * k + offset."""
        at = [a is axis for a in self.data_axes]
        if True not in at:
            self._refuse(f"{axis!r} is no axis of the tensor")
        keywords = {"axis": at.index(True), "factor": factor, "offset": offset}
        self._record("block", ("storage_align", (0,), keywords))

    def transform_layout(self, mapping_function, pad_value=None):
        """Changes how the tensor is laid out in memory: all that reads or writes it follows.

        mapping_function: gives the physical indices of the logical ones, with te.AXIS_SEPARATOR
            between those that are flattened together. It takes one argument for each axis, or
            `*indices`, or one list of all. A second transform_layout gets the axes that the first
            one gave.
        pad_value: what padding holds, where the physical shape has more elements

        Returns the axes of the new layout. If the data axes are loops of the stage that no step has
        changed, the new axes are loops in their place, and the tensor is computed in the order of its
        memory. Otherwise only the memory changes, and the axes are no loops."""
        rank = self._rank()
        index_map = _map_of(mapping_function, rank)
        extents = self._new_extents(index_map)
        self.shape = extents
        step = Step("transform_layout", (index_map, pad_value))
        names = [e.args[0] if e.op == "var" else f"axis{i}"
                 for i, e in enumerate(index_map.final_indices)]
        axes = [IterVar.make(None if n is None else Range(0, n), name, DATA_PARALLEL)
                for name, n in zip(names, extents)]
        if self.data_axes and self._walks_data() and not self.is_in_steps():
            self._replace_data(step, axes)
        else:
            has_loops = not isinstance(self.op, (PlaceholderOp, ScanOp))
            (self.steps if has_loops else self.layouts).append(step)
        return LayoutAxes(self, axes)

    def _rank(self):
        self._not_of_a_scan("transform_layout")
        if isinstance(self.op, ExternOp) or self.origin_op.num_outputs > 1:
            self._refuse("transform_layout takes a tensor with an operation of its own")
        return len(self.shape)

    def _scans(self):
        return [stage.op for stage in self.schedule.stages if isinstance(stage.op, ScanOp)]

    def is_in_steps(self):
        """True for what is computed in each step of a scan."""
        return any(self.origin_op in scan.body for scan in self._scans())

    def _not_of_a_scan(self, step):
        """Refuses a step on tensors whose elements are in the memory of a scan."""
        for scan in self._scans():
            if self.origin_op in [t.op for t in scan.init + scan.update + scan.state_placeholder]:
                self._refuse(f"its elements are those of {scan.name}, so {step} does not take it")

    def _new_extents(self, index_map):
        """The extents of the new layout, where the present ones are numbers; None each otherwise.
        PleatError when the map is not injective."""
        try:
            shape = [int(e) for e in self.shape]
        except (TypeError, ValueError):
            return [None] * len(index_map.final_indices)
        layout = index_map.layout(shape)
        if not layout.is_injective():
            raise ScheduleError(f"{self.op.name}: `{index_map}` is not injective on {shape}: "
                                "two elements would have one place")
        return list(layout.physical_shape)

    def _loops_of_copy(self):
        """The loops over the data, as the axes of a copy that cache_write makes. Refuses steps that it would drop."""
        kinds = {step.name for step in self.steps} - {"split", "fuse", "reorder"}
        data = [a for a in self.leaf_iter_vars if a.iter_type == DATA_PARALLEL]
        if not self.steps:
            return list(self.op.axis)
        if kinds or any(a not in self.leaf_iter_vars for a in self.op.reduce_axis):
            self._refuse("before cache_write, its loops over the data may be split, fused and reordered; other steps "
                         "come behind it")
        if self.layouts or self.op.num_outputs > 1 or self.is_in_steps():
            self._refuse("cache_write comes before the other steps of a stage that has a layout, several tensors, or a "
                         "place in the steps of a scan")
        return data

    def _walks_data(self):
        """Are the data axes loops of this stage, and has no step changed or marked them?"""
        if isinstance(self.op, PlaceholderOp) or self.intrinsic:
            return False
        marked = {id(s.arguments[0]) for s in self.steps if s.name == "mark"}
        attached = {id(other.attach_ivar) for other in self.schedule.stages}
        leaves = {id(a) for a in self.leaf_iter_vars}
        return all(id(a) in leaves and id(a) not in marked | attached for a in self.data_axes)

    def _forget_data_steps(self):
        """Takes back the splits, fusions and orders of data axes, so that they are loops again, as TVM's rfactor
        does; other steps stay."""
        gone = {id(a) for a in self.data_axes}
        kept = []
        for step in self.steps:
            first = step.arguments[0] if step.arguments else None
            axes = first if isinstance(first, list) else [first]
            of_data = step.name in ("split", "fuse") and all(id(a) in gone for a in axes)
            if of_data:
                gone.update(id(a) for a in step.results)
            elif step.name != "reorder":
                kept.append(step)
        rest = [a for a in self.leaf_iter_vars if id(a) not in gone]
        self.steps, self.leaf_iter_vars = kept, [*self.data_axes, *rest]

    def _replace_data(self, step, axes):
        """Makes the new axes loops in place of the data axes; earlier orders of these are dropped."""
        data = {id(a) for a in self.data_axes}
        first = next(i for i, a in enumerate(self.leaf_iter_vars) if id(a) in data)
        others = [a for a in self.leaf_iter_vars if id(a) not in data]
        self.leaf_iter_vars = others[:first] + axes + others[first:]
        had_order = any(s.name == "reorder" for s in self.steps)
        self.steps = [s for s in self.steps if s.name != "reorder"]
        if had_order or first:
            self.steps.append(Step("reorder", (list(self.leaf_iter_vars),)))
        self.layouts.append(step)
        self.data_axes = axes

    # ---- Where the stage is computed ----------------------------------------------------------

    def _attach(self, kind, stage=None, ivar=None):
        if isinstance(self.op, PlaceholderOp) and kind:
            self._refuse("an input is not computed")
        if isinstance(self.op, ScanOp) and kind:
            self._refuse("the steps of a scan are computed before all that reads them")
        self.placement, self.attach_stage, self.attach_ivar, self.placed_by = kind, stage, ivar, None
        self.attach_place = user_place()

    def compute_at(self, parent, scope):
        """Computes, in each iteration of a loop of another stage, the elements read there."""
        parent._leaf(scope)
        self._attach("at", parent, scope)

    def compute_inline(self):
        """Computes each element where it is read."""
        self._not_of_a_scan("compute_inline")
        self._attach("inline")

    def compute_root(self):
        """Computes the whole tensor before the stages that read it, as at the beginning."""
        self._attach(None)


def _map_of(function, rank):
    """The index map of a function of `rank` indices, which may take them as one list."""
    if isinstance(function, IndexMap):
        return function
    import inspect
    parameters = list(inspect.signature(function).parameters.values())
    is_list = len(parameters) == 1 and rank != 1 and parameters[0].kind in (
        parameters[0].POSITIONAL_ONLY, parameters[0].POSITIONAL_OR_KEYWORD)
    if is_list:
        given = function
        function = lambda *i: given(list(i))  # noqa: E731
    return IndexMap.from_func_with_separators(function, ndim=rank)[0]


class Schedule:
    """The stages of tensors. `s[T]` is that of a tensor or an operation; `stages` has them all, each
    behind those whose tensors it reads; `outputs` are the operations that were given."""

    def __init__(self, ops):
        self.outputs = ops
        order = operations_of([op.output(0) for op in ops])
        self.stages = [Stage(self, op) for op in order]
        self.stage_map = {op: stage for op, stage in zip(order, self.stages)}
        self.groups = []
        self.changes = []  # cache_read, cache_write and rfactor, in this order

    def __getitem__(self, tensor):
        if isinstance(tensor, LayoutAxes):
            return tensor.stage
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        if op not in self.stage_map:
            raise ScheduleError(f"{getattr(op, 'name', op)} is no tensor of this schedule")
        return self.stage_map[op]

    def normalize(self):
        """The schedule itself: the extents of loops are known without it."""
        return self

    def create_group(self, outputs, inputs, include_inputs=False):
        """The stages that compute the outputs from the inputs, which compute_at places together."""
        self.groups.append(Group(self, outputs, inputs, include_inputs))
        return self.groups[-1]

    def _insert(self, at, op):
        stage = Stage(self, op)
        self.stages.insert(at, stage)
        self.stage_map[op] = stage
        return stage

    def _replace(self, stage, op):
        """Gives a stage another operation, and no steps."""
        stage.op, stage.steps = op, []
        self.stage_map[op] = stage
        stage.reset()

    def cache_read(self, tensor, scope, readers):
        """A copy of a tensor in another memory, which the readers read instead. Returns it as a
        tensor with a stage of its own."""
        stage = self[tensor]
        stage._not_of_a_scan("cache_read")
        readers = list(readers) if isinstance(readers, (list, tuple)) else [readers]
        axes = [IterVar.make(Range(0, extent), f"ax{i}", DATA_PARALLEL)
                for i, extent in enumerate(tensor.shape)]
        op = stage_op(f"{tensor.op.name}.{scope}", axes, [tensor(*axes)])
        new = self._insert(self.stages.index(stage) + 1, op)
        self.changes.append((Step("cache_read", (tensor, scope, [self[r] for r in readers])), new))
        return op.output(0)

    def cache_write(self, tensor, scope):
        """Computes a tensor in another memory, and copies it: the result is the tensor in the other
        memory, whose stage has the computation; the stage of the tensor is the copy. Takes a list of
        all tensors of an operation, too, and then returns a list. Where loops over the data were split,
        fused or reordered, the result has these loops as axes, in their order, and the copy none of them."""
        several = isinstance(tensor, (list, tuple))
        tensors = list(tensor) if several else [tensor]
        stage = self[tensors[0]]
        stage._not_of_a_scan("cache_write")
        old = stage.op
        if not isinstance(old, ComputeOp) or tensors != [stage.origin_op.output(i) for i in range(old.num_outputs)]:
            stage._refuse("cache_write takes a computed tensor with an operation of its own, or all tensors of one")
        data = stage._loops_of_copy()
        axes = [copied(a, f"{a.name}.c") for a in data]
        values, conditions = _values(stage.steps, old.axis)
        leaves = dict(zip(data, axes))
        body = _with_axes(old.body, {axis: substitute(value, leaves) for axis, value in values.items()})
        op = stage_op(f"{old.name}.{scope}", axes, _where(body, [substitute(c, leaves) for c in conditions]))
        op.intrinsic, op.inner_axes = old.intrinsic, tuple(leaves.get(a, a) for a in old.inner_axes)
        new = self._insert(self.stages.index(stage), op)
        made = [op.output(i) for i in range(op.num_outputs)]
        place = _place_of_loops(stage.steps, old.axis, data)
        index_map = IndexMap.from_func(place, ndim=len(old.axis)) if stage.steps else None
        layout_axes = list(stage.data_axes) if stage.layouts else None
        self._replace(stage, stage_op(old.name, old.axis, [one(*place(*old.axis)) for one in made]))
        if layout_axes is not None:  # the copy walks the memory of the tensor
            stage.data_axes, stage.leaf_iter_vars = layout_axes, list(layout_axes)
        self.changes.append((Step("cache_write", (stage, scope, index_map)), new))
        return made if several else made[0]

    def rfactor(self, tensor, axis, factor_axis=0):
        """Reduces for each iteration of a loop of a reduction by itself, and then over these: the
        result is the tensor of the partial results, with the loop as axis number factor_axis.
        Splits of the data axes are taken back, as in TVM: the stage has new loops over its axes."""
        stage = self[tensor]
        stage._not_of_a_scan("rfactor")
        old = stage.op
        if stage.intrinsic:
            stage._refuse("its value is an intrinsic's, which rfactor would take apart")
        if not stage._walks_data() and not stage.layouts and axis.iter_type == REDUCE:
            stage._forget_data_steps()
        at = stage._leaf(axis)
        if axis.iter_type != REDUCE or stage.layouts or not stage._walks_data():
            stage._refuse("rfactor takes a loop of the reduction, before steps on the other axes")
        data = [copied(a) for a in old.axis]
        factor_axis = factor_axis % (len(data) + 1)
        data.insert(factor_axis, IterVar.make(axis.dom, axis.name, DATA_PARALLEL))
        others = [a for i, a in enumerate(stage.leaf_iter_vars) if i != at and a.iter_type == REDUCE]
        others.sort(key=lambda a: a not in old.reduce_axis)  # as TVM orders them
        op = stage_op(f"{old.name}.rf", data, self._partial(stage, axis, factor_axis, data, others))
        new = self._insert(self.stages.index(stage), op)
        if stage.is_in_steps():
            new.data_axes = behind_steps(data, factor_axis)
            new.leaf_iter_vars = [*new.data_axes, *op.reduce_axis]
        over = copied(axis)
        step = Step("rfactor", (stage, old, stage.steps, axis, factor_axis, others,
                                list(stage.leaf_iter_vars), over))
        partial = [*old.axis[:factor_axis], over, *old.axis[factor_axis:]]
        self._replace(stage, stage_op(old.name, old.axis, [old.body[0].with_fields(
            source=[op.output(0)(*partial)], axis=[over], condition=None, init=[])]))
        self.changes.append((step, new))
        return op.output(0)

    @staticmethod
    def _partial(stage, axis, factor_axis, data, others):
        """The body of the partial results of a stage that rfactor makes."""
        values, conditions = _values(stage.steps, stage.op.reduce_axis)
        reductions = list(others)
        axes = dict(zip([*stage.op.axis[:factor_axis], axis, *stage.op.axis[factor_axis:], *others],
                        data + reductions))
        axes.update({a: substitute(value, axes) for a, value in values.items()})
        body = _with_axes(stage.op.body, axes, reductions)
        conditions = [substitute(c, axes) for c in conditions]
        given = [] if body[0].condition is None else [body[0].condition]
        condition = functions.all(*given, *conditions) if given + conditions else None
        return [body[0].with_fields(condition=condition)]


def behind_steps(axes, factor_axis):
    """The axes of partial results in a scan as its loops are: the steps of the scan are the outermost one."""
    return axes if factor_axis else [axes[1], axes[0], *axes[2:]]


def create_schedule(ops):
    """The schedule of an operation, or of a list of them: stages for all that they depend on."""
    ops = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    return Schedule([op.op if isinstance(op, Tensor) else op for op in ops])


def _inline(sch, is_meant):
    for stage in sch.stages:
        op = stage.op
        is_plain = isinstance(op, ComputeOp) and not op.reduce_axis and op.num_outputs == 1
        is_free = not stage.steps and not stage.layouts and stage.placement is None
        if is_plain and is_free and stage.op not in sch.outputs and not any(
                stage.origin_op in scan.body for scan in stage._scans()) and is_meant(op):
            stage.compute_inline()


def AutoInlineInjective(sch):  # noqa: N802
    """Computes each stage without a reduction where it is read, except the outputs and those that have steps."""
    _inline(sch, lambda op: True)


def AutoInlineElemWise(sch):  # noqa: N802
    """Does so for stages that read the elements at their own index alone."""
    _inline(sch, lambda op: all(len(indices) == len(op.axis) and all(i is a for i, a in zip(indices, op.axis))
                                for indices in _indices(op)))


def AutoInlineBroadcast(sch):  # noqa: N802
    """Does so for stages whose reads have some of their axes, in their order, and constants."""
    def is_meant(op):
        numbers = [[next((k for k, a in enumerate(op.axis) if i is a), None) for i in indices
                    if not isinstance(i, IntImm)] for indices in _indices(op)]
        return all(None not in row and row == sorted(set(row)) for row in numbers)
    _inline(sch, is_meant)


def _indices(op):
    """The indices of all elements that an operation reads."""
    found = []
    for value in op.body:
        post_order_visit(value, lambda node: found.append(node.indices) if isinstance(node, TensorLoad) else None)
    return found


def __getattr__(name):
    if name in ("InferBound", "ScheduleOps"):
        from pleat.te import bounds
        return getattr(bounds, name)
    raise AttributeError(f"module 'pleat.te.schedule' has no attribute {name!r}")


__all__ = ["AXIS_SEPARATOR", "AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Buffer", "Fuse",
           "Schedule", "ScheduleError", "Singleton", "Split", "Stage", "create_schedule"]
