# SPDX-License-Identifier: Apache-2.0
"""Python values as the text of expressions in a script, and the script's own names as Python values."""
import ast
import inspect
import math
import operator
import re
import sys
import typing

from pleat._library import PleatError

BINARY = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
          "pow": "**", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
_CONSTANT = re.compile(r"(?:\w+\.)*u?int\d+\((-?\d+)\)")  # an integer with its type
_NUMBER = re.compile(r"(?:\w+\.)*(?:bool|u?int\d+)\((?:(-?\d+|True|False)|\((-\d+)\))\)")  # the same, or a truth value
_TYPED = re.compile(r"(?:\w+\.)*(bool|u?int\d+|b?float\d+)\((.*)\)")  # a number with its type
_COMPARE = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
            ">=": operator.ge}
_NUMBERS = re.compile(r"\((-?\d+|True|False) (==|!=|<=|>=|<|>) \(?(-?\d+|True|False)\)?\)")
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


def _truth(text):
    """The truth value of a constant, or of a comparison of two; None for other texts."""
    text = _NUMBER.sub(lambda found: found[1] or found[2], text)
    found = _NUMBERS.fullmatch(text)
    if found:
        return _COMPARE[found[2]](_number(found[1]), _number(found[3]))
    return bool(_number(text)) if _NUMBERS.fullmatch(f"({text} == 0)") else None


def _number(text):
    return text == "True" if text in ("True", "False") else int(text)


class Value:
    """An expression of a script, which has no value yet: `text` makes its text.

    Operators, calls, subscripts and attributes give larger expressions. `_type` is the element type where it
    is known, and otherwise None."""

    __slots__ = ("_text", "_type")
    __hash__ = object.__hash__

    def __init__(self, text, dtype=None):
        self._text, self._type = text if callable(text) else lambda: text, dtype

    def __getattr__(self, name):
        if name == "__name__":
            return self._text().rpartition(".")[2]
        if name == "ty" and self._type:
            return self  # as in nodes, an object with the fields of the type
        if name == "dtype" and self._type:
            from pleat.tir.nodes import prim_type
            return prim_type(self._type)
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(lambda: f"{self._text()}.{name}")

    def __call__(self, *args, **keywords):
        def text():
            parts = [text_of(a) for a in args]
            parts += [f"{name}={text_of(value)}" for name, value in keywords.items()]
            return f"{self._text()}({', '.join(parts)})"
        return Value(text)

    def __getitem__(self, index):
        def text():
            items = index if isinstance(index, tuple) else (index,)
            inner = ", ".join(_index_text(item) for item in items)
            return f"{self._text()}[{inner if items else '()'}]"
        items = index if isinstance(index, tuple) else (index,)
        return Value(text, self._type if all(map(_is_scalar_index, items)) else None)

    def __iter__(self):
        raise TypeError(f"`{self}` is known only when the program runs: it is no Python sequence")

    def __bool__(self):
        truth = _truth(self._text())
        if truth is not None:
            return truth
        raise TypeError(f"`{self}` is known only when the program runs: use T.if_then_else, T.And, "
                        "T.Or or T.Not")

    def is_number(self):
        return _TYPED.fullmatch(self._text()) is not None

    def as_expression(self):
        """The node of a constant, T.int32(5)."""
        from pleat.tir.nodes import const
        found = _TYPED.fullmatch(self._text())
        try:
            return const(ast.literal_eval(found[2]), found[1])
        except (TypeError, ValueError, SyntaxError):
            raise TypeError(f"`{self}` is an expression of a script, and no node: make nodes with the functions of "
                            "pleat.tir") from None

    def __index__(self):
        constant = _CONSTANT.fullmatch(self._text())
        if constant:
            return int(constant[1])
        raise TypeError(f"`{self}` is known only when the program runs: it is no Python number")

    __int__ = __index__

    def __float__(self):
        return float(self.__index__())

    def __neg__(self):
        return Value(lambda: f"(-{self._text()})")

    def __pos__(self):
        return self

    def __invert__(self):
        return Value(lambda: f"(~{self._text()})")

    def astype(self, dtype):
        known = str(dtype) if isinstance(dtype, str) else None
        return Value(lambda: f"T.Cast({text_of(dtype)}, {self._text()})", known)

    def __repr__(self):
        return self._text()


def _is_scalar_index(value):
    """Is it known to be one integer, so that an element at it has the type of its buffer?"""
    return isinstance(value, int) or isinstance(value, Value) and value._type in ("int32", "int64")


def _common_type(spelling, a, b):
    """The type of the result of an operator, where both operands have it, or one is a small integer of Python."""
    types = {one._type if isinstance(one, Value) else None for one in (a, b)
             if type(one) is not int or abs(one) > 127}
    keeps = spelling not in ("/", "**", *COMPARISONS.values()) and "bool" not in types
    return types.pop() if keeps and len(types) == 1 else None


def _is_node(value):
    """Is it an expression of nodes, or the result of == of such?"""
    nodes = sys.modules.get("pleat.tir.nodes")
    return nodes is not None and isinstance(value, (nodes.PrimExpr, nodes.Equality))


def _operator(spelling, name, reflected=False):
    def apply(self, other):
        a, b = (other, self) if reflected else (self, other)
        if _is_node(other) and _TYPED.fullmatch(self._text()):  # a number beside a node: T.int32(0) <= x
            operation = getattr(operator, name + "_" * (name in ("and", "or")))
            return operation(*(one.as_expression() if hasattr(one, "as_expression") else one for one in (a, b)))
        return Value(lambda: f"({text_of(a)} {spelling} {text_of(b)})", _common_type(spelling, a, b))
    return apply


for _name, _spelling in {**BINARY, **COMPARISONS}.items():
    setattr(Value, f"__{_name}__", _operator(_spelling, _name))
for _name, _spelling in BINARY.items():
    setattr(Value, f"__r{_name}__", _operator(_spelling, _name, reflected=True))


class Macro:
    """A function under @T.macro or @R.macro: its statements replace the statement that calls it.

    With hygienic=True the names in it are those around its definition, otherwise also those where
    it is used. `names` are the local names around the definition."""

    def __init__(self, function, hygienic, names):
        self.function, self.hygienic, self.names = function, hygienic, names
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __call__(self, *args, **keywords):
        return MacroUse(self)


class MacroUse:
    def __init__(self, macro):
        self.macro = macro


def _float_text(value):
    if math.isnan(value):
        return "(1e999 - 1e999)"
    return repr(float(value)) if math.isfinite(value) else ("1e999" if value > 0 else "(-1e999)")


def free_name(hint, is_taken):
    """The hint, or the hint with the first number behind it that makes a name which is not taken."""
    name, number = hint, 0
    while is_taken(name):
        number += 1
        name = f"{hint}{number}"
    return name


def _index_text(item):
    if not isinstance(item, slice):
        return text_of(item)
    parts = ["" if part is None else text_of(part) for part in (item.start, item.stop)]
    return ":".join(parts) + ("" if item.step is None else ":" + text_of(item.step))


def _function_text(function):
    """A function that gives an expression, as a lambda of its parameters."""
    names = list(inspect.signature(function).parameters)
    return f"lambda {', '.join(names)}: {text_of(function(*map(Value, names)))}"


def _sequence_text(value):
    items = [text_of(item) for item in value]
    if isinstance(value, list):
        return f"[{', '.join(items)}]"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _array_text(value):
    """The text of a NumPy scalar, array (a Tensor is one) or type; None for another value."""
    if not any(kind.__module__.partition(".")[0] in ("numpy", "ml_dtypes") for kind in type(value).__mro__):
        if isinstance(value, type) and value.__module__.partition(".")[0] in ("numpy", "ml_dtypes"):
            return repr(value.__name__)
        return None
    if hasattr(value, "tolist"):
        from pleat.script._contents import captured_text
        return (captured_text(value) if hasattr(value, "nbytes") else None) or text_of(value.tolist())
    return repr(value.name) if hasattr(value, "itemsize") else None


def text_of(value):
    """The text of a Python value as an expression of a script. PleatError when it has none."""
    if isinstance(value, Value):
        return value._text()
    if value is None or isinstance(value, (bool, str)):
        return repr(value)
    if isinstance(value, int):
        return str(int(value)) if value >= 0 else f"({int(value)})"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, (tuple, list)):
        return _sequence_text(value)
    if isinstance(value, range):
        return _sequence_text(tuple(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    array = _array_text(value)
    if array is not None:
        return array
    if hasattr(value, "__script__"):
        return value.__script__()
    if isinstance(value, typing.TypeVar):
        return repr(value.__name__)  # the name of a size
    if inspect.isfunction(value):
        return _function_text(value)
    raise PleatError(f"a Python object of type {type(value).__name__} has no value in a script: "
                     "expected a number, a string, a type, a tuple or list of them, or a function "
                     "that gives an expression")
