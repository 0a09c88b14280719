# SPDX-License-Identifier: Apache-2.0
"""Parts of graph functions as functions of their own, for other generators of code:

    patterns = [("npu.conv2d_relu", is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(wildcard(), wildcard())))]
    module = FuseOpsByPattern(patterns)(module)     # private functions with the attribute "Composite"
    module = MergeCompositeFunctions()(module)      # functions with the attribute "Codegen" around these
    module = RunCodegen()(module)                   # calls of what the generator of code gives

A part is taken only in a dataflow block, and only where its results, computed at one place, are available to all
that use them."""
import dataclasses
import re

from pleat._library import PleatError
from pleat.ir._module import Function
from pleat.ir.transform import Pass
from pleat.relax.dpl.pattern import CallPattern, Matching, TupleGetItemPattern, TuplePattern, type_of
from pleat.relax.expr import Call, GlobalVar, TensorStructInfo, Tuple, Var
from pleat.relax.graph_text import Bound, GraphText, used_by
from pleat.relax.nodes import Constant, ShapeStructInfo, TupleGetItem, TupleStructInfo
from pleat.registry import get_global_func, register_func
from pleat.script._values import Value, free_name, text_of

__all__ = ["FuseOpsByPattern", "FusionPattern", "MergeCompositeFunctions", "PatternCheckContext", "RunCodegen"]


@dataclasses.dataclass
class FusionPattern:
    """A pattern by its name, whose part before the dot names the generator of code.

    annotation_patterns: parts of the pattern by names; check: a function of a PatternCheckContext that says
    whether what the pattern matches is taken; attrs_getter: a function of annotation_patterns' expressions that
    gives further attributes"""
    name: str
    pattern: object
    annotation_patterns: dict = None
    check: object = None
    attrs_getter: object = None


@dataclasses.dataclass
class PatternCheckContext:
    """The match of a pattern: the expression, the expressions by the names of annotation_patterns, the
    variables of the part with their values, the users of each variable of the function, and the variables by their
    values' identities."""
    matched_expr: object
    annotated_expr: dict
    matched_bindings: dict
    var_usages: dict
    value_to_bound_var: dict


def _extents(info):
    """The extents of the type of a tensor or a shape, or of those in that of a tuple."""
    if isinstance(info, TupleStructInfo):
        return [extent for one in info.fields for extent in _extents(one)]
    if isinstance(info, ShapeStructInfo):
        return info.values or []
    return (isinstance(info, TensorStructInfo) and info.shape) or []


class _Part:
    """Bindings of one block that become a function. `inputs` and `outputs` are variables, and `sizes` the other names
    that they read."""

    def __init__(self, text, block, members):
        self.block = block
        self.members = [bound for bound in block.bindings if bound in members]
        own = {bound.var.name_hint for bound in self.members}
        used = dict.fromkeys(name for bound in self.members for name in bound.uses())
        variables = {one.name_hint: one for one in (*text.params, *(bound.var for bound in text.bindings))}
        self.inputs = [variables[name] for name in used if name in variables and name not in own]
        self.sizes = [name for name in used if name not in variables]
        outside = set(used_by(text.result)) | {
            name for one in text.bindings if one not in self.members for name in one.uses()}
        self.outputs = [bound.var for bound in reversed(self.members) if bound.var.name_hint in outside]

    def is_apart(self):
        """Is there no way from the part through other bindings back into it?"""
        own = {bound.var.name_hint for bound in self.members}
        after, bindings = set(), self.block.bindings
        for bound in bindings[bindings.index(self.members[0]):bindings.index(self.members[-1]) + 1]:
            used = bound.uses()
            if bound in self.members:
                if after & set(used):
                    return False
            elif own & set(used) or after & set(used):
                after.add(bound.var.name_hint)
        return True

    def is_closed(self):
        """Has it results, and are the types of its inputs known, with extents that are the sizes that it names?"""
        types = [type_of(one) for one in self.inputs]
        extents = [str(extent) for one in types for extent in _extents(one)]
        named = {name for extent in extents for name in re.findall(r"[A-Za-z_]\w*", extent)} | set(self.sizes)
        return all(one is not None for one in types) and named <= {*extents, "R", "T", "int64", "cls"} and \
            self.outputs != []


def _annotation(var):
    info = type_of(var)
    return info.annotation() if isinstance(info, (TensorStructInfo, ShapeStructInfo)) else text_of(info)


def _definition(name, part, attrs, decorator="@R.function(private=True)"):
    """The lines of the function of a part."""
    params = ", ".join(f"{one.name_hint}: {_annotation(one)}" for one in part.inputs)
    outputs = [one.name_hint for one in part.outputs]
    result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    sizes = [f"    {name} = T.int64()" for name in part.sizes if name not in ("R", "T", "cls")]
    body = [f"        {line}" for bound in part.members for line in bound.text(typed=True)]
    return [decorator, f"def {name}({params}):", f"    R.func_attr({text_of(attrs)})", *sizes,
            "    with R.dataflow():", *body, f"        R.output({', '.join(outputs)})", f"    return {result}"]


def _around(name, inner, part, attrs):
    """The lines of a function that calls local functions. inner: the lines of the body and the text of its
    result"""
    params = ", ".join(f"{one.name_hint}: {_annotation(one)}" for one in part.inputs)
    lines, result = inner
    return ["@R.function", f"def {name}({params}):", f"    R.func_attr({text_of(attrs)})",
            *(f"    {name} = T.int64()" for name in part.sizes if name not in ("R", "T", "cls")),
            *(f"    {line}" for line in lines), f"    return {result}"]


def _local_name(hint, part):
    """A name for a local function that the variables of a part do not have."""
    taken = {one.name_hint for one in (*part.inputs, *(bound.var for bound in part.members))}
    return free_name(hint, taken.__contains__)


def _call(text, part, name):
    """Puts the call of a function in the place of a part."""
    call = Call(GlobalVar(name), part.inputs)
    at = part.block.bindings.index(part.members[-1])
    if len(part.outputs) == 1:
        made = [Bound(part.outputs[0], call)]
    else:
        var = Var(text.free_name("lv"), TupleStructInfo([type_of(one) for one in part.outputs]))
        made = [Bound(var, call), *(Bound(one, TupleGetItem(var, i)) for i, one in enumerate(part.outputs))]
    part.block.bindings[at:at + 1] = made
    part.block.bindings = [bound for bound in part.block.bindings if bound not in part.members]
    inside = {bound.var.name_hint for bound in part.members} - {one.name_hint for one in part.outputs}
    part.block.outputs = [one for one in part.block.outputs if one not in inside]
    text.sort(part.block)


# ---- FuseOpsByPattern -----------------------------------------------------------------------------

def _operator_name(value):
    if not isinstance(value, Call):
        return None
    name = value.args[0] if str(value.op) == "relax.call_tir" else value.op
    return re.sub(r"\W", "_", str(name))


def _members(attempt, block, values):
    """The bindings of a block whose values are what patterns of calls and tuples have matched. What a wildcard has
    matched is an input."""
    exprs = {id(expr) for one, expr in attempt.found.items()
             if isinstance(one, (CallPattern, TuplePattern, TupleGetItemPattern))}
    return [bound for bound in block.bindings if bound.var in values and id(bound.value) in exprs
            and isinstance(bound.value, (Call, Tuple, TupleGetItem))]


def _is_dataflow(block):
    return block.outputs is not None


class _Fuser:
    def __init__(self, module, name, bind_constants, annotate_codegen):
        self.text = GraphText(module, name, typed=True)
        self.bind_constants, self.annotate_codegen = bind_constants, annotate_codegen
        self.taken, self.count = set(), 0

    def run(self, patterns):
        """The module with the parts as functions, or None where there are none."""
        found, values = [], self.text.values()
        for one in patterns:
            for block in filter(_is_dataflow, self.text.blocks):
                for bound in reversed(block.bindings):  # so that a larger match comes before one in it
                    found += self.matched(one, block, bound, values)
        for one, block, members, attempt in sorted(found, key=self.place):
            part = _Part(self.text, block, members)
            if part.is_apart() and part.is_closed():  # other parts may be around it now
                self.take(one, part, attempt)
        return self.text.module() if self.count else None

    def place(self, match):
        return self.text.bindings.index(match[2][0])

    def matched(self, one, block, bound, values):
        """The match at a binding as a list: the pattern, the block, the bindings and the expressions."""
        attempt = Matching(values)
        if bound.var not in values or not isinstance(bound.value, Call) or not attempt.match(one.pattern, bound.value):
            return []
        members = _members(attempt, block, values)
        if bound not in members or any(id(member) in self.taken for member in members):
            return []
        part = _Part(self.text, block, members)
        if not (part.is_apart() and part.is_closed() and self.is_wanted(one, part, attempt, bound)):
            return []
        self.taken |= set(map(id, members))
        return [(one, block, part.members, attempt)]

    def is_wanted(self, one, part, attempt, bound):
        if one.check is None:
            return True
        usages = {}
        for user in self.text.bindings:
            for name in user.uses():
                usages.setdefault(name, []).append(user.var)
        return one.check(PatternCheckContext(
            bound.value, self.annotated(one, attempt), {m.var: m.value for m in part.members},
            {b.var: usages.get(b.var.name_hint, []) for b in self.text.bindings},
            _ByIdentity((b.value, b.var) for b in self.text.bindings)))

    def annotated(self, one, attempt):
        return {name: attempt.found[pattern] for name, pattern in (one.annotation_patterns or {}).items()
                if pattern in attempt.found}

    def take(self, one, part, attempt):
        """Makes a function of a part, and calls it."""
        name = "fused_" + "_".join(filter(None, (_operator_name(bound.value) for bound in part.members)))
        attrs = {"Composite": one.name}
        if one.attrs_getter is not None:
            attrs |= one.attrs_getter(self.annotated(one, attempt))
        constants = [] if self.bind_constants else self.lift_constants(part)
        if self.annotate_codegen:
            local = _local_name("composite", part)
            inner = _definition(local, part, attrs, "@R.function")
            call = f"result = {local}({', '.join(v.name_hint for v in part.inputs)})"
            codegen = one.name.partition(".")[0]
            lines = _around("NAME", ([*inner, call], "result"), part, {"Codegen": codegen, "global_symbol": "NAME"})
            name = f"{name}_{codegen}"
        else:
            lines = _definition("NAME", part, {"Primitive": True, **attrs})
        name = self.text.add_function(name, lines)
        given = {id(var): value for var, value in constants}
        part_inputs = part.inputs
        part.inputs = [given.get(id(var), var) for var in part_inputs]
        _call(self.text, part, name)
        self.count += 1

    def lift_constants(self, part):
        """Makes inputs of the constants in a part; returns the pairs of the new variables and the constants."""
        pairs = []

        def lifted(value):
            if isinstance(value, Constant):
                var = Var(self.text.free_name("param"), TensorStructInfo(value.data.shape, str(value.data.dtype)))
                pairs.append((var, value))
                return var
            return Tuple(map(lifted, value.fields)) if isinstance(value, Tuple) else value
        for bound in part.members:
            if isinstance(bound.value, Call) and any(isinstance(a, (Constant, Tuple)) for a in bound.value.args):
                before = len(pairs)
                args = list(map(lifted, bound.value.args))
                if len(pairs) > before:
                    call = Call(bound.value.op, args, bound.value.attrs)
                    call.bound_to, bound.value, bound.lines = bound.var, call, None
        part.inputs = [*part.inputs, *(var for var, _ in pairs)]
        return pairs


class _ByIdentity(dict):
    """Values of variables by their identities, so that an expression is a key."""

    def __init__(self, pairs):
        super().__init__((id(value), var) for value, var in pairs)

    def __getitem__(self, value):
        return super().__getitem__(id(value))

    def __contains__(self, value):
        return super().__contains__(id(value))

    def get(self, value, default=None):
        return super().get(id(value), default)


def _is_open(function):
    """Is it a graph function of the user, and not a part for a generator of code?"""
    return isinstance(function, Function) and not {"Composite", "Codegen", "Primitive"} & set(function.attrs)


def FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False, entry_functions=None):
    """Makes private functions, with the attribute "Composite", of what patterns match; earlier patterns come first.

    patterns: FusionPatterns, or tuples of their first fields
    bind_constants: constants stay in these functions, else they are operands of the calls
    annotate_codegen: also makes a function with the attribute "Codegen" around each of them
    entry_functions: the names of the functions that are changed, without which all are"""
    def run(module, _):
        rules = [one if isinstance(one, FusionPattern) else FusionPattern(*one) for one in patterns]
        for name in [str(name) for name, function in module.items() if _is_open(function)]:
            if entry_functions is None or name in entry_functions:
                module = _Fuser(module, name, bind_constants, annotate_codegen).run(rules) or module
        return module
    return Pass("FuseOpsByPattern", run)


# ---- MergeCompositeFunctions ----------------------------------------------------------------------

def _composites(module):
    """The functions of parts, and the generator of code of each."""
    return {str(name): str(function.attrs["Composite"]).partition(".")[0] for name, function in module.items()
            if isinstance(function, Function) and "Composite" in function.attrs}


def _groups(text, block, compilers):
    """Lists of the bindings that call parts of one generator of code and become one function."""
    groups = []
    for bound in block.bindings:
        name = str(bound.value.op) if isinstance(bound.value, Call) else None
        if name not in compilers:
            continue
        group = [bound]
        for other in [one for one in groups if compilers[str(one[0].value.op)] == compilers[name]]:
            near = {member.var.name_hint for member in other} & {n for m in group for n in m.uses()}
            whole = _Part(text, block, other + group)
            if near and whole.is_apart() and whole.is_closed():
                groups.remove(other)
                group = other + group
        groups.append(group)
    return groups


def _local(name, definition):
    """The lines of a function as a local one of another name."""
    lines = [re.sub(r"^def \w+\(", f"def {name}(", line) for line in definition]
    return ["@R.function", *(re.sub('"Primitive": True, |, "Primitive": True', "", line) for line in lines[1:])]


def _merge(text, group, block, compilers):
    part = _Part(text, block, group)
    names = [str(bound.value.op) for bound in part.members]
    lines = []
    for i, bound in enumerate(part.members):
        definition = text.definition(names[i])
        local = _local_name(f"composite{i}", part)
        lines += _local(local, definition)
        lines.append(f"{bound.var.name_hint} = {local}({', '.join(map(text_of, bound.value.args))})")
    outputs = [one.name_hint for one in part.outputs]
    result = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    base = "fused_" + "_".join(name.removeprefix("fused_") for name in names) + f"_{compilers[names[0]]}"
    _call(text, part, text.add_function(base, _around("NAME", (lines, result), part,
                                                      {"Codegen": compilers[names[0]]})))


def MergeCompositeFunctions():
    """Makes functions with the attribute "Codegen" of calls of parts for the same generator of code that use one
    another; the parts become local functions of them."""
    def run(module, _):
        compilers = _composites(module)
        for name in [str(name) for name, function in module.items() if _is_open(function)]:
            text = GraphText(module, name, typed=True)
            for block in filter(_is_dataflow, text.blocks):
                for group in _groups(text, block, compilers):
                    if _Part(text, block, group).is_apart():  # other groups may be around it now
                        _merge(text, group, block, compilers)
            module = text.module() if text.added else module
        used = module.script()
        for name in compilers:
            if f"cls.{name}(" not in used:
                del module[name]
        return module
    return Pass("MergeCompositeFunctions", run)


# ---- RunCodegen -----------------------------------------------------------------------------------

def RunCodegen(target_options=None, entry_functions=None):
    """Calls the generators of code, which are functions registered as "relax.ext.NAME", and puts calls of what
    they give in the place of the functions with the attribute "Codegen".

    A generator is called with a list of functions (relax.Function), the options of its name in target_options, and
    a dictionary. It gives a list with a callable for each of them: a function of Python, or a module of
    pleat.build. These are called with the arrays of the operands and then of the results, which they write."""
    options = target_options or {}

    def run(module, _):
        wanted, symbols = {}, {}
        for name, function in module.items():
            if isinstance(function, Function) and "Codegen" in function.attrs:
                wanted.setdefault(str(function.attrs["Codegen"]), []).append(str(name))
        for codegen, names in wanted.items():
            generator = get_global_func(f"relax.ext.{codegen}", allow_missing=True)
            if generator is None:
                raise PleatError(f"there is no generator of code '{codegen}', which {names[0]} asks for: register a "
                                 f"function 'relax.ext.{codegen}' (pleat.register_func)")
            made = list(generator([module[name] for name in names], options.get(codegen, {}), {}))
            if len(made) != len(names) or not all(map(callable, made)):
                raise PleatError(f"'relax.ext.{codegen}' gave {made!r}, expected a callable for each of "
                                 f"{', '.join(names)}")
            symbols |= {name: _registered(name, one) for name, one in zip(names, made)}
        return _called_outside(module, symbols)
    return Pass("RunCodegen", run)


def _registered(name, function):
    """Registers a function under this name, or one like it: another module may call the one of this name."""
    free = free_name(name, lambda one: get_global_func(one, allow_missing=True) is not None)
    register_func(free, function)
    return free


def _called_outside(module, symbols):
    """The module with calls of functions outside, by their names, in the place of those of functions, which are
    removed."""
    for name in [str(name) for name, function in module.items() if _is_open(function)] if symbols else []:
        text, changed = GraphText(module, name), 0
        for bound in text.bindings:
            value = bound.value
            if isinstance(value, Call) and str(value.op) in symbols and not str(value.op).startswith("relax."):
                info = type_of(bound.var)
                if info is None:
                    raise PleatError(f"the type of '{bound.var.name_hint}' is not known")
                stated = list(info.fields) if isinstance(info, TupleStructInfo) else info
                bound.value = Value("R.call_dps_packed")(symbols[str(value.op)], tuple(value.args), out_sinfo=stated)
                bound.lines, changed = None, changed + 1
        module = text.module() if changed else module
    module = module.clone()
    for name in symbols:
        del module[name]
    return module

