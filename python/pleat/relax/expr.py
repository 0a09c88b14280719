# SPDX-License-Identifier: Apache-2.0
"""Expressions of graph functions for BlockBuilder: text of the script, as pleat.script.relax makes it.

    x = relax.Var("x", R.Tensor((n, 784), "float32"))
    relax.op.matmul(x, relax.op.permute_dims(w)) + b"""
from pleat._library import PleatError
from pleat.ir._module import Op
from pleat.script._values import Value, text_of

Expr = Value

__all__ = ["Call", "Expr", "GlobalVar", "TensorStructInfo", "TensorType", "Tuple", "Var", "call_dps_packed", "call_tir",
           "const"]


class TensorStructInfo(Value):
    """The type of a tensor, R.Tensor(shape, dtype). The extents in `shape` are numbers, names, or
    expressions of variables (tir.Var, T.int64()); it is None where it is not known."""

    def __init__(self, shape=None, dtype="float32", **options):
        stated = (() if shape is None else (shape,)), ({"dtype": dtype} if dtype else {})
        super().__init__(Value("R.Tensor")(*stated[0], **stated[1], **options)._text)
        self.shape = None if shape is None else tuple(shape)
        self.dtype, self.ndim = dtype or "", -1 if shape is None else len(self.shape)

    def annotation(self):
        """The text as the type of a parameter, where extents that are no numbers are strings."""
        if self.shape is None:
            return text_of(self)
        extents = [extent if isinstance(extent, (int, str)) else text_of(extent) for extent in self.shape]
        return text_of(TensorStructInfo(extents, self.dtype))


TensorType = TensorStructInfo


class TensorMaker(Value):
    """R.Tensor, whose calls with a shape are TensorStructInfo."""

    def __init__(self):
        super().__init__("R.Tensor")

    def __call__(self, *args, **options):
        names = ("shape", "dtype")
        given = {**dict(zip(names, args)), **options}
        if len(args) > 2 or set(given) != set(names) or not isinstance(given["shape"], (tuple, list)):
            return super().__call__(*args, **options)
        return TensorStructInfo(given["shape"], given["dtype"])


class Var(Value):
    """A variable of a graph function: a parameter, which has a type, or what BlockBuilder.emit gave."""

    bound_value = None

    def __init__(self, name_hint, struct_info=None, builder=None):
        super().__init__(lambda: self.name_hint)
        self.name_hint, self._struct_info, self._builder = name_hint, struct_info, builder

    @property
    def struct_info(self):
        """The type, which is inferred for a variable without one."""
        if self._struct_info is None:
            if self._builder is None:
                raise PleatError(f"the variable '{self.name_hint}' has no type: give it one")
            self._struct_info = self._builder.infer(self)
        return self._struct_info

    __hash__ = Value.__hash__

    def __eq__(self, other):  # identity, as in TVM
        return self is other

    def __ne__(self, other):
        return self is not other

    def __getitem__(self, index):
        return _item(self, index)

    ty = struct_info
    name = property(lambda self: self.name_hint)
    shape = property(lambda self: self.struct_info.shape)
    dtype = property(lambda self: self.struct_info.dtype)


def _item(value, index):
    """An item of a tuple."""
    from pleat.relax.nodes import TupleGetItem
    return TupleGetItem(value, index)


class GlobalVar(str):
    """A function of the module that is built, by its name; a call of it is an expression."""

    name_hint = property(str)

    def __call__(self, *args, **attrs):
        return Value(f"cls.{self}")(*args, **attrs)

    def __script__(self):
        return f"cls.{self}"


class Bindable(Value):
    """An expression that may be the value of a variable, `bound_to`, whose type it has."""

    bound_to = None

    @property
    def struct_info(self):
        """The type, which is known of the value of a variable."""
        if self.bound_to is None:
            raise PleatError(f"the type of `{self}` is not known: it is not bound to a variable")
        return self.bound_to.struct_info

    ty = struct_info


class Call(Bindable):
    """A call of an operator, such as relax.op.nn.relu or Op.get("relax.nn.relu"), or of a function of the
    module. `op` is the Op or the GlobalVar, `args` the operands, `attrs` a dictionary of the other arguments."""

    def __init__(self, op, args, attrs=None):
        if not callable(op):
            op = Op(f"relax.{str(getattr(op, 'name', op)).removeprefix('relax.')}")
        self.op, self.args, self.attrs = op, list(map(_tuple_of_values, args)), dict(attrs or {})
        function = Value(f"R.{op.name.partition('.')[2]}") if isinstance(op, Op) else op
        super().__init__(lambda: text_of(function(*self.args, **self.attrs)))

    def __getitem__(self, index):
        return _item(self, index)


def _tuple_of_values(operand):
    """An operand, where a list of expressions is a tuple of them."""
    is_tuple = isinstance(operand, (list, tuple)) and any(isinstance(one, (Bindable, Var)) for one in operand)
    return Tuple(operand) if is_tuple else operand


class Tuple(Bindable):
    """A tuple of expressions."""

    def __init__(self, fields):
        self.fields = list(fields)
        super().__init__(lambda: text_of(tuple(self.fields)))

    def __len__(self):
        return len(self.fields)

    def __iter__(self):
        return iter(self.fields)

    def __getitem__(self, index):
        return self.fields[index]


def const(value, dtype=None):
    """A constant: a number, a list or an array. Without dtype, numbers and lists have the type that R.const
    gives them, and arrays their own, but float32 for float64 and int32 for int64, as in TVM. ValueError where an
    integer does not fit that type"""
    own = str(getattr(value, "dtype", "")) or None
    dtype = dtype or {"float64": "float32", "int64": "int32"}.get(own, own)
    from pleat.relax.nodes import check_range, constant
    check_range(value, dtype)
    if hasattr(value, "astype") and own != str(dtype):
        value = value.astype(dtype)
    return constant(value, dtype)


def _arguments(args):
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


class StatedCall(Value):
    """A call that states the type of its result, which need not be inferred then."""

    def __init__(self, call, out_sinfo, out_ty, *args, **more):
        if out_sinfo is None and out_ty is None:
            raise TypeError("expected out_sinfo, the type of the result")
        stated = out_ty if out_sinfo is None else out_sinfo
        super().__init__(Value(call)(*args, out_sinfo=stated, **more)._text)
        is_known = isinstance(stated, TensorStructInfo) and stated.shape is not None
        self.stated_info = stated if is_known else None


def call_tir(gvar, args, out_sinfo=None, tir_vars=None, *, out_ty=None):
    """A call of a tensor program of the module, which BlockBuilder.add_func gives. out_sinfo, since 2026
    out_ty: the type of the result, or a list of types; tir_vars: values of its scalar parameters"""
    more = {} if tir_vars is None else {"tir_vars": tir_vars}
    return StatedCall("R.call_tir", out_sinfo, out_ty, Value(f"cls.{gvar}"), _arguments(args), **more)


def call_dps_packed(func, args, out_sinfo=None, *, out_ty=None):
    """A call of a function outside, which gets the result as its last argument. See call_tir."""
    return StatedCall("R.call_dps_packed", out_sinfo, out_ty, func, _arguments(args))
