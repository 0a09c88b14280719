# SPDX-License-Identifier: Apache-2.0
"""Index expressions: the arguments of mapping functions, and the outputs of index maps.

An expression is immutable; operators build larger expressions and fold constants. Expressions are
exchanged with the library as text in Python's notation.
"""
import ast
import functools
import operator

# name -> (precedence, function on integers)
BINARY = {
    "or": (1, lambda a, b: int(bool(a) or bool(b))),
    "and": (2, lambda a, b: int(bool(a) and bool(b))),
    "<": (4, operator.lt), "<=": (4, operator.le), "==": (4, operator.eq), "!=": (4, operator.ne),
    "|": (5, operator.or_), "^": (6, operator.xor), "&": (7, operator.and_),
    "<<": (8, operator.lshift), ">>": (8, operator.rshift),
    "+": (9, operator.add), "-": (9, operator.sub),
    "*": (10, operator.mul), "//": (10, operator.floordiv), "%": (10, operator.mod),
}
CALLS = {"min": min, "max": max, "select": lambda c, a, b: a if c else b}
SYNTAX = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitXor: "^",
    ast.BitAnd: "&", ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>", ast.Lt: "<",
    ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and", ast.Or: "or",
}


class AxisSeparator:
    """The mark between physical axes: each group of axes between marks is flattened to one."""

    def __repr__(self):
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()


class Expr:
    """An integer expression of named variables: `op` with its `args`, which are expressions.

    `op` is "var" (args: the name), "const" (args: the value), an operator of Python, "not", or a
    function (min, max, select). Comparison with == gives an Equality.
    """

    __slots__ = ("op", "args")

    def __init__(self, op, *args):
        self.op, self.args = op, args

    def __eq__(self, other):
        return _equality("==", self, other)

    def __ne__(self, other):
        return _equality("!=", self, other)

    def __hash__(self):
        return hash((self.op, self.args))

    def __bool__(self):
        if self.op == "const":
            return bool(self.args[0])
        raise TypeError(f"`{self}` has no value yet; choose with select(condition, a, b)")

    def __int__(self):
        if self.op == "const":
            return self.args[0]
        raise TypeError(f"`{self}` is not a constant")

    __index__ = __int__

    @property
    def dtype(self):
        """The type of indices, `i.dtype` or `i.ty.dtype`."""
        from pleat.tir.nodes import prim_type
        return prim_type("int64")

    ty = dtype

    def __str__(self):
        return _text(self, 0)

    __repr__ = __str__

    def __neg__(self):
        return binary("-", 0, self)

    def __gt__(self, other):
        return binary("<", other, self)

    def __ge__(self, other):
        return binary("<=", other, self)

    def substitute(self, values):
        """Replaces variables: `values` maps their names to integers or expressions."""
        if self.op == "var":
            return to_expr(values.get(self.args[0], self))
        if self.op == "const":
            return self
        return make(self.op, *(a.substitute(values) for a in self.args))


class Equality(Expr):
    """The result of == or != of expressions: the condition where an expression is expected, and for
    Python's `if`, whether both are the same expression, or are not."""

    __slots__ = ()

    def __bool__(self):
        a, b = self.args
        return (a.op == b.op and a.args == b.args) == (self.op == "==")


def _equality(op, a, b):
    try:
        b = to_expr(b)
    except TypeError:
        return NotImplemented
    both = a.op == "const" and b.op == "const"
    return make(op, a, b) if both else Equality(op, a, b)


def _operator(name, reflected):
    if reflected:
        return lambda self, other: binary(name, other, self)
    return lambda self, other: binary(name, self, other)


for _name, _method in {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod",
                       "^": "xor", "&": "and", "|": "or", "<<": "lshift", ">>": "rshift"}.items():
    setattr(Expr, f"__{_method}__", _operator(_name, False))
    setattr(Expr, f"__r{_method}__", _operator(_name, True))


def _no_division(self, other):
    raise TypeError("an index is an integer: write // for the quotient, not /")


Expr.__truediv__ = Expr.__rtruediv__ = _no_division
Expr.__lt__ = _operator("<", False)
Expr.__le__ = _operator("<=", False)


def const(value):
    return Expr("const", int(value))


def var(name):
    return Expr("var", name)


def to_expr(value):
    """An integer, or a program's node, as an expression; an expression is returned unchanged."""
    if isinstance(value, Expr):
        return value
    if hasattr(type(value), "index_expression"):
        return value.index_expression()
    try:
        return const(operator.index(value))
    except TypeError:
        raise TypeError(f"{value!r} is no index expression: an integer, an argument of the "
                        "mapping function, or what + - * // % ^ & | make of them") from None


def make(op, *args):
    """An operation on expressions or integers, folded when all are constants."""
    args = tuple(to_expr(a) for a in args)
    if op in ("+", "-") and args[1] == const(0):
        return args[0]
    if op == "+" and args[0] == const(0):
        return args[1]
    if any(a.op != "const" for a in args):
        return Expr(op, *args)
    values = [a.args[0] for a in args]
    if op in ("//", "%") and values[1] == 0:
        raise ZeroDivisionError(f"`{Expr(op, *args)}` divides by zero")
    if op == "not":
        return const(not values[0])
    return const(BINARY[op][1](*values) if op in BINARY else CALLS[op](*values))


def binary(op, a, b):
    try:
        return make(op, a, b)
    except TypeError:
        return NotImplemented


def select(condition, a, b):
    """`a` if the condition is true, otherwise `b`."""
    return make("select", condition, a, b)


def all_of(*conditions):
    """Are all conditions true?"""
    return functools.reduce(functools.partial(make, "and"), conditions)


def any_of(*conditions):
    """Is one of the conditions true?"""
    return functools.reduce(functools.partial(make, "or"), conditions)


def minimum(a, b):
    return make("min", a, b)


def maximum(a, b):
    return make("max", a, b)


def _text(e, outer):
    if e.op in ("var", "const"):
        text = str(e.args[0])
        return f"({text})" if text.startswith("-") and outer > 9 else text
    if e.op in BINARY:
        level = BINARY[e.op][0]
        right = level if e.op in ("and", "or") else level + 1
        text = f"{_text(e.args[0], level)} {e.op} {_text(e.args[1], right)}"
        return f"({text})" if level < outer else text
    if e.op == "not":
        text = f"not {_text(e.args[0], 3)}"
        return f"({text})" if outer > 3 else text
    return f"{e.op}({', '.join(_text(a, 0) for a in e.args)})"


def _of_node(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return const(node.value)
    if isinstance(node, ast.Name):
        return var(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in SYNTAX:
        return make(SYNTAX[type(node.op)], _of_node(node.left), _of_node(node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return make("-", 0, _of_node(node.operand))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return make("not", _of_node(node.operand))
    if isinstance(node, ast.IfExp):
        return make("select", _of_node(node.test), _of_node(node.body), _of_node(node.orelse))
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) in CALLS:
        return make(node.func.id, *(_of_node(a) for a in node.args))
    if isinstance(node, ast.BoolOp):
        parts = [_of_node(v) for v in node.values]
        whole = parts[0]
        for part in parts[1:]:
            whole = make(SYNTAX[type(node.op)], whole, part)
        return whole
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        a, b = _of_node(node.left), _of_node(node.comparators[0])
        if isinstance(node.ops[0], (ast.Gt, ast.GtE)):
            return make("<" if isinstance(node.ops[0], ast.Gt) else "<=", b, a)
        return make(SYNTAX[type(node.ops[0])], a, b)
    raise ValueError(f"not an index expression: {ast.unparse(node)}")


def parse(text):
    """The expression of a text in Python's notation, which the library also writes."""
    return _of_node(ast.parse(text.strip(), mode="eval").body)


# The functions of pleat.tir that index maps have, by their names.
FUNCTIONS = {
    "Select": select, "all": all_of, "any": any_of, "if_then_else": select, "max": maximum, "min": minimum,
    **{name: functools.partial(make, op) for name, op in {
        "add": "+", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "floordiv": "//", "floormod": "%",
        "indexdiv": "//", "indexmod": "%", "multiply": "*", "shift_left": "<<", "shift_right": ">>",
        "subtract": "-"}.items()},
    "ceildiv": lambda a, b: make("//", make("-", make("+", a, b), 1), b),
}
