# SPDX-License-Identifier: Apache-2.0
"""Patterns of expressions of graph functions, with TVM's names:

    x, w = wildcard(), wildcard()
    pattern = is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(x, w))
    pattern.match(call, var2val)"""
from pleat._library import PleatError
from pleat.ir._module import Function, Op
from pleat.relax.expr import Bindable, Call, GlobalVar, TensorStructInfo, Tuple, Var
from pleat.relax.nodes import (Constant, DataflowVar, ExternFunc, LocalFunction, ShapeExpr, TupleGetItem,
                               TupleStructInfo, tensor_type)
from pleat.script._values import Value, text_of

__all__ = ["AndPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DataTypePattern",
           "DataflowVarPattern", "ExprPattern", "ExternFuncPattern", "FunctionPattern", "GlobalVarPattern",
           "NotPattern", "OrPattern", "PatternSeq", "PrimArrPattern", "SameShapeConstraint", "ShapePattern",
           "StructInfoPattern", "TupleGetItemPattern", "TuplePattern", "TypePattern", "UnorderedTuplePattern",
           "VarPattern", "WildcardPattern", "has_attr", "has_dtype", "is_call_dps_packed", "is_call_packed",
           "is_call_tir", "is_const", "is_dfv", "is_expr", "is_gv", "is_op", "is_shape", "is_tuple",
           "is_tuple_get_item", "is_var", "make_fused_bias_activation_pattern", "reject", "wildcard"]

_COMMUTATIVE = ("relax.add", "relax.multiply")


# ---- Matching -------------------------------------------------------------------------------------

class Matching:
    """The state of one attempt: `found` has the expression that each pattern has matched.

    values: what variables are bound to; a variable is looked through to its value"""

    def __init__(self, values=None):
        self.values, self.found = values or {}, {}

    def value_of(self, expr):
        while isinstance(expr, Var) and expr in self.values:
            expr = self.values[expr]
        return _as_node(expr)

    def match(self, pattern, expr):
        expr = self.value_of(expr)
        if pattern in self.found:
            return self.found[pattern] is expr
        before = dict(self.found)
        if pattern._matches(expr, self):
            self.found[pattern] = expr
            return True
        self.found = before
        return False

    def match_all(self, patterns, exprs):
        before = dict(self.found)
        if len(patterns) == len(exprs) and all(map(self.match, patterns, exprs)):
            return True
        self.found = before
        return False


def _as_node(expr):
    """Python's values, such as the operands that stand for shapes and names, as expressions."""
    if isinstance(expr, (tuple, list)):
        return Tuple(expr)
    if isinstance(expr, str) and not isinstance(expr, (Op, GlobalVar)):
        return ExternFunc(expr)
    return expr


def type_of(expr):
    """The type of an expression, or None where it is not known."""
    if isinstance(expr, Constant):
        return TensorStructInfo(expr.data.shape, str(expr.data.dtype))
    if isinstance(expr, TupleGetItem):
        whole = type_of(expr.tuple_value)
        if isinstance(whole, TupleStructInfo):
            return whole.fields[expr.index]
    try:
        return expr.struct_info if isinstance(expr, (Bindable, Var)) else None
    except PleatError:
        return None


def same_extents(a, b):
    """Are two shapes proved to be equal? Sizes are compared by their names."""
    if a is None or b is None or len(a) != len(b):
        return False
    return all(isinstance(m, int) and isinstance(n, int) and m == n or _same_size(m, n) for m, n in zip(a, b))


def _same_size(a, b):
    from pleat import arith
    from pleat.relax.emitted import Sizes
    from pleat.tir.nodes import sizes_named
    with sizes_named(lambda size: size.name):
        texts = [text_of(one) for one in (a, b)]
    if texts[0] == texts[1]:
        return True
    sizes = Sizes()
    try:
        a, b = (_evaluated(compile(text, "<extent>", "eval"), sizes) for text in texts)
    except (AttributeError, SyntaxError, TypeError):
        return False
    return bool(arith.Analyzer().can_prove_equal(a, b))


def _evaluated(code, sizes):
    return eval(code, {name: sizes[name] for name in code.co_names})  # noqa: S307 - an extent of a program


def _plain(value):
    """An attribute in the form in which two are compared."""
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if hasattr(value, "value") and not isinstance(value, Value):
        return value.value  # a node of a constant
    return str(value) if isinstance(value, (str, Value)) else value


# ---- Patterns -------------------------------------------------------------------------------------

class DFPattern:
    """A pattern. Called with patterns of operands, it is that of a call; `|`, `&` and `~` combine patterns."""

    def __call__(self, *args, varg_default_wildcard=False, add_constraint=True):
        return CallPattern(self, args, varg_default_wildcard, add_constraint)

    def __or__(self, other):
        return OrPattern(self, other)

    def __and__(self, other):
        return AndPattern(self, other)

    def __invert__(self):
        return NotPattern(self)

    def __xor__(self, other):
        return self.used_by(other)

    def __rshift__(self, other):
        return self.only_used_by(other)

    def has_attr(self, attrs):
        """The pattern of a call, or function, that states these attributes with these values."""
        return AttrPattern(self, attrs)

    def has_dtype(self, dtype):
        return DataTypePattern(self, dtype)

    def has_shape(self, shape):
        if not isinstance(shape, (list, tuple)):
            raise ValueError("has_shape takes a list or tuple as input.")
        return ShapePattern(self, shape)

    def has_ty(self, ty):
        return TypePattern(self, ty)

    has_struct_info = has_ty

    def match(self, expr, var2val=None):
        """Does the pattern match an expression? var2val: the values of variables, which are looked into"""
        return Matching(var2val).match(self, expr)

    def extract_matched_expr(self, expr, var2val=None):
        """The expressions that this pattern and those in it match, or None."""
        attempt = Matching(var2val)
        return attempt.found if attempt.match(self, expr) else None

    def used_by(self, other, index=-1):
        """A constraint of the PatternContext: what this matches is an operand of what `other` matches."""
        return PatternSeq([self]).used_by(other, index)

    def only_used_by(self, other, index=-1):
        """The same, and nothing else uses it."""
        return PatternSeq([self]).only_used_by(other, index)

    def fork_to(self, *others):
        """It is an operand of all of these."""
        for other in others:
            self.used_by(other)

    def same_shape_as(self, *others):
        return SameShapeConstraint(self, *others)

    def dup(self):
        """Another pattern of this kind."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


def _fields(*names):
    """The constructor of a pattern with these fields."""
    def __init__(self, *values):
        if len(values) != len(names):
            raise TypeError(f"{type(self).__name__}({', '.join(names)}) got {len(values)} arguments")
        self.__dict__.update(zip(names, values))
    return __init__


class WildcardPattern(DFPattern):
    def _matches(self, expr, attempt):
        return True


class ExprPattern(DFPattern):
    __init__ = _fields("expr")

    def _matches(self, expr, attempt):
        if isinstance(self.expr, Op) or isinstance(expr, Op):
            return isinstance(expr, str) and isinstance(self.expr, str) and self.expr == expr
        return self.expr is expr or text_of(self.expr) == text_of(expr)


class VarPattern(DFPattern):
    kind = Var

    def __init__(self, name_hint=""):
        self.name = name_hint

    def _matches(self, expr, attempt):
        return isinstance(expr, self.kind) and self.name in ("", expr.name_hint)


class DataflowVarPattern(VarPattern):
    kind = DataflowVar


class GlobalVarPattern(VarPattern):
    kind = GlobalVar


class ExternFuncPattern(DFPattern):
    def __init__(self, global_symbol=""):
        self.global_symbol = global_symbol

    def _matches(self, expr, attempt):
        return isinstance(expr, ExternFunc) and self.global_symbol in ("", str(expr.global_symbol))


class ConstantPattern(DFPattern):
    def _matches(self, expr, attempt):
        return isinstance(expr, Constant)


class CallPattern(DFPattern):
    """A call. args: patterns of the operands, or None for any; with varg_default_wildcard there may be more
    operands. Sums and products match in either order."""

    def __init__(self, op, args, varg_default_wildcard=False, add_constraint=True):
        self.op, self.args = op, None if args is None else list(args)
        self.varg_default_wildcard = varg_default_wildcard
        for i, arg in enumerate(self.args or () if add_constraint else ()):
            arg.used_by(self, i)

    def _matches(self, expr, attempt):
        if not isinstance(expr, Call):
            return False
        op, args = _callee(expr)
        if not attempt.match(self.op, op):
            return False
        if self.args is None:
            return True
        args = args[:len(self.args)] if self.varg_default_wildcard else _operands(args, len(self.args))
        if len(args) + 1 == len(self.args) and "shape" in expr.attrs:  # an operand in TVM
            args = [*args, expr.attrs["shape"]]
        if attempt.match_all(self.args, args):
            return True
        return isinstance(op, Op) and op in _COMMUTATIVE and attempt.match_all(self.args, args[::-1])


def _operands(args, count):
    """The arguments of a call without the last ones that are attributes, down to this count."""
    args = list(args)
    while len(args) > count and _is_attribute(args[-1]):
        args.pop()
    return args


def _is_attribute(arg):
    if isinstance(arg, (Tuple, tuple, list)):
        return all(map(_is_attribute, arg.fields if isinstance(arg, Tuple) else arg))
    return not isinstance(arg, Value)


def _callee(call):
    """The callee and the operands of a call, as in TVM, where call_packed is a call of the function itself."""
    if call.op == "relax.call_packed":
        return _as_node(call.args[0]), call.args[1:]
    return call.op, call.args


class FunctionPattern(DFPattern):
    __init__ = _fields("params", "body")

    def _matches(self, expr, attempt):
        if not isinstance(expr, (LocalFunction, Function)):
            return False
        values = attempt.values
        bindings = [one for block in expr.body.blocks for one in block.bindings]
        attempt.values = {**values, **{one.var: one.value for one in bindings}}
        done = (self.params is None or attempt.match_all(self.params, expr.params)) and \
            attempt.match(self.body, expr.body.body)
        attempt.values = values
        return done


class TuplePattern(DFPattern):
    __init__ = _fields("fields")

    def __len__(self):
        return len(self.fields)

    def __getitem__(self, index):
        if index is not None:
            index += len(self) if index < 0 else 0
            if not 0 <= index < len(self):
                raise IndexError("TuplePattern index out of range")
        return TupleGetItemPattern(self, index)

    def _matches(self, expr, attempt):
        return isinstance(expr, Tuple) and attempt.match_all(self.fields, expr.fields)


class UnorderedTuplePattern(TuplePattern):
    def _matches(self, expr, attempt):
        return isinstance(expr, Tuple) and len(expr) == len(self) and self._match_rest(0, list(expr.fields), attempt)

    def _match_rest(self, at, fields, attempt):
        if at == len(self):
            return True
        for i, one in enumerate(fields):
            before = dict(attempt.found)
            if attempt.match(self.fields[at], one) and self._match_rest(at + 1, fields[:i] + fields[i + 1:], attempt):
                return True
            attempt.found = before
        return False


class TupleGetItemPattern(DFPattern):
    def __init__(self, tuple_value, index=None):
        self.tuple, self.tuple_value, self.index = tuple_value, tuple_value, -1 if index is None else index

    def _matches(self, expr, attempt):
        return isinstance(expr, TupleGetItem) and self.index in (-1, expr.index) and \
            attempt.match(self.tuple_value, expr.tuple_value)


class OrPattern(DFPattern):
    __init__ = _fields("left", "right")

    def _matches(self, expr, attempt):
        return attempt.match(self.left, expr) or attempt.match(self.right, expr)


class AndPattern(DFPattern):
    __init__ = _fields("left", "right")

    def _matches(self, expr, attempt):
        return attempt.match(self.left, expr) and attempt.match(self.right, expr)


class NotPattern(DFPattern):
    __init__ = _fields("to_reject")
    reject = property(lambda self: self.to_reject)

    def _matches(self, expr, attempt):
        before = dict(attempt.found)
        is_matched = attempt.match(self.to_reject, expr)
        attempt.found = before
        return not is_matched


class TypePattern(DFPattern):
    """A pattern with a type. A tensor's type without an element type, R.Tensor((2, 3)), is that of any."""

    def __init__(self, pattern, ty):
        self.pattern, self.ty = pattern, ty
        if not isinstance(ty, TensorStructInfo) and text_of(ty).startswith("R.Tensor"):
            self.ty = tensor_type(text_of(ty), "")

    struct_info = property(lambda self: self.ty)

    def _matches(self, expr, attempt):
        if not attempt.match(self.pattern, expr):
            return False
        own = type_of(expr)
        if isinstance(self.ty, TensorStructInfo) and isinstance(own, TensorStructInfo):
            shape_fits = self.ty.shape is None or same_extents(own.shape, self.ty.shape)
            return shape_fits and self.ty.dtype in ("", own.dtype) and self.ty.ndim in (-1, own.ndim)
        return own is not None and text_of(own) == text_of(self.ty)


StructInfoPattern = TypePattern


class DataTypePattern(DFPattern):
    __init__ = _fields("pattern", "dtype")

    def _matches(self, expr, attempt):
        return attempt.match(self.pattern, expr) and getattr(type_of(expr), "dtype", None) == self.dtype


class ShapePattern(DFPattern):
    __init__ = _fields("pattern", "shape")

    def _matches(self, expr, attempt):
        own = type_of(expr)
        return attempt.match(self.pattern, expr) and isinstance(own, TensorStructInfo) and \
            same_extents(own.shape, self.shape)


class PrimArrPattern(DFPattern):
    __init__ = _fields("fields")
    shape = property(lambda self: self.fields)

    def __getitem__(self, index):
        return self.fields[index]

    def __len__(self):
        return len(self.fields)

    def _matches(self, expr, attempt):
        values = expr.values if isinstance(expr, ShapeExpr) else expr.fields if isinstance(expr, Tuple) else None
        return same_extents(values, self.fields)


class AttrPattern(DFPattern):
    __init__ = _fields("pattern", "attrs")

    def _matches(self, expr, attempt):
        own = getattr(expr, "attrs", None)
        return attempt.match(self.pattern, expr) and (not self.attrs or isinstance(own, dict) and all(
            key in own and _plain(own[key]) == _plain(value) for key, value in self.attrs.items()))


# ---- Constraints ----------------------------------------------------------------------------------

class SameShapeConstraint:
    """A constraint of the PatternContext: what the patterns match has one shape."""

    def __init__(self, *args):
        from pleat.relax.dpl.context import PatternContext
        self.args = list(args)
        if PatternContext.current() is not None:
            PatternContext.current().same_shapes.append(self.args)


class PatternSeq:
    """Patterns of which each one is an operand of what the next one matches; with only_use, of nothing else."""

    def __init__(self, patterns, only_use=False):
        self.patterns, self._edges = list(patterns), []
        for a, b in zip(self.patterns, self.patterns[1:]):
            self._connect(a, b, -1, only_use)

    def _connect(self, a, b, index, is_only):
        from pleat.relax.dpl.context import PatternContext
        self._edges.append((a, b, index, is_only))
        if PatternContext.current() is not None:
            PatternContext.current().add(a, b, index, is_only)

    def _followed_by(self, other, index, is_only):
        other = other if isinstance(other, PatternSeq) else PatternSeq([other])
        made = PatternSeq.__new__(PatternSeq)
        made.patterns, made._edges = self.patterns + other.patterns, self._edges + other._edges
        made._connect(self.patterns[-1], other.patterns[0], index, is_only)
        return made

    def used_by(self, other, index=-1):
        return self._followed_by(other, index, False)

    def only_used_by(self, other, index=-1):
        return self._followed_by(other, index, True)

    __xor__ = used_by
    __rshift__ = only_used_by

    def __getitem__(self, index):
        return self.patterns[index]

    def dup(self):
        """The same sequence of other patterns."""
        made = PatternSeq([one.dup() for one in self.patterns][:1])
        made.patterns += [one.dup() for one in self.patterns[1:]]
        again = dict(zip(self.patterns, made.patterns))
        for a, b, index, is_only in self._edges:
            made._connect(again[a], again[b], index, is_only)
        return made


# ---- Functions that make patterns -----------------------------------------------------------------

def wildcard():
    """Any expression."""
    return WildcardPattern()


def is_var(name=""):
    """A variable, of this name."""
    return VarPattern(name)


def is_gv(name=""):
    """A function of the module."""
    return GlobalVarPattern(name)


def is_dfv(name=""):
    """A variable of a dataflow block."""
    return DataflowVarPattern(name)


def is_const():
    """A constant."""
    return ConstantPattern()


def is_expr(expr):
    """This expression."""
    return ExprPattern(expr)


def is_op(op_name):
    """An operator, which is called to give the pattern of its calls: is_op("relax.add")(x, y)."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields, unordered=False):
    """A tuple of these, in any order with `unordered`."""
    if not isinstance(fields, (list, tuple)):
        raise ValueError("fields must be a list or tuple")
    return UnorderedTuplePattern(list(fields)) if unordered else TuplePattern(list(fields))


def is_tuple_get_item(tuple_value, index=None):
    """An item of a tuple: any one without an index."""
    return TupleGetItemPattern(tuple_value, index)


def is_shape(shape):
    """A shape that is an operand."""
    if not isinstance(shape, (list, tuple)):
        raise ValueError("is_shape takes a list or tuple as input.")
    return PrimArrPattern(list(shape))


def has_dtype(dtype, pattern=None):
    """A tensor of this element type."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs, pattern=None):
    """A call that states these attributes."""
    return AttrPattern(pattern or wildcard(), attrs)


def reject(pattern):
    """An expression that the pattern does not match."""
    return NotPattern(pattern)


def _is_call_of(op, function, args):
    operands = wildcard() if args is None else args if isinstance(args, DFPattern) else TuplePattern(list(args))
    return is_op(op)(function, operands, varg_default_wildcard=True, add_constraint=False)


def is_call_tir(func_name, args=None):
    """A call of this tensor program of the module."""
    return _is_call_of("relax.call_tir", GlobalVarPattern(func_name), args)


def is_call_dps_packed(func_name, args=None):
    """A call of this function outside, which gets its result as an argument."""
    return _is_call_of("relax.call_dps_packed", ExternFuncPattern(func_name), args)


def is_call_packed(func_name, args=None):
    """A call of this function outside."""
    function = ExternFuncPattern(func_name)
    return function(*args) if args is not None else function(varg_default_wildcard=True, add_constraint=False)


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None, allow_reshape=False):
    """An operator of two operands with an addition and an activation behind it. allow_reshape: the bias is
    reshaped before it is added"""
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias and allow_reshape:
        bias = is_op("relax.reshape")(wildcard(), wildcard(), varg_default_wildcard=True)
        out = is_op("relax.add")(out, bias, varg_default_wildcard=True)
    elif with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out
