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
import random
import sys

from pleat._library import PleatError, _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.ir._module import IRModule, _as_handle, _names
from pleat.script._values import text_of
from pleat.tir.index_map import IndexMap

# The steps that return loops, blocks or integers: as a list, or the only one.
LISTS = {"get_loops": "loop", "split": "loop", "get_child_blocks": "block",
         "get_output_blocks": "block", "get_producers": "block", "get_consumers": "block",
         "sample_perfect_tile": "int", "sample_partitioned_tile": "int"}
SINGLE = {"get_block": "block", "get_sblock": "block", "fuse": "loop", "merge": "loop",
          "add_unit_loop": "loop", "cache_read": "block", "cache_write": "block",
          "blockize": "block", "decompose_padding": "block", "reindex": "block",
          "reindex_cache_read": "block", "reindex_cache_write": "block",
          "decompose_reduction": "block", "rfactor": "block", "sample_categorical": "int",
          "sample_compute_location": "loop"}
OTHERS = ("tensorize", "pad_einsum", "reorder", "reorder_block_iter_var", "parallel", "vectorize",
          "unroll", "bind", "annotate", "unannotate", "loop_partition", "compute_inline",
          "reverse_compute_inline", "compute_at", "reverse_compute_at", "prefetch", "set_scope",
          "storage_align", "unsafe_set_dtype", "annotate_buffer_access", "transform_layout",
          "split_axis", "fuse_axes", "reorder_axes", "pad_axis", "swizzle_axes", "separate_axis",
          "transform_block_layout", "set_axis_separator", "pad_value", "drop_padding_predicate",
          "predicate_reduction", "enter_postproc")


class ScheduleError(PleatError):
    """Raised for a step that is refused: the text says what could not be proved."""


class _Reference:
    """A block or a loop of a schedule, by the name of the result in the schedule's steps."""

    def __init__(self, text, name):
        self._text, self.name = text, name

    def __repr__(self):
        return f"{type(self).__name__}({self.name})"

    def __script__(self):
        return self._text


class BlockRV(_Reference):
    """A block of a schedule; `name` is that of the block when it was returned."""


class LoopRV(_Reference):
    """A loop of a schedule; `name` is that of its variable when it was returned."""


class ExprRV(int):
    """An integer that a sampling step drew; where it is an argument of a step, the trace names it."""

    def __new__(cls, text, name):
        value = super().__new__(cls, name)
        value._text = text
        return value

    def __script__(self):
        return self._text


REFERENCES = {"block": BlockRV, "loop": LoopRV, "int": ExprRV}


def _argument(value):
    if isinstance(value, ExprRV):
        return value.__script__()
    if isinstance(value, IndexMap):
        return repr(str(value))
    if callable(value) and not isinstance(value, _Reference):
        return repr(str(IndexMap.from_func_with_separators(value)[0]))
    if isinstance(value, (list, tuple)):
        items = ", ".join(_argument(item) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items},)"
    return text_of(value)


class Trace(str):
    """The steps of a schedule as text, one step a line."""

    def __new__(cls, schedule, form):
        text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
        check_status(_lib.pleat_schedule_trace_as(schedule._schedule, form.encode(), text, messages),
                     messages)
        trace = super().__new__(cls, _owned_text(text[0]))
        trace._schedule = schedule
        return trace

    def by_axes(self):
        """The trace with each transform_layout as steps on single axes (split_axis, fuse_axes,
        reorder_axes, pad_axis, swizzle_axes, separate_axis); a comment says where there are none.
        It has the steps that the schedule has now."""
        return Trace(self._schedule, "axes")

    def by_maps(self):
        """The trace with each run of steps on single axes of a buffer as one transform_layout."""
        return Trace(self._schedule, "maps")

    def as_python(self):
        """The steps, a list of lines."""
        return self.splitlines()

    def show(self):
        """Prints the steps."""
        print(self, end="")


class Schedule:
    """A schedule of a PrimFunc, or of a function of an IRModule.

    Each method is a step of docs/script.md's schedules with TVM's name and arguments. A step that is
    refused raises ScheduleError and changes nothing. `mod` is the module so far, `func` the
    function, and `trace` the steps as text."""

    def __init__(self, mod, func_name=None, *, seed=None):
        self._source = mod, func_name
        self._schedule = _new(_as_handle(mod), func_name or _main(mod))
        self._steps, self._name, self._intrinsics = [], func_name or _main(mod), {}
        self.seed(seed)

    def _apply(self, step, arguments, keywords):
        parts = [_argument(value) for value in arguments]
        parts += [f"{key}={_argument(value)}" for key, value in keywords.items()]
        result = f"r{len(self._steps)}"
        has_result = step in LISTS or step in SINGLE
        text = f"{result + ' = ' if has_result else ''}sch.{step}({', '.join(parts)})"
        frame = sys._getframe(2)
        self._run(text, frame.f_code.co_filename, frame.f_lineno)
        self._steps.append((text, frame.f_code.co_filename, frame.f_lineno))
        if not has_result:
            return None
        kind = REFERENCES[LISTS.get(step) or SINGLE.get(step)]
        names = list(self._result_names())
        if step in SINGLE:
            return kind(result, names[0])
        return [kind(f"{result}[{i}]", name) for i, name in enumerate(names)]

    def _run(self, text, file, line):
        messages = ffi.new("PleatMessages **")
        status = _lib.pleat_schedule_apply(self._schedule, text.encode(), file.encode(), line,
                                           messages)
        try:
            check_status(status, messages)
        except PleatError as error:
            if status == _lib.PLEAT_REFUSED:
                raise ScheduleError(str(error), error.messages) from None
            raise

    def _add_intrinsic(self, name, intrinsic):
        messages = ffi.new("PleatMessages **")
        status = _lib.pleat_schedule_intrinsic(self._schedule, name.encode(),
                                               intrinsic._text().encode(), messages)
        check_status(status, messages)
        self._intrinsics[name] = intrinsic

    def _result_names(self):
        i = 0
        while (name := _lib.pleat_schedule_result(self._schedule, i)) != ffi.NULL:
            yield ffi.string(name).decode()
            i += 1

    @property
    def mod(self):
        """The module with the function as it is scheduled so far."""
        result, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
        check_status(_lib.pleat_schedule_module(self._schedule, result, messages), messages)
        return IRModule(handle=ffi.gc(result[0], _lib.pleat_module_free))

    @property
    def func(self):
        """The function as it is scheduled so far."""
        return self.mod[self._name]

    @property
    def trace(self):
        """The steps so far as text, which `pleat opt --schedule` reads."""
        return Trace(self, "made")

    def seed(self, seed=None):
        """Sets the state from which the sampling steps draw; None and -1: a seed that differs each time."""
        self._random = random.Random(None if seed in (None, -1) else seed)
        _lib.pleat_schedule_seed(self._schedule, self._random.getrandbits(63))

    def fork_seed(self):
        """A seed for another schedule, drawn from this one's."""
        return self._random.getrandbits(31)

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

    def annotate_buffer_access(self, block, buffer_index, buffer_type, gen_new_ranges):
        """States the region that a block accesses of a buffer: `gen_new_ranges` gives, for each axis,
        its begin and end. It is refused where the region is not proved to cover what the block
        accesses."""
        if callable(gen_new_ranges) and not isinstance(gen_new_ranges, IndexMap):
            ranges = IndexMap.from_func(_flat_ranges(gen_new_ranges))
        else:
            ranges = gen_new_ranges
        return self._apply("annotate_buffer_access", (block, buffer_index, buffer_type, ranges), {})

    def show(self):
        """Prints the module as it is scheduled so far."""
        self.mod.show()

    def copy(self):
        """A schedule with the same steps, in which the same blocks and loops can be used."""
        result = Schedule(*self._source, seed=self.fork_seed())
        for name, intrinsic in self._intrinsics.items():
            result._add_intrinsic(name, intrinsic)
        for step in self._steps:
            result._run(*step)
        result._steps = list(self._steps)
        return result


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


def _method(step):
    def method(self, *arguments, **keywords):
        return self._apply(step, arguments, keywords)
    method.__name__, method.__qualname__ = step, f"Schedule.{step}"
    method.__doc__ = f"The step {step}; its arguments are those of TVM's."
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

    def _text(self):
        return IRModule({"desc": self.desc, "impl": self.impl}).script()


def _flat_ranges(function):
    def flat(*axes):
        return [end for pair in function(*axes) for end in pair]
    flat.__signature__ = inspect.signature(function)
    return flat


for _step in {*LISTS, *SINGLE, *OTHERS} - vars(Schedule).keys():
    setattr(Schedule, _step, _method(_step))
