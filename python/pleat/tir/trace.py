# SPDX-License-Identifier: Apache-2.0
"""The trace of a schedule: its steps as instructions, with the text and the JSON that TVM writes of them."""
import ast
import collections
import functools
import itertools
import json
import math
import re

from pleat._library import _lib, ffi
from pleat.script._values import Value
from pleat.tir.index_map import IndexMap
from pleat.tir.nodes import FloatImm, IntImm, StringImm, Var
from pleat.tir.references import BlockRV, ExprRV, LoopRV, Reference

Parameter = collections.namedtuple("Parameter", "name kind default")  # default: a value, or REQUIRED
Signature = collections.namedtuple("Signature", "result parameters")
REQUIRED = object()
HEADING = "# from tvm import s_tir\ndef apply_trace(sch: s_tir.Schedule) -> None:"


def _parts(step):
    for part in itertools.count():
        text = _lib.pleat_schedule_signature(step, part)
        if text == ffi.NULL:
            return
        yield ffi.string(text).decode()


def _parameter(text):
    name, _, kind = text.partition(":")
    kind, has_default, default = kind.partition("=")
    return Parameter(name, kind, ast.literal_eval(default) if has_default else REQUIRED)


@functools.cache
def signatures():
    """The library's steps by their names: what each returns, and its parameters."""
    rows = iter(lambda counter=itertools.count(): [*_parts(next(counter))], [])
    return {name: Signature(result, [*map(_parameter, parameters)])
            for name, result, *parameters in rows}


def bound_arguments(step, arguments, keywords):
    """The arguments of a step by the names of its parameters, with the defaults; None where they do not fit."""
    parameters, arguments, keywords = signatures()[step].parameters, list(arguments), dict(keywords)
    bound = {}
    for parameter in parameters:
        if parameter.name.startswith("*"):
            bound[parameter.name], arguments = arguments, []
        elif parameter.name in keywords:
            bound[parameter.name] = keywords.pop(parameter.name)
        elif arguments:
            bound[parameter.name] = arguments.pop(0)
        elif parameter.default is REQUIRED:
            return None
        else:
            bound[parameter.name] = parameter.default
    return None if arguments or keywords else bound


def step_values(step, text):
    """The numbers of buffers, and the decision of a sampling step, that the text of a step states."""
    parameters = [p for p in signatures()[step].parameters if p.kind in ("READ", "WRITE") or p.name == "decision"]
    if not parameters:
        return {}
    statement = ast.parse(text).body[0]
    given = bound_arguments(step, statement.value.args, {k.arg: k.value for k in statement.value.keywords})
    return {p.name: ast.literal_eval(given[p.name]) for p in parameters if isinstance(given[p.name], ast.AST)}


# ---- Kinds of instructions ---------------------------------------------------------------------------

# The parameters that hold blocks and loops are inputs of an instruction. TVM's instructions have these
# ones for inputs, too; all others are attributes.
INPUTS = {"annotate": {"ann_val"}, "cache_read": {"consumer_blocks"}, "cache_write": {"consumer_blocks"},
          "reorder_block_iter_var": {"new_order"}, "split": {"factors"}, "loop_partition": {"factors"},
          "reindex_cache_read": {"index_map"}, "reindex_cache_write": {"index_map"},
          "transform_layout": {"index_map"},
          "annotate_buffer_access": {"buffer_index", "buf_type", "gen_new_ranges"}}
SPREAD = {"split": "factors", "loop_partition": "factors"}  # the items are inputs of their own
SLOTS = {"transform_layout", "reindex", "set_axis_separator"}  # a buffer is two attributes: number, kind
# The last parameters, which TVM's steps do not have: instructions have them up to the last one that is set.
BEYOND = {"rewrite_loops", "fill"}
NAMES = {"get_block": "GetSBlock", "reindex": "ReIndex", "rfactor": "RFactor",
         "unsafe_set_dtype": "UnsafeSetDType"}


class InstructionKind:
    """The step that an instruction makes; `name` is TVM's, such as "SamplePerfectTile"."""

    def __init__(self, step):
        self.step = step
        self.name = NAMES.get(step) or "".join(map(str.capitalize, step.split("_")))
        self.signature = signatures()[step]
        self._parameters = [p for p in self.signature.parameters if p.name != "decision"]

    @staticmethod
    def get(name):
        """The kind of this name: TVM's, or that of the method of Schedule. There is one object for each."""
        if name not in _kinds():
            raise ValueError(f"{name!r} is no kind of instruction")
        return _kinds()[name]

    def same_as(self, other):
        """Whether both are one kind."""
        return self is other

    @property
    def is_pure(self):
        """Whether the step leaves the program as it is."""
        return self.step.startswith(("get_", "sample_"))

    def __repr__(self):
        return self.name

    def _is_spread(self, parameter):
        return parameter.name.startswith("*") or SPREAD.get(self.step) == parameter.name

    def _is_input(self, parameter):
        return (parameter.kind in ("BLOCK", "LOOP", "TARGET", "NEST", "PART")
                or parameter.name in INPUTS.get(self.step, ()))

    def _divided(self, values):
        """The inputs and the attributes of a step whose arguments are `values`, by their names."""
        inputs, attrs = [], []
        parameters = list(self._parameters)
        while parameters and (last := parameters[-1]).name in BEYOND and values[last.name] == last.default:
            parameters.pop()
        for parameter in parameters:
            value = values[parameter.name]
            if self._is_spread(parameter):
                inputs += value or []
            elif self._is_input(parameter):
                inputs.append(value)
            elif parameter.kind == "SLOT" and self.step in SLOTS:
                attrs += [value[1], int(value[0] == "write")] if isinstance(value, tuple) else [value, None]
            else:
                attrs.append(value)
        return inputs, attrs

    def _joined(self, inputs, attrs):
        """The arguments of a step by their names: the inverse of _divided."""
        inputs, attrs, values = list(inputs), list(attrs), {}
        for parameter in self._parameters:
            if self._is_spread(parameter):
                values[parameter.name], inputs = inputs, []
            elif self._is_input(parameter):
                values[parameter.name] = self._next(inputs, parameter)
            elif parameter.kind == "SLOT" and self.step in SLOTS:
                number, is_write = self._next(attrs, parameter), self._next(attrs, parameter)
                values[parameter.name] = (number if is_write is None
                                          else ("write" if is_write else "read", number))
            elif attrs or parameter.name not in BEYOND:
                values[parameter.name] = self._next(attrs, parameter)
        if inputs or attrs:
            raise ValueError(f"{self.name} takes fewer inputs or attributes: {(inputs or attrs)[0]!r} is "
                             "left over")
        return values

    def _instruction(self, values, outputs):
        """The instruction with these arguments by their names."""
        return Instruction(self, *self._divided(values), outputs)

    def _next(self, values, parameter):
        if not values and parameter.default is REQUIRED:
            raise ValueError(f"{self.name} needs '{parameter.name}'")
        return values.pop(0) if values else parameter.default

    def _apply(self, schedule, values, decision):
        """Makes the step in a schedule; returns its results as a list."""
        many = [v for name, value in values.items() if name.startswith("*") for v in value]
        named = {name: value for name, value in values.items() if not name.startswith("*")}
        if decision is not None:
            named["decision"] = decision
        result = getattr(schedule, self.step)(*many, **named)
        return [] if result is None else result if isinstance(result, list) else [result]


@functools.cache
def _kinds():
    kinds = {step: InstructionKind(step) for step in signatures()}
    return {**kinds, **{kind.name: kind for kind in kinds.values()}, "GetBlock": kinds["get_block"],
            "get_sblock": kinds["get_block"]}


# ---- Instructions ------------------------------------------------------------------------------------

def _plain(value):
    """The Python value of a constant of a script or of a program; other values as they are."""
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, Value):
        constant = re.fullmatch(r"T\.\w+\((-?[\d.e+-]+|True|False)\)", value._text())
        return ast.literal_eval(constant[1]) if constant else value
    return value


def _float_text(value):
    return repr(float(value)) if math.isfinite(value) else f'float("{value}")'


def _map_text(index_map):
    """A lambda, or the map's text where a lambda would need other names, such as sizes, `select` or
    `AXIS_SEPARATOR`."""
    outputs, inputs = list(map(str, index_map.final_indices)), list(map(str, index_map.initial_indices))
    if index_map.axis_separators or {*re.findall(r"\b[A-Za-z_]\w*", " ".join(outputs))} - {*inputs}:
        return json.dumps(str(index_map))
    return f"lambda {', '.join(inputs)}: [{', '.join(outputs)}]"


class Instruction:
    """One step of a trace. `inputs` are the blocks, loops and numbers that the step gets, `attrs` its other
    arguments, both in TVM's order, and `outputs` what it returns."""

    def __init__(self, kind, inputs, attrs, outputs):
        self.kind, self.outputs = kind, list(outputs)
        self.inputs, self.attrs = [*map(_plain, inputs)], [*map(_plain, attrs)]
        kind._joined(self.inputs, self.attrs)

    def _text(self, name_of, decision=None):
        """The line of the trace, in which `name_of` names references."""
        values = self.kind._joined(self.inputs, self.attrs)
        if decision is not None:
            values["decision"] = decision
        parts = []
        for name, value in values.items():
            bare = name.startswith("*") or self.kind.step == "get_child_blocks"
            items = value if name.startswith("*") else [value]
            parts += [("" if bare else f"{name}=") + _text_of(item, name_of) for item in items]
        comma = "," if self.kind.signature.result.endswith("S") and len(self.outputs) == 1 else ""
        results = f"{', '.join(map(name_of, self.outputs))}{comma} = " if self.outputs else ""
        method = self.kind.step.replace("get_block", "get_sblock")
        return f"{results}sch.{method}({', '.join(parts)})"

    def same_as(self, other):
        """Whether both are one instruction."""
        return self is other

    def __repr__(self):
        return self._text(lambda _: "_")


def _is_reference(value):
    return isinstance(value, (Reference, ExprRV, Var))


def _text_of(value, name_of):
    """The text of an argument in Python."""
    if _is_reference(value):
        return name_of(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, IndexMap):
        return _map_text(value)
    if isinstance(value, (list, tuple)):
        items = ", ".join(_text_of(item, name_of) for item in value)
        return f"[{items}]" if isinstance(value, list) else f"({items})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text_of(k, name_of)}: {_text_of(v, name_of)}"
                               for k, v in value.items()) + "}"
    return str(value)


class _Names:
    """Names for what instructions return, in its order: b0, l1, l2, v3, …"""

    def __init__(self):
        self._names = {}

    def add(self, reference):
        """A name for a result of the next instruction."""
        letter = "b" if isinstance(reference, BlockRV) else "l" if isinstance(reference, LoopRV) else "v"
        if id(reference) in self._names:
            raise ValueError(f"{self(reference)} is the result of two instructions")
        self._names[id(reference)] = f"{letter}{len(self._names)}"
        return self(reference)

    def __call__(self, reference):
        if id(reference) not in self._names:
            raise IndexError(f"no instruction before returned {reference!r}")
        return self._names[id(reference)]


# ---- Traces ------------------------------------------------------------------------------------------

class Trace:
    """The steps of a schedule: `insts`, a list of instructions, and `decisions`, what the sampling steps
    among them drew. Its text, str(trace), is a function that makes the steps, and `pleat opt --schedule` reads it."""

    def __init__(self, insts, decisions=None, *, schedule=None):
        self.insts, self.decisions = list(insts), dict(decisions or {})
        self._schedule = schedule

    def get_decision(self, inst):
        """The decision of an instruction that draws; None for others."""
        return self.decisions.get(inst)

    def append(self, inst, decision=None):
        """Adds an instruction at the end."""
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self):
        """Removes the last instruction and returns it; None where there is none."""
        if not self.insts:
            return None
        self.decisions.pop(self.insts[-1], None)
        return self.insts.pop()

    def _kept(self, remove_postproc):
        """The instructions, up to the mark that enter_postproc made where remove_postproc is true."""
        return [*itertools.takewhile(
            lambda inst: not (remove_postproc and inst.kind.step == "enter_postproc"), self.insts)]

    def with_decision(self, inst, decision, remove_postproc=False):
        """The trace in which an instruction draws something else."""
        if inst not in self.insts:
            raise ValueError(f"`{inst}` is no instruction of this trace")
        return Trace(self._kept(remove_postproc), {**self.decisions, inst: decision})

    def simplified(self, remove_postproc=False):
        """The trace without queries and choices whose results no step uses."""
        used, kept = set(), []
        for inst in reversed(self._kept(remove_postproc)):
            if inst.kind.is_pure and not used & set(map(id, inst.outputs)):
                continue
            used |= set(map(id, _references([*inst.inputs, *inst.attrs])))
            kept.insert(0, inst)
        return Trace(kept, {inst: drawn for inst, drawn in self.decisions.items() if inst in kept})

    def as_python(self, remove_postproc=False):
        """The steps as lines of Python."""
        names, lines = _Names(), []
        for inst in self._kept(remove_postproc):
            inputs = {id(value): names(value) for value in _references([*inst.inputs, *inst.attrs])}
            results = {id(value): names.add(value) for value in inst.outputs}
            lines.append(inst._text(lambda value: {**inputs, **results}[id(value)], self.get_decision(inst)))
        return lines

    def __str__(self):
        lines = [f"  {line}" for line in self.as_python() or ["pass"]]
        imports = ["# from tvm.script import tir as T"] if any(" T." in line or "(T." in line for line in lines) else []
        return "\n".join([*imports, HEADING, *lines])

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Trace) and self.as_python() == other.as_python()

    __hash__ = None

    def show(self, style=None, black_format=None):
        """Prints the text of the trace. `style` and `black_format` change nothing."""
        print(self)

    def _in_form(self, form):
        if self._schedule is None:
            raise ValueError("the trace is not of a schedule: apply it to one")
        return self._schedule._trace_as(form)

    def by_axes(self):
        """The text of the trace with each transform_layout as steps on single axes (split_axis, fuse_axes,
        reorder_axes, pad_axis, swizzle_axes, separate_axis); a comment says where there are none. It has
        the steps that the schedule has now, on the function that it works on."""
        return self._in_form("axes")

    def by_maps(self):
        """The text of the trace with each run of steps on single axes of a buffer as one transform_layout."""
        return self._in_form("maps")

    def apply_to_schedule(self, sch, remove_postproc=False, decision_provider=None):
        """Makes the steps in another schedule. `decision_provider` gets each instruction, its inputs and
        attributes and what it drew or None, and returns what it is to draw instead."""
        made = {}
        for inst in self._kept(remove_postproc):
            inputs, attrs = (_replaced(values, made) for values in (inst.inputs, inst.attrs))
            decision = self.get_decision(inst)
            if decision_provider is not None:
                decision = decision_provider(inst, inputs, attrs, decision)
            results = inst.kind._apply(sch, inst.kind._joined(inputs, attrs), decision)
            if len(results) != len(inst.outputs):
                raise ValueError(f"`{inst}` returns {len(results)} here")
            made.update(zip(map(id, inst.outputs), results))

    # ---- JSON ----------------------------------------------------------------------------------------

    def as_json(self, remove_postproc=False):
        """The trace as TVM's lists: of [kind, inputs, attributes, outputs] and of [number, decision]. The
        names of outputs stand for blocks, loops and integers, and text among the inputs is in quotes. An index
        map is text such as "i, j -> j, i"."""
        names, insts, kept = _Names(), [], self._kept(remove_postproc)
        for inst in kept:
            inputs = [_input_as_json(value, names) for value in inst.inputs]
            attrs = [_attr_as_json(value) for value in inst.attrs]
            insts.append([inst.kind.name, inputs, attrs, list(map(names.add, inst.outputs))])
        return [insts, [[i, self.decisions[inst]] for i, inst in enumerate(kept) if inst in self.decisions]]

    @staticmethod
    def from_json(json_obj):
        """The trace that as_json wrote."""
        references = {"b": BlockRV, "l": LoopRV, "v": ExprRV}
        rows, decisions = _two_lists(json_obj)
        known, trace = {"None": None}, Trace([])
        for row in rows:
            if not (isinstance(row, list) and len(row) == 4):
                raise ValueError(f"an instruction is [kind, inputs, attributes, outputs], not {row!r}")
            kind = InstructionKind.get(row[0])
            inputs = [_input_from_json(value, known) for value in row[1]]
            outputs = [references.get(name[:1], ExprRV)() for name in row[3]]
            known.update(zip(row[3], outputs))
            trace.append(Instruction(kind, inputs, row[2], outputs))
        trace.decisions = {trace.insts[number]: decision for number, decision in decisions}
        return trace

    @staticmethod
    def apply_json_to_schedule(json_obj, sch):
        """Makes the steps that as_json wrote in another schedule."""
        Trace.from_json(json_obj).apply_to_schedule(sch)


def _two_lists(json_obj):
    is_pair = isinstance(json_obj, (list, tuple)) and len(json_obj) == 2
    if not is_pair or not all(isinstance(part, (list, tuple)) for part in json_obj):
        raise ValueError(f"a trace is a list of instructions and one of decisions, not {json_obj!r}")
    return json_obj


def _input_as_json(value, names):
    if _is_reference(value):
        return names(value)
    if isinstance(value, (list, tuple)):
        return [_input_as_json(item, names) for item in value]
    if value is None:
        return "None"
    return f'"{value}"' if isinstance(value, (str, IndexMap)) else value


def _input_from_json(value, known):
    if isinstance(value, (list, tuple)):
        return [_input_from_json(item, known) for item in value]
    if not isinstance(value, str):
        return value
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1]
    if value not in known:
        raise ValueError(f"no instruction before returned {value!r}")
    return known[value]


def _attr_as_json(value):
    if isinstance(value, (list, tuple)):
        return [_attr_as_json(item) for item in value]
    return str(value) if isinstance(value, IndexMap) else value


def _references(value):
    """The blocks, loops and integers of a schedule in a list of arguments."""
    if _is_reference(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _references(item)


def _replaced(value, made):
    """An argument with the results of the steps that were made for those of the trace's instructions."""
    if _is_reference(value):
        if id(value) not in made:
            raise IndexError(f"no instruction before returned {value!r}")
        return made[id(value)]
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(item, made) for item in value)
    return value
