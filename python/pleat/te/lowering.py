# SPDX-License-Identifier: Apache-2.0
"""Applies the recorded steps of a te.Schedule to the tensor program of its tensors.

The steps of tensor programs change the program at once, those of tensor expressions describe what it
is in the end; so their order is:
 1. the program of create_prim_func;
 2. copies and partial results, which change what is computed: cache_read, cache_write, rfactor;
 3. layouts, while loops run over whole tensors, so that loops follow the memory;
 4. stages that are computed where they are read (compute_inline);
 5. the other stages, readers before what they read: compute_at, which makes the loops for the elements
    that are read, then the steps on these loops as they were recorded;
 6. the first values of reductions, in loops of their own where that is proved;
 7. the threads that run all steps of a scan, outside of the loop over the steps;
 8. intrinsics in place of loops, which add to the first values."""
from pleat._library import PleatError
from pleat.te.program import made_program
from pleat.te.double_buffers import with_double_buffers
from pleat.te.schedule import Schedule, behind_steps
from pleat.te.store_predicates import check_store_predicate, loop_in_the_end, refuse, thread_of, threads_around
from pleat.te.tensor import DATA_PARALLEL, ScanOp
from pleat.tir import nodes, schedule as tir_schedule
from pleat.tir.schedule import ScheduleError
from pleat.tir.stmt_functor import pre_order_visit


class _Placed(tir_schedule.Schedule):
    """A schedule whose refusals are at the place of the step that is applied."""

    place = None

    def _run(self, text, file, line, function):
        super()._run(text, *(self.place or (file, line)), function)


class _Lowering:
    """The schedule of a tensor program, `sch`, with its block for each stage, and its loop for each
    axis."""

    def __init__(self, schedule, args, name):
        outputs = [t for op in schedule.outputs for t in op._outputs]
        inlined = {stage.origin_op: _is_in_changes(schedule, stage) for stage in schedule.stages
                   if stage.placement == "inline"}
        program, maker = made_program(args, outputs, name, inlined)
        self.schedule, self.sch = schedule, _Placed(program)
        self.loops, self.blocks, self.buffers = {}, {}, {}
        self.intrinsics = []  # stages with their steps tensorize, which come at last
        self.variables = {}  # of a stage after rfactor, or of partial results: its axes as the block's variables
        for stage in schedule.stages:
            names = maker.blocks.get(id(stage.origin_op), [])
            self.blocks[stage] = [self.sch.get_block(one) for one in names]
        for tensor, buffer in maker.buffers.items():
            self.buffers.setdefault(tensor.op, {})[tensor.value_index] = buffer.name

    def apply(self, separate_all=False):
        """All steps, in the order of this file's head. separate_all: the first values of reductions without steps
        are in loops of their own, too."""
        for stage in self.schedule.stages:
            _check_places(stage)
        for step, new in self.schedule.changes:
            self._at(step, getattr(self, "_" + step.name), new)
        for stage in self.schedule.stages:
            for step in stage.layouts:
                self._at(step, self._walk_layout, stage)
        for stage in self.schedule.stages:
            if stage.placement == "inline" and self.blocks[stage]:
                self.sch.place = stage.attach_place
                self.sch.compute_inline(self._block(stage))
        for stage in reversed(self.schedule.stages):
            if stage.placement != "inline" and self.blocks[stage]:
                self._stage(stage)
        self.sch.place = None
        for stage in self.schedule.stages:
            if separate_all or stage.steps or stage.intrinsic:
                self._separate_first_values(stage)
        for stage in self.schedule.stages:
            if stage.environment:
                self._at(stage.environment, self._start_threads, stage)
            elif isinstance(stage.op, ScanOp):
                self._start_blocks(stage)
        self.sch.place = None
        for stage, step in self.intrinsics:
            self.sch.place = step.place
            axis, intrinsic = step.arguments
            if isinstance(intrinsic, str):
                self.sch.tensorize(self.loops[axis], intrinsic)
            else:
                self._tensorize(stage, step, axis, intrinsic)
        return self.sch

    def _at(self, step, function, stage):
        self.sch.place = step.place
        function(stage, *step.arguments)

    def _block(self, stage):
        """The only block of a stage, or the first one of several in the same loops."""
        return self.blocks[stage][0]

    # ---- Copies and partial results -----------------------------------------------------------

    def _block_nodes(self):
        """The nodes of the blocks by their names."""
        found = {}

        def visit(node):
            if isinstance(node, nodes.Block):
                found[node.name_hint] = node
        pre_order_visit(self.sch.func.body, visit)
        return found

    def _made(self, stage, *blocks):
        """Notes the blocks and the buffers of a new stage."""
        self.blocks[stage], found = list(blocks), self._block_nodes()
        written = [region.buffer.name for block in blocks for region in found[block.name].writes]
        self.buffers[stage.origin_op] = dict(enumerate(written))

    def _buffer(self, tensor):
        return self.buffers[self.schedule[tensor].origin_op][tensor.value_index]

    def _cache_read(self, new, tensor, scope, readers):
        found, buffer = self._block_nodes(), self._buffer(tensor)
        blocks = []
        for reader in readers:
            reading = [b for b in self.blocks[reader] if any(r.buffer.name == buffer for r in found[b.name].reads)]
            if not reading:
                raise ScheduleError(f"{reader.op.name} does not read {tensor.op.name}")
            blocks += reading
        reads = [r.buffer.name for r in found[blocks[0].name].reads]
        all_readers = sum(any(r.buffer.name == buffer for r in node.reads) for node in found.values())
        options = {"consumer_blocks": blocks} if all_readers > 1 else {}
        made = self.sch.cache_read(blocks[0], reads.index(buffer), scope, **options)
        self._made(new, made)

    def _cache_write(self, new, stage, scope, index_map):
        blocks, old, found = self.blocks[stage], self.buffers[stage.origin_op], self._block_nodes()
        copies = [self.sch.cache_write(block, at, scope)
                  for block in blocks for at in range(len(found[block.name].writes))]
        self._made(new, *blocks)
        self.blocks[stage], self.buffers[stage.origin_op] = copies, old
        self._put_together(copies)
        if index_map is not None:
            self.variables.pop(stage, None)
            self.sch.transform_layout(blocks[0], self.buffers[new.origin_op][0], index_map, rewrite_loops=True)
            if len(self.sch.get_loops(blocks[0])) != len(_axes(new.op)):
                raise ScheduleError(f"{new.op.name}: the loops that compute it do not run over the whole tensor, so they "
                                    "cannot follow the steps before cache_write; cache_write comes before them")
        elif stage in self.variables:
            renamed = dict(zip(stage.origin_op.axis, new.origin_op.axis))
            self.variables[new] = [renamed.get(a, a) for a in self.variables.pop(stage)]

    def _put_together(self, blocks):
        """Makes one nest of those of blocks with the same loops, which follow one another."""
        if len(blocks) > 1:
            names = list(self._block_nodes())
            ordered = sorted(blocks, key=lambda block: names.index(block.name))
            self.sch.merge(*[self.sch.get_loops(block)[-1] for block in ordered])

    def _rfactor(self, new, stage, op, steps, axis, factor_axis, others, leaves, over):
        block = self._block(stage)
        self._take_loops(block, _axes(op))
        self._steps(stage, steps)
        partial = self.sch.rfactor(self.loops[axis], factor_axis)
        loops = self.sch.get_loops(partial)[-len(leaves):]  # after those of a scan
        self._made(new, partial)
        before = {a: at for at, a in enumerate(leaves)}
        data = list(op.axis)
        data.insert(factor_axis, axis)
        walked = behind_steps(data, factor_axis)[1:] if stage.is_in_steps() else data
        order = [loops[before[a]] for a in walked + others]
        if len(order) > 1:
            self.sch.reorder(*order)
        made = dict(zip(data + others, _axes(new.origin_op)))
        self.variables[new] = [made[a] for a in [axis, *op.axis, *others]]
        self.variables[stage] = [over, *op.axis]

    # ---- Layouts ------------------------------------------------------------------------------

    def _step_transform_layout(self, stage, index_map, pad_value):
        if stage.placement == "inline":
            raise ScheduleError(f"{stage.op.name} is computed where it is read, and has no memory")
        buffer = self.buffers[stage.origin_op][0]
        options = {} if pad_value is None else {"pad_value": pad_value}
        block = self._block(stage).name if self.blocks[stage] else self._user(buffer)
        if block is not None:
            self.sch.transform_layout(block, buffer, index_map, rewrite_loops=True, **options)

    def _walk_layout(self, stage, index_map, pad_value):
        """Changes a layout before all steps on loops: the loops of the stage follow it."""
        before = self._loop_names(stage)
        self._step_transform_layout(stage, index_map, pad_value)
        is_changed = str(index_map.final_indices) != str(index_map.initial_indices)
        if before and is_changed and self._loop_names(stage) == before:
            raise ScheduleError(f"{stage.op.name}: its loops do not run over the whole tensor, so they "
                                "cannot follow a layout; choose the layout of the tensor it copies")

    def _loop_names(self, stage):
        if not self.blocks[stage]:
            return []
        return [loop.name for loop in self.sch.get_loops(self._block(stage))]

    def _user(self, buffer):
        """The name of a block that reads or writes a buffer; None where there is none."""
        for name, block in self._block_nodes().items():
            if name != "root" and any(r.buffer.name == buffer for r in [*block.reads, *block.writes]):
                return name
        return None

    # ---- Stages -------------------------------------------------------------------------------

    def _stage(self, stage):
        scan = stage.attach_stage.op if stage.attach_stage else None
        is_there = isinstance(scan, ScanOp) and stage.origin_op in scan.body
        if stage.placement == "at" and not is_there:
            self.sch.place = stage.attach_place
            self._choose_scope(stage)
            loop = loop_in_the_end(stage)
            if loop not in self.loops:
                raise ScheduleError(f"{stage.op.name} is computed at {stage.attach_ivar!r}, which is no "
                                    f"loop of {stage.attach_stage.op.name} in the end")
            for block in self.blocks[stage]:
                self.sch.compute_at(block, self.loops[loop], preserve_unit_loops=True)
            self._put_together(self.blocks[stage])
        axes = [*stage.data_axes, *stage.op.reduce_axis]
        self._take_loops(self._block(stage), axes)
        if stage.placement == "at" and stage in self.variables and not stage.layouts:
            self._take_loops(self._block(stage), self.variables[stage])
            self._step_reorder(stage, axes)
        if stage.intrinsic:
            self._step_reorder(stage, sorted(axes, key=lambda a: a in stage.op.inner_axes))
        self._steps(stage, [*stage.steps, *([stage.intrinsic] if stage.intrinsic else [])])

    def _choose_scope(self, stage):
        """Puts a tensor without a scope where TVM does: computed in a loop over threads, it is each thread's
        own, and in one over blocks the threads of a block share it."""
        scope = _scope_of_loops(stage)
        copied = [step for step, new in self.schedule.changes if new is stage and step.name != "rfactor"]
        named = [step for step in stage.steps if step.name == "block" and step.arguments[0] == "set_scope"]
        if named:  # compute_at asks for it
            self._set_scopes(stage, named[-1].arguments[1][1])
        elif scope and not copied:
            self._set_scopes(stage, scope)

    def _set_scopes(self, stage, scope):
        """Puts all tensors of a stage that the program allocates in a memory."""
        found, allocated = self._block_nodes(), {b.name for b in self.sch.func.body.block.alloc_buffers}
        for block in self.blocks[stage]:
            for at, region in enumerate(found[block.name].writes):
                if region.buffer.name in allocated:
                    self.sch.set_scope(block, at, scope)

    def _take_loops(self, block, axes):
        """Notes the innermost loops of a block as those of axes."""
        loops = self.sch.get_loops(block)
        if len(loops) < len(axes):
            raise PleatError(f"{block.name} has {len(loops)} loops for {len(axes)} axes")
        self.loops.update(zip(axes, loops[len(loops) - len(axes):]))

    def _steps(self, stage, steps):
        for step in steps:
            if step.name == "tensorize":
                self.intrinsics.append((stage, step))
                continue
            if step.name == "store_predicate":
                check_store_predicate(stage, step)
                continue
            self.sch.place = step.place
            results = getattr(self, "_step_" + step.name)(stage, *step.arguments)
            self.loops.update(zip(step.results, results or ()))
            self._made_loops(step.results)

    def _made_loops(self, axes):
        """Is called with the axes whose loops a step has made."""

    def _step_split(self, stage, parent, factors):
        """A loop that is shorter than a part of it has all iterations in that part, unless threads, whose number
        stages share, or partial results are made of it."""
        extent, given = self.sch.get(self.loops[parent]).extent, next(f for f in factors if f is not None)
        keeps = parent.iter_type != DATA_PARALLEL or any(
            step.name == "mark" and step.arguments[1] == "bind" for step in stage.steps)
        if isinstance(extent, nodes.IntImm) and 0 < extent.value < given and not keeps:
            factors = [None if f is None else extent.value for f in factors]
        return self.sch.split(self.loops[parent], factors=factors)

    def _step_fuse(self, _, axes):
        return [self.sch.fuse(*(self.loops[a] for a in axes))]

    def _step_unit(self, stage):
        loops = self.sch.get_loops(self._block(stage))
        return [self.sch.add_unit_loop(loops[0] if loops else self._block(stage))]

    def _step_reorder(self, _, axes):
        if len(axes) > 1:
            self.sch.reorder(*(self.loops[a] for a in axes))

    def _step_mark(self, _, axis, name, arguments):
        getattr(self.sch, name)(self.loops[axis], *arguments)

    def _step_block(self, stage, name, arguments, keywords):
        if name == "set_scope" and stage.op.num_outputs > 1:
            return self._set_scopes(stage, arguments[1])
        getattr(self.sch, name)(self._block(stage), *arguments, **keywords)

    def _step_prefetch(self, stage, tensor, axis, offset):
        block = self._block(stage)
        reads = [r.buffer.name for r in self._block_nodes()[block.name].reads]
        self.sch.prefetch(block, reads.index(self._buffer(tensor)), self.loops[axis], ahead=offset)

    # ---- Intrinsics of tensor expressions ------------------------------------------------------

    def _tensorize(self, stage, step, axis, intrinsic):
        leaves, axes = stage.leaf_iter_vars, [*stage.data_axes, *stage.op.reduce_axis]
        at = next(i for i, leaf in enumerate(leaves) if leaf is axis)
        try:
            name = intrinsic.registered(any(a.iter_type != DATA_PARALLEL for a in leaves[:at]))
        except PleatError as error:
            refuse(step.place, str(error))
        if len(axes) > 1:
            axis = self._in_order(stage, leaves[at:], axes)
        self.sch.tensorize(self.loops[axis], name, preserve_unit_iters=False)

    def _in_order(self, stage, leaves, axes):
        """Puts loops in the order of the axes that they are parts of, as descriptions have them; the outermost."""
        sources = {part: s.arguments[0] for s in stage.steps if s.name == "split" for part in s.results}

        def position(axis):
            while axis in sources:
                axis = sources[axis]
            return next((i for i, one in enumerate(axes) if one is axis), None)
        if any(position(leaf) is None for leaf in leaves):
            return leaves[0]
        ordered = sorted(leaves, key=position)
        if any(a is not b for a, b in zip(ordered, leaves)):
            self.sch.reorder(*(self.loops[leaf] for leaf in ordered))
        return ordered[0]

    # ---- Threads ------------------------------------------------------------------------------

    def _start_threads(self, stage, threads):
        """Puts the loop over the steps of a scan inside of loops over threads, which all updates of a step share."""
        nests = []
        for op in {t.op: None for t in stage.op.update}:
            steps, *loops = self.sch.get_loops(self._block(self.schedule[op]))
            bound = {self.sch.get(loop).thread_binding.thread_tag: loop for loop in loops
                     if self.sch.get(loop).thread_binding is not None}
            missing = [thread for thread in threads if thread not in bound]
            if missing:
                refuse(stage.environment.place, f"env_threads: no loop of {op.name} is bound to {missing[0]}")
            order = nests and order or [thread for thread in bound if thread in threads]
            nests.append([bound[thread] for thread in order])
            self.sch.reorder(*nests[-1], *(loop for loop in loops if loop not in nests[-1]))
        if len(nests) > 1:
            self.sch.merge(*(nest[-1] for nest in nests))
            steps, *loops = self.sch.get_loops(self._block(self.schedule[op]))
            nests = [loops[:len(threads)]]
        self.sch.reorder(*nests[0], steps)

    def _start_blocks(self, stage):
        """Does so for a scan without env_threads whose steps run in blocks of threads, where it is proved: a device
        cannot start blocks inside of a loop."""
        tags = [[thread_of(update, a) for a in update.leaf_iter_vars]
                for update in (self.schedule[op] for op in {t.op: None for t in stage.op.update})]
        threads = [tag for tag in tags[0] if tag and all(tag in other for other in tags)]
        if any(tag.startswith("blockIdx") for tag in threads):
            try:
                self._start_threads(stage, threads)
            except ScheduleError:
                pass  # the loop over the steps stays around the threads

    def _separate_first_values(self, stage):
        """Stores the first values of a reduction in loops of their own."""
        if not stage.op.reduce_axis or not self.blocks[stage] or stage.placement == "inline":
            return
        reductions = [a for a in stage.leaf_iter_vars if a.iter_type != DATA_PARALLEL]
        if any(thread_of(stage, a).startswith("threadIdx") for a in reductions):
            return  # each thread has a first value of its own
        outermost = reductions[0]
        order = {id(a): at for at, a in enumerate(stage.leaf_iter_vars)}
        steps = [*stage.steps, stage.intrinsic] if stage.intrinsic else stage.steps
        inside = [step.arguments[0] for step in steps if step.name == "tensorize"]
        if any(order.get(id(a), 0) <= order[id(outermost)] for a in inside):
            return  # the block around the intrinsic stores them
        try:
            self.sch.decompose_reduction(self._block(stage), self.loops[outermost])
        except ScheduleError:
            pass  # the block keeps its first values


def _check_places(stage):
    """Refuses a stage that is computed in a loop of its own, through others or at once."""
    around = []
    while stage.placement == "at" and stage not in around:
        around.append(stage)
        stage = stage.attach_stage
    if stage in around:
        others = [one.op.name for one in around[around.index(stage) + 1:]]
        place = f"a loop of {others[0]}, which is computed in its loops" if others else "a loop of its own"
        refuse(stage.attach_place, f"compute_at: {stage.op.name} cannot be computed in {place}")


def _scope_of_loops(stage):
    """The memory that the threads of the loops around a stage imply; None where there are no threads."""
    threads = threads_around(stage)
    return "local" if any(t.startswith(("threadIdx", "vthread")) for t in threads) else "shared" if threads else None


def _is_in_changes(schedule, stage):
    """Does a step copy the tensor of a stage, or what it reads, or makes partial results of it?"""
    return any(stage in (new, *step.arguments) or step.name == "cache_read" and (
        step.arguments[0].op is stage.origin_op or stage in step.arguments[2]) for step, new in schedule.changes)


def _axes(op):
    return [*op.axis, *op.reduce_axis]


def schedule_of(schedule, args, name="main", separate_all=False):
    """The pleat.tir.Schedule with all steps of a te.Schedule, on the program of the arguments; its
    `trace` has the steps as text, and `mod` is the result. separate_all: reductions without steps have their first
    values in loops of their own, too."""
    if not isinstance(schedule, Schedule):
        raise TypeError(f"expected a te.Schedule, not {type(schedule).__name__}")
    return _Lowering(schedule, args, name).apply(separate_all)


def program_of(schedule, args, name="main", separate_all=False):
    """The module of a te.Schedule, the tensor program of its arguments with all steps applied."""
    if args is None:
        raise TypeError("a te.Schedule needs the list of its arguments, args=[A, B]")
    return with_double_buffers(schedule_of(schedule, args, name, separate_all).mod)


def lower(inp, args=None, name="main", simple_mode=False):
    """The module of a te.Schedule: the tensor program of the arguments, which are tensors and scalar
    variables, with all steps applied. simple_mode: its loops alone, without blocks, to be read. Where
    the context adds passes of later phases than 0, its flat loops, as these passes make them.
    A pleat.IRModule or PrimFunc is lowered to flat loops, as TVM lowers it: see pleat.tir.lowering."""
    from pleat.ir import IRModule
    from pleat.tir import PrimFunc
    from pleat.tir.lowering import lower_module, with_added_passes
    if isinstance(inp, PrimFunc):
        inp = IRModule({name: inp.with_attr("global_symbol", name)})
    if isinstance(inp, IRModule):
        return lower_module(inp, simple_mode)
    module = program_of(inp, args, name, simple_mode)
    return lower_module(module, simple_mode=True) if simple_mode else with_added_passes(module)
