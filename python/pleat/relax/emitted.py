# SPDX-License-Identifier: Apache-2.0
"""Tensor programs that functions of te.Tensors make: emit_te of BlockBuilder and of scripts."""
import ast
import re
from types import SimpleNamespace

from pleat.ir._module import IRModule
from pleat.relax.expr import TensorStructInfo
from pleat.script._values import Value, text_of
from pleat.tir.nodes import Var as Size, sizes_named

_EXTENTS = SimpleNamespace(int32=int, int64=int)  # the types of numbers in extents, T.int64(2)


def emitted(func, args, options, operand):
    """The tensor program that a function makes, its operands, and their types: a list where the
    function gives several tensors.

    operand: gives, for a value of the graph among the arguments, the operand of the program's call,
    and the te.Tensor or variable that stands for it. Tuples and lists of values are looked into"""
    from pleat import te
    operands = []

    def given(value):
        if isinstance(value, (tuple, list)):
            return type(value)(map(given, value))
        if not isinstance(value, Value):
            return value
        found = operand(value)
        if not any(isinstance(found[1], Size) and found[1] is one for _, one in operands):
            operands.append(found)
        return found[1]
    attrs = options.pop("primfunc_attrs", None)
    outputs = func(*map(given, args), **{key: given(value) for key, value in options.items()})
    several = isinstance(outputs, (tuple, list))
    results = list(outputs) if several else [outputs]
    program = te.create_prim_func([tensor for _, tensor in operands] + results)
    for key, value in (attrs or {}).items():
        program = program.with_attr(key, value)
    types = [TensorStructInfo(tensor.shape, tensor.dtype) for tensor in results]
    return program, [one for one, _ in operands], types if several else types[0]


def program_name(func, hint):
    """The name of the tensor program that a function makes."""
    name = hint or getattr(func, "__name__", "")
    return name if name.isidentifier() else "te_func"


def number_type(struct_info):
    """The element type of R.Prim("int64") or T.int64; None for the types of other values."""
    found = re.fullmatch(r"""R\.Prim\(["'](\w+)["']\)|T\.(\w+)""", text_of(struct_info))
    return found and (found[1] or found[2])


def constant_type(text):
    """The element type and the extents, as texts, of R.const(1, "float32"); None for other values."""
    if not text.startswith("R.const("):
        return None
    call = ast.parse(text, mode="eval").body
    named = {one.arg: one.value for one in call.keywords}
    try:
        contents, *dtypes = map(ast.literal_eval, [*call.args, *named.values()])
    except ValueError:  # the contents are in another file
        return None
    extents = []
    while isinstance(contents, list):
        extents.append(str(len(contents)))
        contents = contents[0] if contents else 0.0
    kinds = {bool: "bool", int: "int32"}
    return (dtypes[0] if dtypes else kinds.get(type(contents), "float32")), extents


class Sizes(dict):
    """The variables of sizes by their names, which are made when they are first used: the names in the text
    of an extent."""

    def __init__(self):
        super().__init__(T=_EXTENTS)

    def __missing__(self, name):
        self[name] = Size(name, "int64")
        return self[name]


def emitted_in_script(types, func, *args, primfunc_name_hint=None, **options):
    """The call of R.emit_te in a script, with the text of the tensor program in the place of its name.

    types: the element type and the extents of each name of the script, and None as the extents of a
    number or size"""
    from pleat import te
    sizes = Sizes()

    def operand(value):
        text = text_of(value)
        dtype, extents = types.get(text) or constant_type(text) or (None, None)
        if dtype is None:
            raise TypeError(f"R.emit_te takes names of tensors and numbers, not `{value}`")
        if extents is None:
            return value, sizes.setdefault(text_of(value), Size(text_of(value), dtype))
        return value, te.placeholder([eval(extent, {}, sizes) for extent in extents], dtype,  # noqa: S307
                                     name=text if text in types else "constant")
    program, operands, results = emitted(func, args, options, operand)
    with sizes_named(lambda size: size.name):
        text = IRModule({program_name(func, primfunc_name_hint): program}).script()
        return Value(text_of(Value("R.call_tir")(text, tuple(operands), out_sinfo=results)))
