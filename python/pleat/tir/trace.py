# SPDX-License-Identifier: Apache-2.0
"""The trace of a schedule: its steps as text, and as instructions."""
import ast
import functools
import keyword
import re

from pleat.script._values import text_of


class InstructionKind:
    """The step that an instruction makes; `name` is TVM's, such as "SamplePerfectTile"."""

    _known = {}

    def __init__(self, step):
        self.step = step
        self.name = "GetSBlock" if step == "get_block" else "".join(map(str.capitalize, step.split("_")))

    @staticmethod
    def get(name):
        """The kind of this name: TVM's, or that of the method of Schedule. There is one object for each."""
        from pleat.tir.schedule import LISTS, OTHERS, SINGLE
        step = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace("SBlock", "Block")).lower()
        step = step.replace("sblock", "block")
        if step not in {*LISTS, *OTHERS, *SINGLE}:
            raise ValueError(f"{name!r} is no kind of instruction")
        return InstructionKind._known.setdefault(step, InstructionKind(step))

    def same_as(self, other):
        """Whether both are one kind."""
        return self is other

    @property
    def is_pure(self):
        """Whether the step leaves the program as it is."""
        return self.step.startswith(("get_", "sample_"))

    def __repr__(self):
        return self.name


class _Code:
    """An argument that is no constant, by its text."""

    def __init__(self, text):
        self.text = text

    def __script__(self):
        return self.text

    __repr__ = __script__


class Instruction:
    """One step of a trace.

    `inputs` are the names of the blocks, loops and integers that the step gets, `attrs` its other arguments in their
    order, and `outputs` the names of its results. An instruction that is made of these passes the inputs first. For
    a name there may be a reference such as BlockRV(), which gets a name in the trace. Instructions are equal where
    their texts are, since one trace has a name only once for a result."""

    def __init__(self, kind, inputs, attrs, outputs):
        self.kind, self.inputs, self.attrs, self.outputs = kind, list(inputs), list(attrs), list(outputs)
        attrs = self.attrs[:1] if kind.step == "get_block" else self.attrs  # TVM names the function, too
        self._arguments = [*self.inputs, *map(text_of, attrs)]
        self._keywords, self._unpacked = {}, len(self.outputs) > 1

    @classmethod
    def _read(cls, line):
        """The instruction of a line of a trace, and its decision or None."""
        step = _read_step(line)
        decision = step["keywords"].pop("decision", None)
        texts = [*step["arguments"], *step["keywords"].values()]
        inputs = [text for text in texts if text.isidentifier() and not keyword.iskeyword(text)]
        attrs = [_constant(text) for text in texts if text not in inputs]
        made = cls(InstructionKind.get(step["step"]), inputs, attrs, step["results"])
        made._arguments, made._keywords = step["arguments"], step["keywords"]
        made._unpacked = step["unpacked"]
        return made, None if decision is None else _constant(decision)

    def _text(self, decision=None, name_of=lambda _: "_"):
        """The line of the trace, in which `name_of` names the references."""
        keywords = self._keywords if decision is None else {**self._keywords, "decision": text_of(decision)}
        arguments, results = ([name if isinstance(name, str) else name_of(name) for name in names]
                              for names in (self._arguments, self.outputs))
        return _step_text({"step": self.kind.step, "arguments": arguments, "keywords": keywords,
                           "results": results, "unpacked": self._unpacked})

    def same_as(self, other):
        """Whether both are one instruction."""
        return self is other

    def _is_named(self):
        return all(isinstance(name, str) for name in (*self.inputs, *self.outputs))

    def __eq__(self, other):
        if not isinstance(other, Instruction) or not (self._is_named() and other._is_named()):
            return self is other
        return self._text() == other._text()

    def __hash__(self):
        return hash(self._text())

    def __repr__(self):
        return self._text()


class _Names:
    """Names for references, in the order in which they are met: b0, b1, … for blocks, l0, … for loops, v0, … for
    integers."""

    def __init__(self):
        self._names, self._counts = {}, {}

    def __call__(self, reference):
        if id(reference) not in self._names:
            letter = {"BlockRV": "b", "LoopRV": "l"}.get(type(reference).__name__, "v")
            number = self._counts[letter] = self._counts.get(letter, -1) + 1
            self._names[id(reference)] = f"{letter}{number}"
        return self._names[id(reference)]


class Trace(str):
    """The steps of a schedule as text, one step a line. A trace does not change: `Trace(insts, decisions)` makes one
    of instructions, such as `Trace(trace.insts[:-1], trace.decisions)`."""

    def __new__(cls, insts, decisions=None, *, schedule=None):
        pairs = None
        if not isinstance(insts, str):
            pairs, names = [(inst, (decisions or {}).get(inst)) for inst in insts], _Names()
            insts = "".join(f"{inst._text(decision, names)}\n" for inst, decision in pairs)
        trace = super().__new__(cls, insts)
        trace._schedule, trace._read = schedule, pairs
        return trace

    def _instructions(self):
        """The instructions with their decisions, the same objects each time."""
        if self._read is None:
            self._read = [Instruction._read(line) for line in self.splitlines() if not line.startswith("#")]
        return self._read

    @property
    def insts(self):
        """The instructions in their order."""
        return [inst for inst, _ in self._instructions()]

    @property
    def decisions(self):
        """The results of the sampling steps, by their instructions."""
        return {inst: decision for inst, decision in self._instructions() if decision is not None}

    def get_decision(self, inst):
        """The result that an instruction of the trace drew; None where it draws nothing."""
        return self.decisions.get(inst)

    def with_decision(self, inst, decision, remove_postproc=False):
        """The trace in which an instruction draws something else."""
        if inst not in self.insts:
            raise ValueError(f"`{inst}` is no instruction of this trace")
        trace = Trace(self.insts, {**self.decisions, inst: decision})
        return trace._without_postproc() if remove_postproc else trace

    def append(self, inst, decision=None):
        """Refused, since a trace does not change."""
        raise TypeError("a trace does not change; Trace([*trace.insts, inst], trace.decisions) makes one")

    def pop(self):
        """Refused, since a trace does not change."""
        raise TypeError("a trace does not change; Trace(trace.insts[:-1], trace.decisions) makes one")

    def _in_form(self, form):
        if self._schedule is None:
            raise ValueError("the trace is not of a schedule: apply it to one")
        return self._schedule._trace_as(form)

    def by_axes(self):
        """The trace with each transform_layout as steps on single axes (split_axis, fuse_axes,
        reorder_axes, pad_axis, swizzle_axes, separate_axis); a comment says where there are none.
        It has the steps that the schedule has now."""
        return self._in_form("axes")

    def by_maps(self):
        """The trace with each run of steps on single axes of a buffer as one transform_layout."""
        return self._in_form("maps")

    def _without_postproc(self):
        """The trace up to the mark that enter_postproc made."""
        kept = []
        for line in self.splitlines():
            if line == "sch.enter_postproc()":
                break
            kept.append(line)
        return Trace("".join(f"{line}\n" for line in kept))

    def as_python(self, remove_postproc=False):
        """The steps, a list of lines."""
        return (self._without_postproc() if remove_postproc else self).splitlines()

    def show(self):
        """Prints the steps."""
        print(self, end="")

    def simplified(self, remove_postproc=False):
        """The trace without queries and choices whose results no step uses; with remove_postproc, up
        to the mark that enter_postproc made."""
        used, kept = set(), []
        for line in reversed(self.as_python(remove_postproc)):
            step = _read_step(line)
            if step["step"].startswith(("get_", "sample_")) and not used & {*step["results"]}:
                continue
            used |= {n.id for n in ast.walk(ast.parse(line)) if isinstance(n, ast.Name)}
            kept.append(line)
        return Trace("".join(f"{line}\n" for line in reversed(kept)))

    def as_json(self, remove_postproc=False):
        """The steps as lists, dictionaries and strings, which apply_json_to_schedule takes. They are
        not those of TVM's traces."""
        return [_read_step(line) for line in self.as_python(remove_postproc) if not line.startswith("#")]

    @staticmethod
    def from_json(json_obj):
        """The trace that as_json wrote."""
        return Trace("".join(f"{_step_text(step)}\n" for step in json_obj))

    @staticmethod
    def apply_json_to_schedule(json_obj, sch):
        """Makes the steps that as_json wrote in another schedule."""
        Trace.from_json(json_obj).apply_to_schedule(sch)

    def apply_to_schedule(self, sch, remove_postproc=False, decision_provider=None):
        """Makes the steps in another schedule. `decision_provider` gets each instruction that drew something, its
        inputs, its attrs and what it drew, and returns what it is to draw instead."""
        trace = self.simplified(remove_postproc=True) if remove_postproc else self
        if decision_provider is not None:
            trace = Trace(trace.insts, {inst: decision_provider(inst, inst.inputs, inst.attrs, drawn)
                                        for inst, drawn in trace.decisions.items()})
        for line in trace.splitlines():
            sch._record("_run", line, "trace", 1)


def _constant(text):
    """The value of a constant expression; the text of another one."""
    try:
        return ast.literal_eval(text)
    except ValueError:
        return _Code(text)


def _read_step(line):
    """One line of a trace by its parts, each the text of an expression."""
    statement = ast.parse(line).body[0]
    targets = statement.targets[0] if isinstance(statement, ast.Assign) else ast.List([])
    names = targets.elts if isinstance(targets, (ast.Tuple, ast.List)) else [targets]
    call, text = statement.value, functools.partial(ast.get_source_segment, line)
    return {"step": call.func.attr, "arguments": [text(a) for a in call.args],
            "keywords": {k.arg: text(k.value) for k in call.keywords},
            "results": [ast.unparse(n) for n in names],
            "unpacked": isinstance(targets, ast.Tuple)}


def _step_text(step):
    parts = [*step["arguments"], *(f"{k}={v}" for k, v in step["keywords"].items())]
    comma = "," if step["unpacked"] and len(step["results"]) == 1 else ""
    results = f"{', '.join(step['results'])}{comma} = " if step["results"] else ""
    return f"{results}sch.{step['step']}({', '.join(parts)})"
