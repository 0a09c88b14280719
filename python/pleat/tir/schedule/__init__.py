# SPDX-License-Identifier: Apache-2.0
"""Schedules of tensor programs, with TVM's names: steps that are proved legal one by one.

    sch = pleat.tir.Schedule(program)
    i, j = sch.get_loops(sch.get_block("B"))
    outer, inner = sch.split(j, factors=[None, 16])
    sch.vectorize(inner)
    sch.transform_layout("B", ("write", 0), lambda i, j: [j // 16, i, j % 16])
    run = pleat.build(sch.mod)
"""
import inspect
import json
import math
import operator
import random
import re
import sys
import weakref

from pleat._expression import var
from pleat._library import PleatError, _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.ir._module import GlobalVar, IRModule, PrimFunc, _as_handle, _names
from pleat.places import at_call
from pleat.script._values import Value, text_of
from pleat.tir import nodes, stmt_functor
from pleat.tir.index_map import IndexMap
from pleat.tir.references import (REFERENCES, BlockRV, ExprRV, LoopRV, Reference, Step, check_reference,
                                  references_in, text_of_reference)
from pleat.tir import schedule_state
from pleat.tir.schedule.descriptions import DESCRIPTIONS, signature_of
from pleat.tir.schedule_state import BlockScope, DepKind, Dependency, ScheduleState, StmtSRef  # noqa: F401
from pleat.tir.trace import Instruction, InstructionKind, Trace, bound_arguments, signatures, step_values

class ScheduleError(PleatError):
    """Raised for a step that is refused: the text says what could not be proved."""


SBlockRV = BlockRV  # TVM's name since 2026
schedule = sys.modules[__name__]  # TVM's package of this name has a module of this name
state = schedule_state
sys.modules.update({f"pleat.{package}.schedule.state": state for package in ("tir", "tirx", "s_tir")})


def _argument(value):
    if isinstance(value, ExprRV):
        return value.__script__()
    if isinstance(value, IndexMap):
        return repr(str(value))
    if isinstance(value, float) and math.isnan(value):
        return 'float("nan")'
    if isinstance(value, (list, tuple)):
        items = ", ".join(_argument(item) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items},)"
    return text_of(value)


def _is_function(value):
    return callable(value) and not isinstance(value, (IndexMap, Value))


def _takes_any_number(function):
    """Whether a function has a parameter such as *indices."""
    return any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(function).parameters.values())


def _as_map(value, rank=None):
    """The index map of a function, of `rank` indices where it takes any number, or of text; other values as they
    are."""
    if callable(value) and not isinstance(value, IndexMap):
        return IndexMap.from_func_with_separators(value, ndim=rank)[0]
    try:
        return IndexMap.parse(value) if isinstance(value, str) and "->" in value else value
    except PleatError:  # the library says what is wrong with the text
        return value


class _ModuleOfProgram(IRModule):
    """The module of a schedule that was made of one program, which `main` names too, as in TVM."""

    def __getitem__(self, name):
        return super().__getitem__(next(iter(self)) if name == "main" and len(self) == 1 else name)

    def __contains__(self, name):
        return name == "main" and len(self) == 1 or super().__contains__(name)


class _Version:
    """A program between two steps."""


class Schedule:
    """A schedule of a PrimFunc, or of a function of an IRModule.

    Each method is a step of docs/script.md's schedules with TVM's name and arguments. A step that is
    refused raises ScheduleError and changes nothing. `mod` is the module so far, `func` the
    function, and `trace` the steps as text. error_render_level: "detail" shows where and why a step
    is refused, "fast" the first line of that, "none" neither. debug_mask and enable_check are TVM's
    and change nothing: each step is proved and its result verified."""

    def __init__(self, mod, func_name=None, *, seed=None, debug_mask="none",
                 error_render_level="detail", enable_check=True):
        if error_render_level not in ("detail", "fast", "none"):
            raise ValueError(f"error_render_level is 'detail', 'fast' or 'none', not "
                             f"{error_render_level!r}")
        self._source = mod, func_name
        self._options = {"debug_mask": debug_mask, "error_render_level": error_render_level,
                         "enable_check": enable_check}
        self._name = func_name or _main(mod)
        self._schedules = {} if self._name is None else {self._name: _new(_as_handle(mod), self._name)}
        self._log, self._intrinsics = [], {}
        self._steps = []  # a Step for each step, which its results have
        self._insts = []  # the instruction of each step, and what it drew or None
        self._module = None, None  # of a version
        self._version = self._first = _Version()  # another one after each step that may change the program
        self._found = weakref.WeakKeyDictionary()  # the nodes of references, by the version
        self._nodes = {}  # the nodes of the program of one version; a copy has the same dictionary
        self._replaced = []  # for each call of ScheduleState.replace, the nodes before it and those after it
        self.seed(seed)

    @property
    def _schedule(self):
        return self._schedules[self._working_on()]

    def _working_on(self):
        """The name of the function that the steps change."""
        if self._name is None:
            raise ValueError("the schedule does not know which function to be working on: call work_on with one of "
                             f"{', '.join(_names(_as_handle(self._source[0])))}")
        return self._name

    def _record(self, method, *arguments):
        """Runs a method that copy runs again."""
        getattr(self, method)(*arguments)
        self._log.append((method, *arguments))

    def _apply(self, step, arguments, keywords, **recorded):
        """Makes a step, and returns what it returns. The trace gets the arguments, and those in `recorded`."""
        arguments, keywords = self._prepared(step, arguments, keywords)
        values = [*arguments, *keywords.values()]
        function = self._function_of(values)
        parts = list(map(_argument, arguments)) + [f"{key}={_argument(value)}" for key, value in keywords.items()]
        result, shape = f"r{len(self._steps)}", signatures()[step].result
        text = f"{'' if shape == 'NOTHING' else result + ' = '}sch.{step}({', '.join(parts)})"
        frame = _caller()
        self._record("_run", text, frame.f_code.co_filename, frame.f_lineno, function)
        results = self._results(result, shape, function)
        self._insts.append(self._instruction(step, arguments, {**keywords, **recorded}, results, function))
        if step == "sample_perfect_tile":  # what split finds for a loop of a free extent
            results = [None if int(factor) < 0 else factor for factor in results]
        return None if shape == "NOTHING" else results if shape.endswith("S") else results[0]

    def _results(self, name, shape, function):
        """The references to what the last step returned."""
        step = Step(function)
        self._steps.append(step)
        kind, names = REFERENCES.get(shape.removesuffix("S")), list(self._result_names(function))
        if not shape.endswith("S"):
            return [kind(name, names[0], step)] if kind else []
        return [kind(f"{name}[{i}]", text, step) for i, text in enumerate(names)]

    def _prepared(self, step, arguments, keywords):
        """The arguments with blocks instead of their names, and index maps instead of functions."""
        bound = bound_arguments(step, arguments, keywords)
        if bound is None:  # the library says what is wrong
            return arguments, keywords
        kinds = {p.name: p.kind for p in signatures()[step].parameters}
        bound = {name: self._prepared_value(kinds[name], name, value) for name, value in bound.items()}
        for name, kind in kinds.items():
            if kind in ("SLOT", "READ", "WRITE") and isinstance(bound.get(name), nodes.Buffer):
                bound[name] = self._slot(bound["block"], kind, bound[name])
        if "index_map" in bound or "gen_new_ranges" in bound:
            bound = self._with_maps(step, bound)
        elif isinstance(bound.get("pad_value"), nodes.PrimExpr):
            bound["pad_value"] = _padding(bound["pad_value"], 0)
        elif _is_function(bound.get("pad_value")):
            many = _takes_any_number(bound["pad_value"]) and self._map_rank(step, bound)
            bound["pad_value"] = _padding(bound["pad_value"], many + len(bound.get("factors", [0])) - 1)
        many = [item for name, value in bound.items() if name.startswith("*") for item in value]
        return many, {name: value for name, value in bound.items() if not name.startswith("*")}

    def _prepared_value(self, kind, name, value):
        if kind in ("BLOCK", "TARGET", "PART") and isinstance(value, str):
            return self.get_sblock(value)
        if (kind in ("NEST", "PART") or name == "consumer_blocks") and isinstance(value, (list, tuple)):
            return [self.get_sblock(item) if isinstance(item, str) else item for item in value]
        return value

    def _slot(self, block, kind, buffer):
        """How a step names a buffer that is given by its node, which a node of the block has."""
        block = self.get(block)
        reads = [("read", at, region.buffer) for at, region in enumerate(block.reads)]
        writes = [("write", at, region.buffer) for at, region in enumerate(block.writes)]
        for side, at, own in {"SLOT": writes + reads, "READ": reads, "WRITE": writes}[kind]:
            if own.same_as(buffer):
                return (side, at) if kind == "SLOT" else at
        return buffer.name  # the library says which buffers there are

    def _with_maps(self, step, bound):
        """The arguments of a step that takes an index map, with a map for a function or text."""
        name = "index_map" if "index_map" in bound else "gen_new_ranges"
        function, rank = bound[name], None
        if callable(function) and _takes_any_number(function):
            rank = self._map_rank(step, bound)
        bound = {**bound, name: _as_map(function, rank)}
        if "pad_value" in bound and isinstance(bound[name], IndexMap):
            bound["pad_value"] = _padding(bound["pad_value"], len(bound[name].final_indices))
        return bound

    def _map_rank(self, step, bound):
        """The number of inputs of the index map of a step: the axes of its buffer, or the variables of its block."""
        block = self.get(bound["block"])
        if not hasattr(block, "iter_vars"):
            raise TypeError(f"{step}: 'block' is a block, not {bound['block']!r}")
        if "buffer" not in bound:
            return len(block.iter_vars)
        kind, number = bound["buffer"] if isinstance(bound["buffer"], tuple) else (None, bound["buffer"])
        regions = {"read": block.reads, "write": block.writes}.get(kind, [*block.writes, *block.reads])
        buffers = [region.buffer for region in regions]
        if kind is not None:
            return len(buffers[number].shape) if number < len(buffers) else None
        return next((len(buffer.shape) for buffer in buffers if buffer.name == number), None)

    def _function_of(self, values):
        """The function of the references in the arguments of a step, or else the one that is worked on. Raises for a
        reference that another schedule returned. One that was returned before the schedule was copied is that of
        both."""
        function = None
        for reference in references_in(values):
            number = int(text_of_reference(reference)[1:].partition("[")[0])
            if self._steps[number:number + 1] != [reference._step]:
                raise IndexError(f"{reference!r} is of another schedule")
            function = reference._step.function
        return function or self._working_on()

    def _instruction(self, step, arguments, keywords, results, function):
        """The instruction of the last step, and what it drew."""
        values = bound_arguments(step, arguments, keywords)
        canonical = step_values(step, self._trace_as("last", function))
        decision = canonical.pop("decision", None)
        return InstructionKind.get(step)._instruction({**values, **canonical}, results), decision

    def _run(self, text, file, line, function):
        if not text.partition("sch.")[2].startswith(("get_", "sample_")):
            self._version = _Version()
        messages = ffi.new("PleatMessages **")
        status = _lib.pleat_schedule_apply(self._schedules[function], text.encode(), file.encode(), line,
                                           messages)
        try:
            check_status(status, messages)
        except PleatError as error:
            error = at_call(error, file, line, text.partition("sch.")[2].partition("(")[0])
            if status == _lib.PLEAT_REFUSED:
                error = ScheduleError(self._shown(str(error)), error.messages)
            raise error from None

    def _shown(self, text):
        level = self._options["error_render_level"]
        if level == "none":
            return "the step is refused (not rendered); error_render_level='detail' says why"
        return text if level == "detail" else text.partition("\n")[0]

    def _add_intrinsic(self, name, intrinsic):
        messages = ffi.new("PleatMessages **")
        status = _lib.pleat_schedule_intrinsic(self._schedule, name.encode(),
                                               intrinsic._text().encode(), messages)
        check_status(status, messages)
        self._intrinsics[name] = intrinsic

    def _result_names(self, function):
        i = 0
        while (name := _lib.pleat_schedule_result(self._schedules[function], i)) != ffi.NULL:
            yield ffi.string(name).decode()
            i += 1

    @property
    def mod(self):
        """The module with the function as it is scheduled so far."""
        made = IRModule if isinstance(self._source[0], IRModule) else _ModuleOfProgram
        if self._module[0] is not self._version:
            self._module = self._version, self._made_module()
        return made(handle=self._module[1]._handle, kept=self._module[1]._kept)

    def _made_module(self):
        result, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
        module = None
        for name, schedule in self._schedules.items():
            check_status(_lib.pleat_schedule_module(schedule, result, messages), messages)
            made = IRModule(handle=ffi.gc(result[0], _lib.pleat_module_free))
            if module is None:
                module = made
            else:
                module[name] = made[name]
        module = module or IRModule(handle=_as_handle(self._source[0]))
        is_given = self._version is self._first and isinstance(self._source[0], PrimFunc)
        module._kept = module._handle, {self._name: self._source[0]} if is_given else {}
        return module

    @property
    def func(self):
        """The function as it is scheduled so far."""
        return self.mod[self._working_on()]

    @property
    def trace(self):
        """The steps so far, on all functions."""
        return Trace([inst for inst, _ in self._insts],
                     {inst: decision for inst, decision in self._insts if decision is not None}, schedule=self)

    def _trace_as(self, form, function=None):
        text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
        schedule = self._schedules[function or self._working_on()]
        check_status(_lib.pleat_schedule_trace_as(schedule, form.encode(), text, messages), messages)
        return _owned_text(text[0])

    def work_on(self, func_name):
        """Makes the next steps steps of another function of the module, except those on blocks and loops that
        were found in this one."""
        if str(func_name) not in self.mod:
            raise KeyError(f"the module has no function '{func_name}'")
        self._record("_work_on", self.mod[str(func_name)].__name__)

    def _work_on(self, name):
        if name is not None and name not in self._schedules:
            self._schedules[name] = _new(_as_handle(self._source[0]), name)
            self._seed(self._random.getrandbits(63), name)
        self._name = name

    @property
    def func_working_on(self):
        """The name of the function that the steps change."""
        return None if self._name is None else GlobalVar(self._name)

    def remove_rv(self, rand_var):
        """Forgets a reference to a block, a loop or an integer; a step that uses it raises."""
        check_reference(rand_var)
        rand_var._text = None

    def seed(self, seed=None):
        """Sets the state from which the sampling steps draw; None and -1: a seed that differs each time."""
        self._random = random.Random(None if seed in (None, -1) else seed)
        if self._name is not None:
            self._record("_seed", self._random.getrandbits(63), self._name)

    def _seed(self, number, name):
        _lib.pleat_schedule_seed(self._schedules[name], number)

    def fork_seed(self):
        """A seed for another schedule, drawn from this one's."""
        return self._random.getrandbits(31)

    def get_sblock(self, name, func_name=None):
        """The block of this name in a function of the module: that of func_name, or the one that is worked on."""
        if func_name is not None and str(func_name) not in self.mod:
            raise KeyError(f"the module has no function '{func_name}'")
        before = self._name
        if func_name is not None:
            self.work_on(self.mod[str(func_name)].__name__)
        called = self._name if isinstance(self._source[0], IRModule) else "main"
        try:
            return self._apply("get_block", (name,), {}, func_name=called)
        finally:
            if self._name != before:
                self._record("_work_on", before)

    get_block = get_sblock

    def can_decompose_padding(self, block, loop):
        """Whether the step decompose_padding would be made; the schedule does not change."""
        try:
            self.copy().decompose_padding(block, loop)
        except ScheduleError:
            return False
        return True

    def tensorize(self, block_or_loop, tensor_intrin, preserve_unit_iters=True):
        """Replaces the body of a block, or of the blockized loop, by that of an intrinsic, whose
        description the block must be. The module's functions NAME_desc and NAME_impl are an
        intrinsic too."""
        intrinsic = TensorIntrin.get(tensor_intrin, allow_missing=True)
        if intrinsic and self._intrinsics.get(tensor_intrin) is not intrinsic:
            self._add_intrinsic(tensor_intrin, intrinsic)
        keywords = {} if preserve_unit_iters else {"preserve_unit_iters": False}
        return self._apply("tensorize", (block_or_loop, tensor_intrin), keywords)

    def transform_layout(self, block, buffer=None, index_map=None, pad_value=None, *,
                         assume_injective_transform=False, rewrite_loops=False, fill=None, buffer_index=None,
                         buffer_index_type=None):
        """Stores a buffer of the block in another layout, and rewrites all its accesses. `pad_value` is what the
        padding holds: a number, or a function of the physical indices, or a map, that gives one. With
        rewrite_loops, and where padding is filled, loops that cover the buffer then cover its new shape. `fill`
        names the way to write padding: "select" or "branch" in the block that writes the buffer, a nest "after"
        it, or one "before" all accesses; otherwise the first of select, after and before that fits is taken. The
        caller fills the padding of an input, which the program states by T.assume: with "assume", or without
        rewrite_loops. The buffer may also be stated as in TVM 0.9, by its number and "read" or "write"."""
        buffer, rest = _older_slot(buffer, [index_map, pad_value], buffer_index, buffer_index_type)
        index_map, pad_value = [*rest, None][:2]
        return self._apply("transform_layout", (block, buffer, index_map), {
            "pad_value": pad_value, "assume_injective_transform": assume_injective_transform,
            "rewrite_loops": rewrite_loops, "fill": fill})

    def set_axis_separator(self, block, buffer=None, *separators, axis_separators=None, buffer_index=None,
                           buffer_index_type=None):
        """Marks the axes of a buffer from which on those of the next physical axis begin. The buffer may also be
        stated as in TVM 0.9, by its number and "read" or "write"."""
        given = [*separators, *([] if axis_separators is None else [axis_separators])]
        buffer, given = _older_slot(buffer, given, buffer_index, buffer_index_type)
        return self._apply("set_axis_separator", (block, buffer, *given), {})

    def reindex(self, block, buffer=None, *kind, buffer_index=None, buffer_index_type=None):
        """Copies a buffer that the block reads or writes to one whose axes are the variables of the block. The
        buffer may also be stated as in TVM 0.9, by its number and "read" or "write"."""
        buffer, rest = _older_slot(buffer, list(kind), buffer_index, buffer_index_type)
        return self._apply("reindex", (block, buffer, *rest), {})

    def annotate_buffer_access(self, block, buffer_index, buf_type, gen_new_ranges):
        """States the region that a block accesses of a buffer: `gen_new_ranges` gives, for each axis,
        its begin and end, also as one list, or an element that stands for itself alone. It is refused
        where the region is not proved to cover what the block accesses."""
        if callable(gen_new_ranges) and not isinstance(gen_new_ranges, IndexMap):
            block = self.get_sblock(block) if isinstance(block, str) else block
            node = self.get(block)
            regions = {"read": node.reads, "write": node.writes}.get(buf_type, ())[buffer_index:]
            ranges = _flat_ranges(gen_new_ranges, len(regions[0].buffer.shape) if regions else 0)
        else:
            ranges = gen_new_ranges
        return self._apply("annotate_buffer_access", (block, buffer_index, buf_type, ranges), {})

    def accesses(self):
        """How each access of a block steps through memory in the vectorized loop around the block, or
        else in the innermost one with several iterations: a list of dictionaries with "block",
        "buffer", "element", "loop", "stride" (in elements), "lines" (the cache lines that the loop
        touches), "width" (the elements of the widest contiguous vector) and "jump" (two consecutive
        iterations whose elements are not neighbours, such as [["A[0, 0]", 0], ["A[1, 0]", 16]], each with its
        place in memory, counted in elements; a text where that depends on sizes); None where a number is not
        known, or no iteration jumps."""
        text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
        check_status(_lib.pleat_schedule_accesses(self._schedule, text, messages), messages)
        return json.loads(_owned_text(text[0]))

    def show(self, *options, access=False, **keywords):
        """Prints the module as it is scheduled so far, with the options of its `show`; with access=True then
        also the accesses of its blocks, and those that each step changed, before and after it."""
        self.mod.show(*options, **keywords)
        if access:
            print(_access_text(self._replayed_accesses(), self.accesses()), end="")

    def _replayed_accesses(self):
        """The steps that changed accesses, each with the accesses before and after it."""
        made = Schedule(*self._source, **self._options)
        for name, intrinsic in self._intrinsics.items():
            made._add_intrinsic(name, intrinsic)
        before = {made._name: made.accesses()}
        for method, *arguments in self._log:
            getattr(made, method)(*arguments)
            after = made.accesses()
            old = before.get(made._name, after)
            if method == "_run" and after != old:
                yield arguments[0], old, after
            before[made._name] = after

    def copy(self):
        """A schedule with the same steps, in which the same blocks and loops can be used."""
        result = self._copied()
        result.seed(self.fork_seed())
        return result

    def _copied(self):
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__)
        result._schedules = {name: _copy(schedule) for name, schedule in self._schedules.items()}
        result._intrinsics = dict(self._intrinsics)
        for name in ("_log", "_steps", "_insts"):
            setattr(result, name, list(getattr(self, name)))
        return result

    def get(self, rand_var_or_sref):
        """The node of a block or a loop as it is now, or the value of an integer. The node is the same until
        a step is made."""
        if isinstance(rand_var_or_sref, StmtSRef):
            return rand_var_or_sref.stmt
        check_reference(rand_var_or_sref)
        function = self._function_of([rand_var_or_sref])
        if isinstance(rand_var_or_sref, ExprRV):
            return int(rand_var_or_sref)
        kept = self._found.setdefault(self._version, {})
        if rand_var_or_sref._text not in kept:
            kept[rand_var_or_sref._text] = self._find(rand_var_or_sref, function)
        return kept[rand_var_or_sref._text]

    def _find(self, reference, function):
        marked = self._copied()
        marked.annotate(reference, "pleat.get", 1)
        places = zip(_annotated_nodes(marked.mod[function]), self._current_nodes(function))
        return next(node for mark, node in places if "pleat.get" in mark.annotations)

    def get_sref(self, rand_var_or_stmt):
        """The place of a block or a loop, which may be given by its node."""
        if isinstance(rand_var_or_stmt, (str, Reference)):
            self.get(rand_var_or_stmt)
            return StmtSRef(self.state, lambda: self.get(rand_var_or_stmt))
        return self.state.get_sref(rand_var_or_stmt)

    @property
    def state(self):
        """The program as it is now, under the name that TVM gives it."""
        return ScheduleState(self)

    def _moved(self, node):
        """The node that stands for a node of the program before ScheduleState.replace; None where that removed it."""
        for places in self._replaced:
            node = places[id(node)][1] if id(node) in places else node
        return node

    def _restart(self, program, places, body):
        """Makes it a schedule of another program. `places` has (old node, node of `body`) by the id of the old
        node, and body's nodes are those of the program before it was printed and read."""
        module, name = IRModule(handle=_as_handle(self.mod)), self._name
        module[name] = program
        self._source = module if isinstance(self._source[0], IRModule) else program, name
        self._schedules = {one: _new(_as_handle(self._source[0]), one) for one in self._schedules}
        self._log, self._steps, self._insts, self._version, self._nodes = [], [], [], _Version(), {}
        made = dict(zip(map(id, _annotated_nodes(body)), self._current_nodes(name)))
        self._replaced = [*self._replaced, {key: (old, made.get(id(node))) for key, (old, node) in places.items()}]
        self.seed(self.fork_seed())

    def _current_nodes(self, function):
        """The nodes of the loops and blocks of a function as it is now."""
        key = function, self._version
        if key not in self._nodes:
            for old in [old for old in self._nodes if old[1] is not self._version]:
                del self._nodes[old]
            self._nodes[key] = _annotated_nodes(self.mod[function])
        return self._nodes[key]


def _older_slot(buffer, rest, index, kind):
    """The buffer of a step, and the arguments behind it. TVM 0.9 states the number of the buffer and then, as
    `kind` or as the first of the arguments, "read" or "write"."""
    number = buffer if index is None else index
    if not isinstance(number, int):
        return buffer, rest
    if kind is None and rest and isinstance(rest[0], str) and rest[0] in ("read", "write"):
        kind, *rest = rest
    return (buffer if kind is None else (kind, number)), rest


def _row_of(access):
    """The text of an access's numbers; a dash where one is not known."""
    stride, lines, width = ("-" if access[key] is None else access[key]
                            for key in ("stride", "lines", "width"))
    loop = f"in {access['loop']}: " if access["loop"] else ""
    jump = ", not contiguous: {} at {}, {} at {}".format(*sum(access["jump"], [])) if access["jump"] else ""
    return f"{access['element']} {loop}stride {stride}, cache lines {lines}, vector width {width}{jump}"


def _numbered(accesses):
    """The rows of accesses by their block and number in it."""
    counts, rows = {}, {}
    for access in accesses:
        number = counts[access["block"]] = counts.get(access["block"], 0) + 1
        rows[access["block"], number] = _row_of(access)
    return rows


def _access_text(steps, accesses):
    lines = []
    for step, before, after in steps:
        old, new = _numbered(before), _numbered(after)
        lines.append(f"# {step}")
        for key in [*old, *(key for key in new if key not in old)]:
            if old.get(key) != new.get(key):
                lines += [f"#   {key[0]}: {old.get(key, 'no access')}",
                          f"#   {' ' * len(key[0])}  -> {new.get(key, 'no access')}"]
    lines.append("# The accesses:")
    lines += [f"#   {access['block']}: {_row_of(access)}" for access in accesses]
    return "".join(f"{line}\n" for line in lines)


def _annotated_nodes(function):
    """The loops and blocks of a function or a statement in the order in which they are visited."""
    nodes = []
    stmt_functor.post_order_visit(function, lambda node: nodes.append(node)
                                  if hasattr(node, "annotations") else None)
    return nodes


def _main(mod):
    """The name of the function that is meant where none is given."""
    names = _names(_as_handle(mod))
    return "main" if len(names) > 1 and "main" in names else None if len(names) > 1 else names[0]


def _new(handle, func_name):
    schedule, messages = ffi.new("PleatSchedule **"), ffi.new("PleatMessages **")
    status = _lib.pleat_schedule_new(handle, ffi.NULL if func_name is None else func_name.encode(),
                                     schedule, messages)
    check_status(status, messages)
    return ffi.gc(schedule[0], _lib.pleat_schedule_free)


def _copy(handle):
    schedule, messages = ffi.new("PleatSchedule **"), ffi.new("PleatMessages **")
    check_status(_lib.pleat_schedule_copy(handle, schedule, messages), messages)
    return ffi.gc(schedule[0], _lib.pleat_schedule_free)


def _method(step):
    def method(self, *arguments, **keywords):
        return self._apply(step, arguments, keywords)
    method.__name__, method.__qualname__ = step, f"Schedule.{step}"
    method.__doc__, method.__signature__ = DESCRIPTIONS[step], signature_of(signatures()[step].parameters)
    return method


class TensorIntrin:
    """An intrinsic for the step tensorize: `desc` says in loops what it computes, `impl` how."""

    _registered = {}

    def __init__(self, desc, impl):
        self.desc, self.impl = desc, impl

    @staticmethod
    def register(name, desc, impl, override=False):
        """Registers an intrinsic. Both functions have the same parameters, buffers of constant shape.
        Unless `impl` calls other functions, the step runs both and refuses the intrinsic when they
        differ."""
        if name in TensorIntrin._registered and not override:
            raise ValueError(f"the tensor intrinsic {name!r} is registered already; use override=True")
        TensorIntrin._registered[name] = TensorIntrin(desc, impl)

    @staticmethod
    def get(name, allow_missing=False):
        """The intrinsic registered by this name; None when allow_missing is true and there is none."""
        if name not in TensorIntrin._registered and not allow_missing:
            raise ValueError(f"no tensor intrinsic {name!r} is registered")
        return TensorIntrin._registered.get(name)

    @staticmethod
    def name_of(intrinsic):
        """The name by which an intrinsic is registered."""
        for name, one in TensorIntrin._registered.items():
            if one is intrinsic:
                return name
        raise ValueError("the tensor intrinsic is not registered; TensorIntrin.register gives it a name")

    def _text(self):
        return IRModule({"desc": self.desc, "impl": self.impl}).script()


def _constant(value):
    """The number that a constant of a program stands for, "unknown" for T.undef(), and other values as they are."""
    if isinstance(value, nodes.FloatImm):
        return value.value
    if isinstance(value, nodes.Call) and value.op.name == "tir.undef":
        return "unknown"
    if not isinstance(value, Value):
        return value
    number = re.fullmatch(r"T\.(?:u?int|float|bfloat)\d+\(([-+.\de]+)\)", text_of(value))
    if number:
        return json.loads(number[1])
    return "unknown" if text_of(value).startswith("T.undef(") else value


def _padding(value, rank):
    """The number that a function of `rank` indices, or a map, gives for all indices, or else the map, or for a
    function that gives no integer its text; other values as they are."""
    is_function = _is_function(value)
    known = _constant(value)
    if isinstance(known, nodes.PrimExpr) and not isinstance(known, nodes.IntImm):
        raise ScheduleError(f"pad_value is a number, an index map, or a function of the indices of the new layout; "
                            f"'{value}' is none: it has no value where the padding is written")
    value = result = _as_map(value) if isinstance(value, str) else value
    if is_function:
        names = list(inspect.signature(value).parameters)
        names = [f"i{k}" for k in range(rank if _takes_any_number(value) else len(names))]
        try:
            result = _constant(value(*map(var, names)))
        except (TypeError, PleatError):  # its value is none of integers and their operators
            result = Value("")
        if isinstance(result, Value):
            return Value(f"lambda {', '.join(names)}: {text_of(value(*map(Value, names)))}")
    elif isinstance(value, IndexMap):
        result = value.final_indices
    if result is not value and isinstance(result, (list, tuple)) and len(result) == 1:
        result, = result
    result = _constant(result)
    if result is value or isinstance(result, (float, str)):
        return result
    try:
        return operator.index(result)
    except TypeError:
        pass
    try:
        return _as_map(value, rank if is_function and _takes_any_number(value) else None)
    except TypeError as error:
        raise ScheduleError(f"pad_value is made of indices, numbers and operators alone: {error}") from None


def _caller():
    """The frame that called the package: a step by the name of a block finds the block first."""
    frame, package = sys._getframe(1), __name__.partition(".")[0]
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame = frame.f_back
    return frame


def _flat_ranges(function, rank):
    """The function with the begins and ends of a buffer's axes as one list; an element stands for itself
    alone."""
    def flat(*axes):
        parts = list(function(*axes))
        if rank and len(parts) == 2 * rank and not any(isinstance(part, (list, tuple)) for part in parts):
            return parts
        return [end for part in parts
                for end in (part if isinstance(part, (list, tuple)) else (part, part + 1))]
    flat.__signature__ = inspect.signature(function)
    return flat


for _step in signatures().keys() - vars(Schedule).keys():
    setattr(Schedule, _step, _method(_step))
