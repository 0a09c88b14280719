# SPDX-License-Identifier: Apache-2.0
"""The functions of the dialect T inside of `with IRBuilder()`. The table says how the call of a name
stands in a program; all other names are expressions, as in pleat.script.tir."""
from pleat._library import PleatError
from pleat.script._values import Value, text_of
from pleat.script.ir_builder._builder import Branch, Frame, Function, IRBuilder, Named, innermost

LOOPS = ("serial", "parallel", "vectorized", "unroll", "thread_binding")
WITHS = {"block": None, "sblock": None, "init": None, "attr": None, "Assert": None, "realize": None,
         "LetStmt": "v", "Let": "v", "launch_thread": "v"}
DEFINITIONS = {"match_buffer": "buffer", "alloc_buffer": "buffer", "sblock_alloc_buffer": "buffer",
               "decl_buffer": "buffer", "allocate": "buffer", "allocate_const": "buffer",
               "env_thread": "v", "bind": "v"}
STATEMENTS = ("evaluate", "buffer_store", "where", "reads", "writes", "block_attr", "sblock_attr")
AXES = ("spatial", "reduce", "scan", "opaque", "S", "R", "O")
DTYPES = ("int", "uint", "float", "bfloat", "bool", "handle", "boolean")


def _call(name, args, keywords):
    """The text of a call, as a function: names may change until it is used."""
    value = Value(f"T.{name}")(*args, **keywords)
    return lambda: text_of(value)


def _loop(name):
    def make(*args, **keywords):
        variable, call = Named("v"), _call(name, args, keywords)
        return Frame(lambda: f"for {variable!r} in {call()}:", variable)
    return make


def grid(*extents):
    """Nested loops, one for each extent."""
    variables, call = [Named("v") for _ in extents], _call("grid", extents, {})
    return Frame(lambda: f"for {', '.join(map(repr, variables))} in {call()}:", variables)


def _with(name, named):
    def make(*args, **keywords):
        call = _call(name, args, keywords)
        if named is None:
            return Frame(lambda: f"with {call()}:")
        variable = Named(named)
        return Frame(lambda: f"with {call()} as {variable!r}:", variable)
    return make


def _definition(name, named):
    def make(*args, **keywords):
        variable, call = Named(keywords.pop("name", None) or named), _call(name, args, keywords)
        IRBuilder.current()._lines.add(lambda: f"{variable!r} = {call()}")
        return variable
    return make


def _statement(name):
    def make(*args, **keywords):
        IRBuilder.current()._lines.add(_call(name, args, keywords))
    return make


class Axis:
    """T.axis: the variables of a block."""

    def __getattr__(self, name):
        if name not in AXES:
            raise AttributeError(f"T.axis has no {name!r}")
        return _definition(f"axis.{name}", "v")

    @staticmethod
    def remap(kinds, bindings, dtype="int32"):
        variables = [Named("v") for _ in kinds]
        call = _call("axis.remap", (kinds, bindings), {})
        IRBuilder.current()._lines.add(
            lambda: f"{', '.join(map(repr, variables))}{',' if len(kinds) == 1 else ''} = {call()}")
        return variables if len(variables) > 1 else variables[0]


def If(condition):
    """A branch; it holds `with T.Then():` and, perhaps, `with T.Else():`."""
    return Branch(condition)


def Then():
    condition = innermost(Branch, "T.Then").condition
    return Frame(lambda: f"if {text_of(condition)}:")


def Else():
    innermost(Branch, "T.Else")
    return Frame(lambda: "else:")


def While(condition):
    return Frame(lambda: f"while {text_of(condition)}:")


def arg(name, obj):
    """A parameter: obj is T.handle(), T.int64(), T.Buffer(…) or another type of a parameter."""
    if not isinstance(obj, Named) or obj._declaration is None:
        raise PleatError(f"T.arg: '{name}' is {obj!r}, expected T.Buffer(…), T.handle() or a type")
    obj._name = name
    innermost(Function, "T.arg").parameters.append((obj, obj._declaration))
    return obj


def func_name(name):
    innermost(Function, "T.func_name").name = name


def func_attr(attrs):
    innermost(Function, "T.func_attr").attributes.update(attrs)


def func_ret(ret_type):
    text = ret_type if isinstance(ret_type, str) else str(getattr(ret_type, "dtype", ret_type))
    innermost(Function, "T.func_ret").result = text if "T." in text else f"T.{text}"


class meta_var:  # noqa: N801
    """A value of Python, which is `value`; several are unpacked."""

    def __init__(self, value):
        self.value = value

    def __iter__(self):
        return map(meta_var, self.value)

    def __script__(self):
        return text_of(self.value)


def Buffer(*args, **keywords):
    """A buffer that nothing in the program defines: a parameter, where T.arg takes it."""
    return Named(keywords.pop("name", None) or "buffer", _call("Buffer", args, keywords))


def _typed(name):
    """T.int32() is a variable, and T.int32(5) a number."""
    def make(*args, **keywords):
        if args and not (name == "handle" and all(isinstance(one, str) for one in args)):
            return Value(f"T.{name}")(*args, **keywords)
        call = _call(name, args, {key: v for key, v in keywords.items() if key != "is_size_var"})
        return Named("v", lambda: call().removesuffix("()"))
    return make


OWN = {"Buffer": Buffer, "Else": Else, "If": If, "Then": Then, "While": While, "arg": arg,
       "axis": Axis(), "func_attr": func_attr, "func_name": func_name, "func_ret": func_ret,
       "grid": grid, "meta_var": meta_var}


def named(name, dialect):
    """The function or expression that T.NAME is."""
    if name == "prim_func":
        return lambda is_private=False, private=False, **options: Function(
            ", ".join([f"private={is_private or private}"]
                      + [f"{key}={value}" for key, value in options.items()]), dialect)
    if name in OWN:
        return OWN[name]
    if name in LOOPS:
        return _loop(name)
    if name in WITHS:
        return _with(name, WITHS[name])
    if name in DEFINITIONS:
        return _definition(name, DEFINITIONS[name])
    if name in STATEMENTS:
        return _statement(name)
    if name.rstrip("0123456789") in DTYPES or name.startswith(("float8", "float4", "float6")):
        return _typed(name)
    return Value(f"T.{name}")
