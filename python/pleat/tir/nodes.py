# SPDX-License-Identifier: Apache-2.0
"""The parts of tensor programs as Python objects with TVM's kinds and field names.

A node does not change; with_fields makes another one. A variable or a buffer is one object however often
it occurs. Nodes are read from a program (PrimFunc.body), or made with the arguments of TVM's constructors.
pleat.tir.PrimFunc(params, body) makes a program of them, which is checked as a script is."""
import contextlib
import contextvars
import functools
import itertools
import math
import operator
import re

from pleat import _expression
from pleat._library import PleatError
from pleat.data_type import full_name
from pleat.ir._module import GlobalVar, Op
from pleat.script._values import Value, text_of
from pleat.tir.bounds import fits, type_of_number
from pleat.tir.elements import elements_in_base64, elements_of

# Fields that are no expressions: Python numbers and strings in them stay as they are.
PLAIN = {"annotations", "attrs", "attr_key", "axis_separators", "buffer_map", "buffer_type",
         "data_alignment", "dtype", "implied_symbol", "is_newer", "iter_type", "kind", "lanes",
         "name", "name_hint", "offset_factor", "op", "ret_type", "storage_scope", "thread_tag"}
LISTS = {"alloc_buffers", "axis_separators", "match_buffers", "strides"}
DEFAULTS = {"annotations": dict, "attrs": dict, "buffer_type": lambda: 1, "data_alignment": int,
            "iter_type": int, "offset_factor": int, "ret_type": lambda: "void",
            "storage_scope": lambda: "global", "thread_tag": str,
            **{name: list for name in LISTS}}


class Node:
    """A part of a program. Its fields are attributes, and in `fields`."""

    ARGUMENTS = ()  # of the constructor; those in brackets may be left out

    def __init__(self, *values, **named):
        names = [name.strip("[]") for name in self.ARGUMENTS]
        if "ty" in named and "dtype" in names:  # the name since 2026
            named["dtype"] = named.pop("ty")
        given = {**dict(zip(names, values)), **named}
        missing = [name for name in self.ARGUMENTS if name[0] != "[" and name not in given]
        if missing or len(values) > len(names) or not given.keys() <= set(names):
            raise TypeError(f"{type(self).__name__} takes the arguments {', '.join(self.ARGUMENTS)}")
        fields = {name: given[name] if given.get(name) is not None
                  else DEFAULTS.get(name, lambda: None)() for name in names}
        self._set(self._completed(fields))

    def _set(self, fields):
        if type(fields.get("dtype")) is str:
            fields["dtype"] = prim_type(fields["dtype"])
        self.__dict__.update(fields)
        self.fields = fields

    def _completed(self, fields):
        """All fields of the node from the arguments of the constructor."""
        return {name: value if name in PLAIN else converted(value)
                for name, value in fields.items()}

    @classmethod
    def read(cls, fields):
        """A node with all its fields, as the library describes it."""
        node = cls.__new__(cls)
        node._set(fields)
        return node

    def with_fields(self, **changes):
        """A node with some fields replaced; the type of an expression follows from the new ones."""
        names = [name.strip("[]") for name in self.ARGUMENTS]
        fields = {**self.fields, **changes}
        made = type(self)(**{name: fields[name] for name in names if name in fields})
        others = {name: value for name, value in self.fields.items() if name not in made.fields}
        if others:
            made._set({**made.fields, **others})
        return made

    @property
    def kind_name(self):
        return type(self).__name__

    def same_as(self, other):
        """Is this the same part of the program?"""
        return self is other

    def __repr__(self):
        parts = [f"{name}={_brief(value)}" for name, value in self.fields.items()]
        return f"{type(self).__name__}({', '.join(parts)})"

    def script(self, **_):
        """The TVMScript of an expression or statement; of other nodes, their fields. TVM's options change
        nothing."""
        from pleat.tir.node_table import text_of_node
        own = _TEXTS.get(type(self).__name__)
        return own(self) if own else text_of_node(self) or repr(self)

    def __str__(self):
        return self.script() if type(self).__repr__ is Node.__repr__ else repr(self)

    def show(self, style=None, black_format=None, **options):
        """Prints the script."""
        print(self.script(**options))


# ---- Types ----------------------------------------------------------------------------------------

_LANES = re.compile(r"(?<=\d)x(\d+|vscalex\d+)$|(?<=^bool)x(\d+|vscalex\d+)$")


def lanes_of(dtype):
    """The lanes of a type: a number, or a text such as "vscalex4" for vectors of scalable length."""
    found = _LANES.search(dtype)
    lanes = (found[1] or found[2]) if found else "1"
    return int(lanes) if lanes.isdigit() else lanes


def _scalable(lanes):
    """The text "vscalex4" of the node T.vscale() * 4; other lanes as they are."""
    factors = [lanes.a, lanes.b] if type(lanes).__name__ == "Mul" else [lanes]
    if not any(getattr(one, "op", None) == "tir.vscale" for one in factors):
        return lanes
    return f"vscalex{math.prod(int(one) for one in factors if isinstance(one, (int, IntImm)))}"


def with_lanes(dtype, lanes):
    element, lanes = _LANES.sub("", dtype), _scalable(lanes)
    return element if lanes == 1 else f"{element}x{lanes}"


class PrimType(str):
    """The type of an expression: its text, such as "float32x4"."""

    @property
    def dtype(self):
        return self


@functools.lru_cache(maxsize=None)
def prim_type(text):
    return PrimType(full_name(text))


class PointerType(PrimType):
    """The type of a variable that holds the address of the memory of buffers: "handle"."""

    def __new__(cls, element_type, storage_scope="global"):
        made = super().__new__(cls, "handle")
        made.element_type, made.storage_scope = element_type, storage_scope
        return made


def _load_lanes(fields):
    """The lanes of an element of a buffer: those of the buffer's elements, or of the last index."""
    own, indices = lanes_of(fields["buffer"].dtype), fields["indices"]
    index = lanes_of(indices[-1].dtype) if indices else 1
    return own if index == 1 else index if own == 1 else own * index


def _is_float(dtype):
    return "float" in dtype


# ---- Expressions ----------------------------------------------------------------------------------

_var_numbers = itertools.count(1)  # of the variables that scripts capture
_size_names = contextvars.ContextVar("the function that names variables in a script", default=None)
_SPELLINGS = {"Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "Div": "truncdiv",
              "Mod": "truncmod", "Min": "min", "Max": "max", "And": "And", "Or": "Or", "Not": "Not",
              "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "Select": "Select",
              "Cast": "Cast"}


@contextlib.contextmanager
def sizes_named(names):
    """In a `with`, the variables in texts of scripts are called names(variable), and sums and products of
    them have a text."""
    token = _size_names.set(names)
    try:
        yield
    finally:
        _size_names.reset(token)


class PrimExpr(Node):
    """An expression; `dtype` is its type, which TVM calls `ty` since 2026."""

    TYPE = staticmethod(lambda fields: fields["dtype"])

    def __new__(cls, *values, **named):
        """A node; of an expression that a script passes to a function of Python, again such an expression."""
        spelling = _SPELLINGS.get(cls.__name__, "")
        is_open = any(isinstance(one, Value) and not one.is_number() for one in values)
        if is_open and not named and spelling.isidentifier():
            return Value(f"T.{spelling}({', '.join(map(text_of, values))})")
        return super().__new__(cls)

    def _completed(self, fields):
        fields = super()._completed(fields)
        return {**fields, "dtype": self.TYPE(fields)}

    @property
    def ty(self):
        return self.dtype

    def astype(self, dtype):
        dtype = full_name(dtype)
        lanes = lanes_of(dtype)
        if lanes_of(self.dtype) == 1 and lanes != 1 and isinstance(lanes, int):
            return KINDS["Broadcast"](self.astype(with_lanes(dtype, 1)), lanes)
        return self if self.dtype == dtype else KINDS["Cast"](dtype, self)

    def __eq__(self, other):
        return Equality("EQ", self, other) if _is_operand(other) else NotImplemented

    def __ne__(self, other):
        return Equality("NE", self, other) if _is_operand(other) else NotImplemented

    __hash__ = object.__hash__

    def equal(self, other):
        """The expression self == other."""
        return KINDS["EQ"](*_operands(self, other))

    def __script__(self):
        spelling = _SPELLINGS.get(type(self).__name__)
        if spelling is None:
            raise PleatError(f"a node of the kind {type(self).__name__} has no value in a script")
        if not spelling.isidentifier():
            return f"({text_of(self.a)} {spelling} {text_of(self.b)})"
        operands = [self.fields[name] for name in self.ARGUMENTS if name in self.fields]
        return f"T.{spelling}({', '.join(map(text_of, operands))})"

    def index_expression(self):
        """The same as an expression of index maps, in which sizes stand for themselves by their names."""
        if isinstance(self, (Var, KINDS["IntImm"])):
            return _expression.var(self.name) if isinstance(self, Var) else _expression.const(self.value)
        spelling = _SPELLINGS.get(type(self).__name__)
        if spelling not in ("+", "-", "*", "//", "%"):
            raise TypeError(f"{self!r} is no index expression: an integer, a size, or what + - * // % make of them")
        return _expression.make(spelling, self.a, self.b)

    def __neg__(self):
        return binary("Sub", const(0, self.dtype), self)

    def __invert__(self):
        return KINDS["Call"](self.dtype, "tir.bitwise_not", [self])

    def __bool__(self):
        raise TypeError(f"{self} is known only when the program runs; if_then_else chooses between two values")


class Equality:
    """The result of == or != of expressions: the expression EQ or NE where one is expected, and for
    Python's `if`, whether both are the same object, or are not."""

    __slots__ = ("kind", "a", "b")

    def __init__(self, kind, a, b):
        self.kind, self.a, self.b = kind, a, b

    def __bool__(self):
        return (self.a is self.b) == (self.kind == "EQ")

    def as_expression(self):
        return KINDS[self.kind](*_operands(self.a, self.b))

    asobject = as_expression

    def __script__(self):
        return self.as_expression().__script__()

    def __repr__(self):
        return repr(self.as_expression())


EqualOp = NotEqualOp = Equality  # TVM's names


def _is_operand(value):
    return isinstance(value, (PrimExpr, int, float)) or hasattr(value, "as_expression")


class Stmt(Node):
    """A statement."""


class Var(PrimExpr):
    """A variable."""

    ARGUMENTS = ("name", "[dtype]")
    buffer = None  # that a parameter stands for

    def _completed(self, fields):
        return {"name": fields["name"], "dtype": fields["dtype"] or "int32"}

    @classmethod
    def read(cls, fields):
        if "element_type" in fields:
            pointer = PointerType(PrimType(fields["element_type"]), fields["storage_scope"])
            fields = {"name": fields["name"], "dtype": pointer}
        return super().read(fields)

    def stand_for(self, buffer):
        """Gives a parameter the type of its buffer, as TVM does since 2026; its field `dtype` stays "handle"."""
        self.buffer, self.dtype = buffer, buffer.dtype

    @property
    def ty(self):
        if self.buffer is not None:
            return self.buffer
        return self.dtype

    @property
    def type_annotation(self):
        """The type that a variable was declared with: for memory, a PointerType."""
        return self.fields["dtype"]

    @property
    def shape(self):
        """The shape of the buffer that a parameter stands for."""
        if self.buffer is None:
            raise AttributeError(f"the variable '{self.name}' stands for no buffer, and has no shape")
        return self.buffer.shape

    @property
    def name_hint(self):
        return self.name

    def __script__(self):
        names = _size_names.get()
        if names:
            return names(self)
        number = self.__dict__.setdefault("_number", next(_var_numbers))
        return f"T.captured_var({self.name!r}, {self.fields['dtype']!r}, {number})"

    def __repr__(self):
        return self.name


class _Number(PrimExpr):
    ARGUMENTS = ("dtype", "value")

    def __eq__(self, other):
        if isinstance(other, (int, float)):
            return self.value == other
        if isinstance(other, _Number):
            return (self.value, self.dtype) == (other.value, other.dtype)
        return super().__eq__(other)

    def __ne__(self, other):
        equal = self == other
        return super().__ne__(other) if isinstance(equal, Equality) or equal is NotImplemented \
            else not equal

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return repr(self.value)

    def __bool__(self):
        return bool(self.value)

    def __script__(self):
        return f"T.{self.dtype}({self.value!r})"


def _fitting(value, dtype):
    if not fits(value, dtype):
        raise ValueError(f"{value!r} is no number of type {dtype}")
    return value


class IntImm(_Number):
    """An integer or truth value."""

    def _completed(self, fields):
        return {"dtype": fields["dtype"], "value": _fitting(int(fields["value"]), fields["dtype"])}

    @classmethod
    def read(cls, fields):
        is_large = fields["dtype"] == "uint64" and fields["value"] < 0  # the table has the bits of an int64
        return super().read({**fields, "value": fields["value"] + 2**64} if is_large else fields)

    def __int__(self):
        return self.value

    __index__ = __int__


class FloatImm(_Number):
    """A floating-point number."""

    def _completed(self, fields):
        return {"dtype": fields["dtype"], "value": _fitting(float(fields["value"]), fields["dtype"])}

    @classmethod
    def read(cls, fields):
        return super().read({**fields, "value": float(fields["value"])})

    def __float__(self):
        return self.value

    def __eq__(self, other):
        both = isinstance(other, FloatImm) and math.isnan(self.value) and math.isnan(other.value)
        return True if both else super().__eq__(other)

    __hash__ = _Number.__hash__


class StringImm(PrimExpr):
    """A string."""

    ARGUMENTS = ("value",)

    def _completed(self, fields):
        return {"value": fields["value"], "dtype": "string"}

    def __eq__(self, other):
        return self.value == (other.value if isinstance(other, StringImm) else other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(self.value)

    def __script__(self):
        return repr(self.value)

    def __repr__(self):
        return repr(self.value)


class BufferLoad(PrimExpr):
    """An element of a buffer; TVM calls `buffer` the `source` since 2026."""

    ARGUMENTS = ("buffer", "indices")
    TYPE = staticmethod(lambda fields: with_lanes(fields["buffer"].dtype, _load_lanes(fields)))

    @property
    def source(self):
        return self.buffer


class Binary(PrimExpr):
    """An operation on two expressions of one type; a Python number takes the type of the other."""

    ARGUMENTS = ("a", "b")
    TYPE = staticmethod(lambda fields: fields["a"].dtype)

    def _completed(self, fields):
        a, b = (one.as_expression() if isinstance(one, Equality) else one for one in (fields["a"], fields["b"]))
        if not isinstance(a, Node):
            a = const(a, b.dtype) if isinstance(b, Node) else converted(a)
        b = b if isinstance(b, Node) or not hasattr(a, "dtype") else const(b, a.dtype)
        for one in (a, b):
            if not hasattr(one, "dtype"):
                raise TypeError(f"{type(self).__name__} of expressions, not of {one!r}")
        if a.dtype != b.dtype:
            raise TypeError(f"{type(self).__name__} of {a.dtype} and {b.dtype}: cast one of them")
        return super()._completed({"a": a, "b": b})


class Comparison(Binary):
    """A comparison of two expressions of one type."""

    TYPE = staticmethod(lambda fields: with_lanes("bool", lanes_of(fields["a"].dtype)))


def const(value, dtype=None):
    """A number as an expression of a type; None: int32, float32 or bool, or a larger type that has it."""
    value = value.item() if hasattr(value, "item") else value
    dtype = type_of_number(value) if dtype is None else full_name(dtype)
    number = (FloatImm if _is_float(dtype) else IntImm)(with_lanes(dtype, 1), value)
    return number if lanes_of(dtype) == 1 else KINDS["Broadcast"](number, lanes_of(dtype))


def converted(value):
    """Python numbers, strings and sequences as expressions and lists of them."""
    if isinstance(value, (list, tuple)):
        return [converted(item) for item in value]
    if isinstance(value, (bool, int, float)):
        return const(value)
    if isinstance(value, (Equality, Value)):
        return value.as_expression()
    return StringImm(value) if isinstance(value, str) else value


def binary(kind, a, b):
    return KINDS[kind](a, b)


def _folded(kind, fold, a, b):
    """The constant for two integer constants of one type, where it fits; otherwise None."""
    types = {one.dtype for one in (a, b) if isinstance(one, Node)}
    plain = all(isinstance(one, (int, IntImm)) and not isinstance(one, bool) for one in (a, b))
    form = re.fullmatch(r"(u?)int(\d+)", types.pop()) if plain and len(types) == 1 else None
    if not form or (kind.startswith("Floor") and int(b) == 0):
        return None
    value, bits = fold(int(a), int(b)), int(form[2])
    least = 0 if form[1] else -2 ** (bits - 1)
    return IntImm(form[0], value) if least <= value < least + 2 ** bits else None


def _arithmetic(kind, fold):
    def apply(a, b):
        constant = _folded(kind, fold, a, b)
        return binary(kind, a, b) if constant is None else constant
    return apply


def _bitwise(name, a, b):
    a = a if isinstance(a, Node) else const(a, b.dtype)
    return KINDS["Call"](a.dtype, f"tir.{name}", [a, b if isinstance(b, Node) else const(b, a.dtype)])


def _wider(a, b):
    """The type to which TVM converts operands of the types a and b."""
    if _is_float(a) != _is_float(b):
        return a if _is_float(a) else b
    bits = [int((re.search(r"\d+", dtype) or ["1"])[0]) for dtype in (a, b)]
    return a if bits[0] > bits[1] or (bits[0] == bits[1] and a.startswith("int")) else b


def matched(a, b):
    """Two expressions, the one of the narrower type converted to that of the other, and one of a single value
    to as many lanes."""
    lanes = lanes_of(a.dtype), lanes_of(b.dtype)
    if lanes[0] != lanes[1] and 1 in lanes and all(isinstance(one, int) for one in lanes):
        a, b = (one.astype(with_lanes(one.dtype, max(lanes))) for one in (a, b))
    if a.dtype == b.dtype or lanes_of(a.dtype) != lanes_of(b.dtype):
        return a, b
    dtype = _wider(a.dtype, b.dtype)
    return tuple(const(one.value, dtype) if isinstance(one, _Number) and fits(one.value, dtype)
                 else one.astype(dtype) for one in (a, b))


def _operands(mine, other):
    """An expression and what _is_operand: two expressions of one type, or a Python number that gets the
    type of the first."""
    other = other.as_expression() if hasattr(other, "as_expression") else other
    if isinstance(other, float) and not _is_float(mine.dtype):
        other = const(other)
    return matched(mine, other) if isinstance(other, PrimExpr) else (mine, other)


def _operator(apply, reflected):
    def method(self, other):
        if not _is_operand(other):
            return NotImplemented
        mine, other = _operands(self, other)
        return apply(other, mine) if reflected else apply(mine, other)
    return method


def _divide(a, b):
    for one in (a, b):
        if isinstance(one, Node) and not _is_float(one.dtype):
            raise TypeError("/ on integers is ambiguous: use //, or nodes.Div, which truncates")
    return binary("Div", a, b)


for _method, _apply in {
        "add": _arithmetic("Add", operator.add), "sub": _arithmetic("Sub", operator.sub),
        "mul": _arithmetic("Mul", operator.mul), "truediv": _divide,
        "floordiv": _arithmetic("FloorDiv", operator.floordiv),
        "mod": _arithmetic("FloorMod", operator.mod),
        "and": lambda a, b: _bitwise("bitwise_and", a, b),
        "or": lambda a, b: _bitwise("bitwise_or", a, b),
        "xor": lambda a, b: _bitwise("bitwise_xor", a, b),
        "lshift": lambda a, b: _bitwise("shift_left", a, b),
        "rshift": lambda a, b: _bitwise("shift_right", a, b)}.items():
    setattr(PrimExpr, f"__{_method}__", _operator(_apply, False))
    setattr(PrimExpr, f"__r{_method}__", _operator(_apply, True))
for _method in ("lt", "le", "gt", "ge"):
    setattr(PrimExpr, f"__{_method}__",
            _operator(lambda a, b, kind=_method.upper(): binary(kind, a, b), False))


# ---- Buffers and functions ------------------------------------------------------------------------

class Buffer(Node):
    """A buffer: a description of memory over the variable `data`. decl_buffer makes one."""

    ARGUMENTS = ("name", "dtype", "data", "shape", "[strides]", "[elem_offset]", "[axis_separators]",
                 "[data_alignment]", "[offset_factor]", "[storage_scope]", "[buffer_type]", "[layout]")

    @property
    def ty(self):
        """The buffer, since its type has the same fields in TVM since 2026."""
        return self

    def scope(self):
        return self.storage_scope

    def __getitem__(self, indices):
        return BufferLoad(self, list(indices) if isinstance(indices, tuple) else [indices])

    def __getattr__(self, name):
        if name not in ("access_ptr", "get_flattened_buffer", "offset_of", "vload", "vstore"):
            raise AttributeError(f"a Buffer has no attribute {name!r}")
        from pleat.tir import buffer_access
        method = getattr(buffer_access, {"get_flattened_buffer": "flattened"}.get(name, name))
        return functools.partial(method, self)

    __iter__ = None  # elements are expressions, of which there would be no last one

    def __repr__(self):
        return f"Buffer({self.name}, {_brief(self.shape)}, {self.dtype!r})"


def decl_buffer(shape, dtype="float32", name="buffer", data=None, strides=None, elem_offset=None,
                scope="global", data_alignment=0, offset_factor=0, axis_separators=None, layout=None):
    """A buffer, with a data variable of its own unless one is given. With an offset_factor and without
    elem_offset, its offset is a variable of its own."""
    shape = shape if isinstance(shape, (list, tuple)) else [shape]
    if offset_factor and elem_offset is None:
        elem_offset = Var(f"{name}_elem_offset", "int32")
    if data is None:
        data = Var(name, PointerType(PrimType(dtype), scope or "global"))
    elif isinstance(data.dtype, PointerType):
        scope = data.dtype.storage_scope
    return Buffer(name, dtype, data, list(shape), strides, elem_offset, axis_separators,
                  max(data_alignment, 0), offset_factor, scope or "global", layout=layout)


class PrimFuncNode(Node):
    """The node of a function; `buffer_map` is a dictionary from parameters to buffers."""

    ARGUMENTS = ("name", "params", "body", "[ret_type]", "[buffer_map]", "[attrs]",
                 "[implied_symbol]", "[is_newer]")

    @classmethod
    def read(cls, fields):
        buffers = dict(map(tuple, fields["buffer_map"]))
        for param, buffer in buffers.items():
            param.stand_for(buffer)
        return super().read({**fields, "buffer_map": buffers})


class ForKind:
    """The values of For.kind."""
    SERIAL, PARALLEL, VECTORIZED, UNROLLED, THREAD_BINDING = range(5)


class IterVar(Node):
    """A variable of a block, or of a thread, with its domain."""
    DataPar, ThreadIndex, CommReduce, Ordered, Opaque = range(5)
    _TYPES = ("DataPar", "ThreadIndex", "CommReduce", "Ordered", "Opaque")
    ARGUMENTS = ("dom", "var", "[iter_type]", "[thread_tag]")

    def _completed(self, fields):
        """The domain may be a pair of its ends, and the variable a name."""
        dom, var = fields["dom"], fields["var"]
        if isinstance(dom, (list, tuple)):
            if len(dom) != 2:
                raise ValueError(f"the domain of an IterVar has two ends: {dom!r}")
            dom = Range(*dom)
        if isinstance(var, str):
            var = Var(var, "int32" if dom is None else dom.extent.dtype)
        return super()._completed({**fields, "dom": dom, "var": var})

    def __script__(self):
        end = None if self.dom is None else _arithmetic("Add", operator.add)(self.dom.min, self.dom.extent)
        domain = "None" if self.dom is None else f"T.Range({text_of(self.dom.min)}, {text_of(end)})"
        kind = self._TYPES[self.iter_type]
        return f"T.iter_var({text_of(self.var)}, {domain}, {kind!r}, {self.thread_tag!r})"


class Range(Node):
    """The integers from `min` on, `extent` of them. Range(begin, end) ends before `end`, and Range(end)
    begins at 0."""
    ARGUMENTS = ("min", "extent")

    def __init__(self, begin=0, end=None, *, min=None, extent=None):
        if extent is not None:
            super().__init__(min, extent)
            return
        begin, end = (0, begin) if end is None else (converted(begin), converted(end))
        is_zero = isinstance(begin, (int, IntImm)) and int(begin) == 0
        super().__init__(begin, end if is_zero else end - begin)

    @classmethod
    def from_min_extent(cls, min_value, extent):
        return cls(min=min_value, extent=extent)


class _Scope(Stmt):
    """A statement that defines something for its body, which may be left out in a SeqStmt."""

    def with_rest(self, rest):
        """The statement with the ones behind it as its body."""
        return self.with_fields(body=one_statement(rest))


def stmt_list(stmt):
    """The statements of a SeqStmt, or the statement alone."""
    return list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]


def one_statement(parts):
    """Statements as one, which of none does nothing."""
    return parts[0] if len(parts) == 1 else SeqStmt(parts) if parts else KINDS["Evaluate"](0)


def is_open(stmt):
    """Is it a definition for the statements behind it?"""
    scope = stmt.body if isinstance(stmt, AllocBuffer) else stmt
    return isinstance(scope, _Scope) and scope.body is None


class LetStmt(_Scope):
    """A name for a value in the body; TVM calls it Bind since 2026."""
    ARGUMENTS = ("var", "value", "[body]")


class DeclBuffer(_Scope):
    """A buffer over memory that exists. With `data`, an expression, the buffer's own pointer gets this value first:
    a LetStmt around the declaration, which a program has in its place."""
    ARGUMENTS = ("buffer", "[body]", "[data]")

    def _completed(self, fields):
        done = super()._completed(fields)
        if done["data"] is None or done["data"] is done["buffer"].data:
            del done["data"]
        return done

    @property
    def data(self):
        return self.fields.get("data", self.buffer.data)

    def spelled_out(self):
        """The declaration with a LetStmt for its pointer, where it has another value."""
        if "data" not in self.fields:
            return self
        return LetStmt(self.buffer.data, self.fields["data"], DeclBuffer(self.buffer, self.body))


class Allocate(_Scope):
    """Memory for the body."""
    ARGUMENTS = ("buffer_var", "dtype", "extents", "condition", "body", "[annotations]")

    @classmethod
    def read(cls, fields):
        below = fields["body"]
        is_sole = cls is Allocate and isinstance(below, DeclBuffer) and \
            below.buffer.data is fields["buffer_var"] and below.buffer.dtype == fields["dtype"]
        return super(Allocate, AllocBuffer if is_sole else cls).read(fields)


class AllocBuffer(Allocate):
    """An Allocate with the DeclBuffer of its memory as its body; `buffer` is declared there.
    AllocBuffer(buffer, annotations, body) makes both."""

    def __init__(self, *values, **named):
        if not (values and isinstance(values[0], Buffer)) and "buffer" not in named:
            super().__init__(*values, **named)
            return
        given = {**dict(zip(("buffer", "annotations", "body"), values)), **named}
        buffer = given["buffer"]
        super().__init__(buffer.data, buffer.dtype, buffer.shape, const(True),
                         DeclBuffer(buffer, given.get("body")), given.get("annotations"))

    @property
    def buffer(self):
        return self.body.buffer

    def with_rest(self, rest):
        return self.with_fields(body=self.body.with_rest(rest))


class AllocateConst(Stmt):
    """An array of constants: `data` has its elements in row-major order, as a list or, where they are many, as
    another sequence of numbers (np.asarray(data) copies nothing)."""
    ARGUMENTS = ("buffer_var", "dtype", "extents", "data", "body")

    def _completed(self, fields):
        return {**fields, "extents": list(fields["extents"]), "data": elements_of(fields["data"], str(fields["dtype"]))}

    @classmethod
    def read(cls, fields):
        data = fields["data"]
        if isinstance(data, dict):
            data = elements_in_base64(data["base64"], str(fields["dtype"]))
        return super().read({**fields, "data": data})


class SeqStmt(Stmt):
    """Statements, one after the other; those of a SeqStmt among them count as its own. A LetStmt, a DeclBuffer or
    an AllocBuffer without a body is for the statements behind it."""
    ARGUMENTS = ("seq",)

    def _completed(self, fields):
        seq = []
        for one in converted(fields["seq"]):
            seq.extend(one.seq if isinstance(one, SeqStmt) else [one])
        return {"seq": seq}

    def __getitem__(self, i):
        return self.seq[i]

    def __len__(self):
        return len(self.seq)


class Call(PrimExpr):
    """A call of the operation `op`, such as "tir.exp", or of a function of the module."""
    ARGUMENTS = ("dtype", "op", "args")

    def _set(self, fields):
        kind = Op if "." in fields["op"] else GlobalVar
        super()._set({**fields, "op": kind(fields["op"])})

    def __script__(self):
        if "." not in self.op:  # a function of the module
            return f"{self.op}({', '.join(map(text_of, self.args))})"
        op = f"tvm.ir.Op.get({str(self.op)!r})"
        return f"T.Call({text_of(self.dtype)}, {op}, [{', '.join(map(text_of, self.args))}])"


# ---- The other kinds ------------------------------------------------------------------------------

_SAME_TYPE = {name: lambda fields, name=name: fields[name].dtype
              for name in ("a", "true_value", "body")}
_EXPRESSIONS = {
    "Cast": ("dtype value", None),
    "Not": ("a", _SAME_TYPE["a"]),
    "Select": ("condition true_value false_value", _SAME_TYPE["true_value"]),
    "Let": ("var value body", _SAME_TYPE["body"]),
    "Ramp": ("base stride lanes", lambda f: with_lanes(f["base"].dtype, f["lanes"])),
    "Broadcast": ("value lanes", lambda f: with_lanes(f["value"].dtype, f["lanes"])),
    "Shuffle": ("vectors indices",
                lambda f: with_lanes(f["vectors"][0].dtype, len(f["indices"]))),
    "Array": ("fields", lambda f: "void"), "Map": ("fields", lambda f: "void"),
    "Lambda": ("fields", lambda f: "void"), "None": ("", lambda f: "handle"),
}
_STATEMENTS = {
    "For": "loop_var min extent kind body [thread_binding] [annotations]",
    "BufferStore": "buffer value indices",
    "IfThenElse": "condition then_case [else_case]",
    "While": "condition body",
    "AssertStmt": "condition message [body]",
    "Evaluate": "value",
    "BlockRealize": "iter_values predicate block",
    "Block": "iter_vars reads writes name_hint body [init] [alloc_buffers] [match_buffers] "
             "[annotations]",
    "AttrStmt": "node attr_key value body",
}
_PARTS = {"BufferRegion": "buffer region", "MatchBufferRegion": "buffer source"}


def _kinds():
    kinds = {kind.__name__: kind for kind in (
        PrimType, PointerType, Var, IntImm, FloatImm, StringImm, BufferLoad, Buffer, IterVar, Range, ForKind, SeqStmt,
        Call, LetStmt, DeclBuffer, Allocate, AllocBuffer, AllocateConst, Node, PrimExpr, Stmt)}
    kinds["PrimFunc"] = PrimFuncNode

    def add(name, base, arguments=None, rule=None):
        members = {"__module__": __name__}
        if arguments is not None:
            members["ARGUMENTS"] = tuple(arguments.split())
        if rule:
            members["TYPE"] = staticmethod(rule)
        kinds[name] = type(name, (base,), members)
    for name in "Add Sub Mul Div Mod FloorDiv FloorMod Min Max And Or".split():
        add(name, Binary)
    for name in "EQ NE LT LE GT GE".split():
        add(name, Comparison)
    for name, (arguments, rule) in _EXPRESSIONS.items():
        add(name, PrimExpr, arguments, rule)
    for name, arguments in _STATEMENTS.items():
        add(name, Stmt, arguments)
    for name, arguments in _PARTS.items():
        add(name, Node, arguments)
    return kinds


KINDS = _kinds()
NAMES = {**{kind: name for name, kind in KINDS.items()}, AllocBuffer: "Allocate"}  # in tables
KINDS.update(Expr=PrimExpr, SBlock=KINDS["Block"], SBlockRealize=KINDS["BlockRealize"], Bind=LetStmt)
globals().update({name: kind for name, kind in KINDS.items() if name not in ("None", "PrimFunc")})


def _brief(value):
    if isinstance(value, list):
        return f"[{', '.join(_brief(item) for item in value)}]"
    return f"{type(value).__name__}(…)" if isinstance(value, Stmt) else repr(value)


def _bounds_text(one, form):
    end = one.extent if one.min == 0 else one.min + one.extent
    return form.format(one.min, end)


def _region_text(region):
    parts = [str(one.min) if isinstance(one.extent, IntImm) and one.extent == 1 else _bounds_text(one, "{}:{}")
             for one in region.region]
    return f"{region.buffer.name}[{', '.join(parts)}]"


# The texts of nodes that are no expressions or statements.
_TEXTS = {"Range": lambda one: _bounds_text(one, "I.Range({}, {})"), "BufferRegion": _region_text}


# ---- Comparing ------------------------------------------------------------------------------------

# The fields that define variables and buffers, by the kind of node.
_DEFINES = {"For": {"loop_var"}, "LetStmt": {"var"}, "Let": {"var"}, "IterVar": {"var"},
            "Allocate": {"buffer_var"}, "AllocateConst": {"buffer_var"}, "DeclBuffer": {"buffer"},
            "Block": {"alloc_buffers"}, "MatchBufferRegion": {"buffer"},
            "PrimFuncNode": {"params", "buffer_map"}}


def _is_read_again(a, b):
    """Are these the variable or buffer of one name before and after a pass?"""
    if not hasattr(a, "read_with") or not hasattr(b, "read_with") or a.name != b.name:
        return False
    (reading, sources), (other_reading, other_sources) = a.read_with, b.read_with
    return reading is not other_reading and not sources.isdisjoint(other_sources)


class _Comparison:
    """Compares nodes. Variables and buffers get a partner where they are defined, and free ones, if
    maps_free, where they first occur; the others must be the same."""

    def __init__(self, maps_free):
        self.maps_free, self.partners = maps_free, {}

    def _partners(self, a, b, defines):
        """Are two variables, or buffers, partners? None: they became partners just now."""
        if id(a) in self.partners or id(b) in self.partners:
            return self.partners.get(id(a)) is b and self.partners.get(id(b)) is a
        if not defines and not self.maps_free and not _is_read_again(a, b):
            return a is b
        self.partners[id(a)], self.partners[id(b)] = b, a
        return None

    def same(self, a, b, defines=False):
        a, b = (one.as_expression() if isinstance(one, (Equality, Value)) else one for one in (a, b))
        if type(a) is not type(b):
            plain, other = (a, b) if isinstance(a, (int, float)) else (b, a)
            return isinstance(plain, (int, float)) and isinstance(other, _Number) and other.value == plain
        if isinstance(a, (Var, Buffer)):
            known = self._partners(a, b, defines)
            if known is not None:
                return known
            if isinstance(a, Var):
                return a.dtype == b.dtype
        if isinstance(a, _Number):
            return a == b
        if isinstance(a, Node):
            return self._same_fields(a, b)
        if isinstance(a, dict) and any(isinstance(key, Node) for key in a):
            return self.same([list(item) for item in a.items()],
                             [list(item) for item in b.items()], defines)
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(self.same(a[k], b[k]) for k in a)
        if isinstance(a, list):
            return len(a) == len(b) and all(self.same(x, y, defines) for x, y in zip(a, b))
        return a == b

    def _same_fields(self, a, b):
        is_buffer = isinstance(a, Buffer)
        names = [name for name in a.fields if not (is_buffer and name == "name")]
        defined = {"data"} if is_buffer else _DEFINES.get(type(a).__name__, ())
        names.sort(key=lambda name: name not in defined)  # what is defined comes first
        return a.fields.keys() == b.fields.keys() and all(
            self.same(a.fields[name], b.fields[name], name in defined) for name in names)


def nodes_equal(a, b, map_free_vars=True):
    """Are two nodes equal up to the names of the variables and buffers that they define? Those that they
    do not define must be the same ones; before and after a pass they are those of one name. With
    map_free_vars they may differ too."""
    from pleat.tir.scopes import closed
    return _Comparison(map_free_vars).same(closed(a), closed(b))
