# SPDX-License-Identifier: Apache-2.0
"""Operators whose results depend on the elements of their operands at the same index. Operands with
fewer axes, or axes of extent 1, are broadcast; an operand may be a number or an expression."""
import functools

from pleat import te, tir
from pleat.te.tensor import Tensor, as_extent
from pleat.topi._shapes import broadcast_element, broadcast_shape, is_tensor


def unary(function, name="compute"):
    """The operator that applies a function of an expression to each element."""
    def operator(x):
        return te.compute(x.shape, lambda *i: function(x(*i)), name=name, tag="elemwise")
    return operator


def binary(function, name):
    """The operator that applies a function of two expressions to elements; of numbers, the function."""
    def operator(lhs, rhs):
        if not is_tensor(lhs) and not is_tensor(rhs):
            return function(lhs, rhs)
        shape = broadcast_shape([v.shape for v in (lhs, rhs) if is_tensor(v)])
        lhs, rhs = _of_type(lhs, rhs), _of_type(rhs, lhs)
        return te.compute(shape, lambda *ax: function(broadcast_element(lhs, ax), broadcast_element(rhs, ax)),
                          name=name, tag="broadcast")
    return operator


def _of_type(value, other):
    """A number gets the type of the elements beside it."""
    is_number = isinstance(value, (int, float)) and is_tensor(other)
    return tir.const(value, other.dtype) if is_number else value


def of_floats(function, name="compute"):
    """The operator of `unary`, which refuses other numbers than floats."""
    apply = unary(function, name)

    def operator(x):
        if "float" not in x.dtype:
            raise TypeError(f"topi.{operator.__name__} only supports floating-point inputs, but got {x.dtype}")
        return apply(x)
    return operator


def _named(operators, make):
    for name, (function, label) in operators.items():
        operator = make(function, label)
        operator.__name__ = operator.__qualname__ = name
        globals()[name] = operator


def _sign(x):
    one, zero = tir.const(1, x.dtype), tir.const(0, x.dtype)
    return tir.Select(x < zero, -one, tir.Select(x > zero, one, zero))


_named({
    "abs": (tir.abs, "compute"), "atan": (tir.atan, "compute"), "ceil": (tir.ceil, "compute"), "cos": (tir.cos, "compute"),
    "cosh": (tir.cosh, "compute"), "erf": (tir.erf, "compute"), "exp": (tir.exp, "compute"),
    "floor": (tir.floor, "compute"), "identity": (lambda x: x, "compute"),
    "isinf": (tir.isinf, "compute"), "isnan": (tir.isnan, "compute"), "log": (tir.log, "compute"),
    "log2": (tir.log2, "compute"), "log10": (tir.log10, "compute"),
    "logical_not": (lambda x: tir.Not(x), "compute"), "negative": (lambda x: -x, "compute"),
    "bitwise_not": (lambda x: ~x, "compute"), "round": (tir.round, "compute"),
    "rsqrt": (tir.rsqrt, "compute"), "sigmoid": (tir.sigmoid, "compute"), "sign": (_sign, "compute"),
    "sin": (tir.sin, "compute"), "sinh": (tir.sinh, "compute"), "sqrt": (tir.sqrt, "compute"),
    "tan": (tir.tan, "compute"), "tanh": (tir.tanh, "compute"), "trunc": (tir.trunc, "compute"),
}, unary)


_named({
    "acos": (tir.acos, "compute"), "acosh": (tir.acosh, "compute"), "asin": (tir.asin, "compute"),
    "asinh": (tir.asinh, "compute"), "atanh": (tir.atanh, "compute"),
}, of_floats)


def _divide(a, b):
    a, b = te.tensor.as_expression(a), te.tensor.as_expression(b)
    return a / b if "float" in a.dtype or "float" in b.dtype else tir.truncdiv(a, b)


_named({
    "add": (lambda a, b: a + b, "T_add"), "subtract": (lambda a, b: a - b, "T_subtract"),
    "multiply": (lambda a, b: a * b, "T_multiply"), "divide": (_divide, "T_divide"),
    "floor_divide": (tir.floordiv, "T_floor_divide"), "mod": (tir.floormod, "T_mod"),
    "floor_mod": (tir.floormod, "T_floor_mod"), "maximum": (tir.max, "T_maximum"),
    "minimum": (tir.min, "T_minimum"), "power": (tir.power, "T_power"), "atan2": (tir.atan2, "T_atan2"),
    "equal": (lambda a, b: tir.EQ(a, b), "T_equal"), "not_equal": (lambda a, b: tir.NE(a, b), "T_not_equal"),
    "less": (lambda a, b: a < b, "T_less"), "less_equal": (lambda a, b: a <= b, "T_less_equal"),
    "greater": (lambda a, b: a > b, "T_greater"), "greater_equal": (lambda a, b: a >= b, "T_greater_equal"),
    "logical_and": (lambda a, b: tir.all(a, b), "T_logical_and"),
    "logical_or": (lambda a, b: tir.any(a, b), "T_logical_or"),
    "logical_xor": (lambda a, b: tir.NE(a, b), "T_logical_xor"),
    "bitwise_and": (lambda a, b: a & b, "T_bitwise_and"), "bitwise_or": (lambda a, b: a | b, "T_bitwise_or"),
    "bitwise_xor": (lambda a, b: a ^ b, "T_bitwise_xor"),
    "left_shift": (lambda a, b: a << b, "T_left_shift"), "right_shift": (lambda a, b: a >> b, "T_right_shift"),
}, binary)


def cast(x, dtype):
    """The elements as another type."""
    if not is_tensor(x):
        return tir.Cast(dtype, x)
    return te.compute(x.shape, lambda *i: x(*i).astype(dtype), name="T_cast", tag="elemwise")


def clip(x, a_min, a_max):
    """The elements between two bounds."""
    low, high = tir.const(a_min, x.dtype), tir.const(a_max, x.dtype)
    return te.compute(x.shape, lambda *i: tir.max(tir.min(x(*i), high), low), name="compute",
                      tag="elemwise")


def elemwise_sum(xs):
    """The sum of tensors of one shape."""
    return te.compute(xs[0].shape, lambda *i: functools.reduce(lambda a, b: a + b, (x(*i) for x in xs)),
                      name="T_elemwise_sum", tag="elemwise")


def full(shape, dtype, fill_value):
    """A tensor of one value."""
    value = tir.const(fill_value, dtype) if isinstance(fill_value, (int, float)) else fill_value
    return te.compute([as_extent(e) for e in shape], lambda *i: value, name="T_full", tag="elemwise")


def full_like(x, fill_value):
    """A tensor of one value with the shape and type of another one."""
    value = tir.const(fill_value, x.dtype) if isinstance(fill_value, (int, float)) else fill_value
    return te.compute(x.shape, lambda *i: value, name="T_full_like", tag="elemwise")


def where(condition, x, y):
    """The elements of x where the condition is not 0, otherwise those of y."""
    shape = broadcast_shape([v.shape for v in (condition, x, y) if isinstance(v, Tensor)])

    def choose(*ax):
        test = broadcast_element(condition, ax)
        test = test if test.dtype == "bool" else tir.NE(test, tir.const(0, test.dtype))
        return tir.Select(test, broadcast_element(x, ax), broadcast_element(y, ax))
    return te.compute(shape, choose, name="T_where", tag="broadcast")
