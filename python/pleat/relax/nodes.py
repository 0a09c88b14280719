# SPDX-License-Identifier: Apache-2.0
"""The parts of a graph function, with TVM's classes and fields. Expressions are text of the script too, so
that they can be given to BlockBuilder and to PyExprMutator.

    module["main"].params[0].struct_info.shape
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            print(binding.var.name_hint, binding.value)"""
import ast
import math

import numpy as np

from pleat._library import PleatError
from pleat.ir._module import Op
from pleat.relax.expr import Bindable, Call, GlobalVar, TensorStructInfo, Tuple, Var
from pleat.script._contents import MOST_PRINTED, constant_text, large_contents, named
from pleat.script._values import Value, text_of

__all__ = ["BindingBlock", "Constant", "DataTypeImm", "DataflowBlock", "DataflowVar", "ExternFunc", "FuncStructInfo",
           "If", "LocalFunction", "MatchCast", "ObjectStructInfo", "PrimStructInfo", "PrimValue", "SeqExpr",
           "ShapeExpr", "ShapeStructInfo", "StringImm", "TupleGetItem", "TupleStructInfo", "VarBinding",
           "function_of", "post_order_visit"]


# ---- Types ---------------------------------------------------------------------------------------

class TupleStructInfo(Value):
    """R.Tuple(fields)"""

    def __init__(self, fields):
        self.fields = list(fields)
        super().__init__(lambda: f"R.Tuple({', '.join(map(text_of, self.fields))})")


class ShapeStructInfo(Value):
    """R.Shape(values), of which `values` is None where they are not known."""

    def __init__(self, values=None, ndim=-1):
        self.values = None if values is None else list(values)
        self.ndim = ndim if values is None else len(self.values)
        stated = f"ndim={ndim}" if values is None else f"[{', '.join(map(text_of, self.values))}]"
        super().__init__("R.Shape" if values is None and ndim < 0 else f"R.Shape({stated})")

    def annotation(self):
        """The text as the type of a parameter, where values that are no numbers are strings."""
        if self.values is None:
            return text_of(self)
        return text_of(ShapeStructInfo([one if isinstance(one, (int, str)) else text_of(one) for one in self.values]))


class PrimStructInfo(Value):
    """R.Prim(dtype)"""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f'R.Prim("{dtype}")')


class ObjectStructInfo(Value):
    """R.Object"""

    def __init__(self):
        super().__init__("R.Object")


class FuncStructInfo(Value):
    """R.Callable(params, ret, purity); `params` is None where they are not known."""

    def __init__(self, params, ret=None, purity=True):
        self.params, self.ret, self.purity = params, ObjectStructInfo() if ret is None else ret, purity
        given = "".join(f"{text_of(one)}, " for one in params or ())
        stated = "" if params is None else f"(({given}), {text_of(self.ret)}, {purity})"
        super().__init__(f"R.Callable{stated}")


# ---- Expressions ---------------------------------------------------------------------------------

class DataflowVar(Var):
    """A variable that is not known outside of its dataflow block."""


class Constant(Value):
    """R.const; `data` is an array."""

    def __init__(self, data, text=None):
        from pleat.nd import Tensor
        data = np.asarray(data)
        contents = None if text else large_contents(data)
        if contents is not None:
            data, text = contents.array(data.dtype, data.shape), constant_text(contents, data)
        self.data = data.view(Tensor)
        super().__init__(text or (lambda: f'R.const({self.data.tolist()}, "{self.data.dtype}")'))


class ShapeExpr(Value):
    """R.shape(values)"""

    def __init__(self, values):
        self.values = list(values)
        super().__init__(lambda: f"R.shape([{', '.join(map(text_of, self.values))}])")


def _wrapper(name, spelling, field="value"):
    def __init__(self, value):
        setattr(self, field, value)
        Value.__init__(self, lambda: f"{spelling}({text_of(value)})")
    return type(name, (Value,), {"__init__": __init__, "__doc__": f"{spelling}({field})", "__module__": __name__})


PrimValue = _wrapper("PrimValue", "R.prim_value")
StringImm = _wrapper("StringImm", "R.str")
DataTypeImm = _wrapper("DataTypeImm", "R.dtype")
ExternFunc = _wrapper("ExternFunc", "R.ExternFunc", "global_symbol")


class TupleGetItem(Bindable):
    """tuple_value[index]"""

    def __init__(self, tuple_value, index):
        self.tuple_value, self.index = tuple_value, index
        super().__init__(lambda: f"{text_of(tuple_value)}[{index}]")


class SeqExpr(Value):
    """Blocks of bindings, and the value `body` after them."""

    def __init__(self, blocks, body):
        self.blocks, self.body = list(blocks), body
        super().__init__(lambda: text_of(body))


class If(Value):
    """A branch, whose two sides are SeqExpr."""

    def __init__(self, cond, true_branch, false_branch):
        self.cond, self.true_branch, self.false_branch = cond, true_branch, false_branch
        super().__init__(lambda: f"{text_of(true_branch)} if {text_of(cond)} else {text_of(false_branch)}")


class VarBinding:
    """var = value"""

    def __init__(self, var, value):
        self.var, self.value = var, value

    def __repr__(self):
        return f"{self.var} = {self.value}"


class MatchCast(VarBinding):
    """var = R.match_cast(value, struct_info)"""

    def __init__(self, var, value, struct_info):
        super().__init__(var, value)
        self.struct_info = self.ty = struct_info


class BindingBlock:
    """Bindings in their order."""

    def __init__(self, bindings):
        self.bindings = list(bindings)

    def __repr__(self):
        return "\n".join(map(repr, self.bindings))


class DataflowBlock(BindingBlock):
    """Bindings without effects."""


class LocalFunction(Value):
    """A function: its params, body, ret_struct_info (None: not stated), attrs and is_pure."""

    def __init__(self, name, params, body, ret_struct_info, attrs, is_pure):
        self.params, self.body, self.ret_struct_info, self.attrs, self.is_pure = \
            params, body, ret_struct_info, attrs, is_pure
        super().__init__(name)


def same_expr(a, b):
    """Are two expressions, or shapes, the same text?"""
    a, b = (one.values if isinstance(one, ShapeExpr) else list(one) if isinstance(one, (tuple, Tuple)) else one
            for one in (a, b))
    return text_of(a) == text_of(b)


# ---- From the text of a script ---------------------------------------------------------------------

def _is(node, name):
    return isinstance(node, ast.Attribute) and ast.unparse(node) == name


def _literal(node):
    """A number or string, or the text of another value, such as a size."""
    if isinstance(node, ast.Constant) and node.value is not None:
        return node.value
    return Value(ast.unparse(node))


def _extents(node):
    """The extents of a shape, where a string is the name of a size; None for something else."""
    if not isinstance(node, (ast.Tuple, ast.List)):
        return None
    found = [_literal(item) for item in node.elts]
    return [Value(extent) if isinstance(extent, str) else extent for extent in found]


def tensor_type(text, dtype):
    """The type of the text R.Tensor(…), with this element type where it states none."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call):
        return TensorStructInfo(None, dtype)
    return _tensor_type(node.args, {one.arg: one.value for one in node.keywords}, dtype)


def _tensor_type(args, options, dtype="float32"):
    given = dict(zip(("shape", "dtype"), args)) | options
    if isinstance(given.get("shape"), ast.Constant) and isinstance(given["shape"].value, str):
        given["dtype"] = given.pop("shape")  # R.Tensor("float32", ndim=2)
    dtype = given["dtype"].value if "dtype" in given else dtype
    info = TensorStructInfo(_extents(given.get("shape")), dtype,
                            **({"ndim": _literal(given["ndim"])} if "ndim" in given else {}))
    if "ndim" in given:
        info.ndim = _literal(given["ndim"])
    return info


def _type(node):
    """The type that an annotation states."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        options = {one.arg: one.value for one in node.keywords}
        if _is(node.func, "R.Tensor"):
            return _tensor_type(node.args, options)
        if _is(node.func, "R.Tuple"):
            parts = node.args[0].elts if len(node.args) == 1 and isinstance(node.args[0], ast.List) else node.args
            return TupleStructInfo(map(_type, parts))
        if _is(node.func, "R.Shape"):
            ndim = _literal(options["ndim"]) if "ndim" in options else -1
            return ShapeStructInfo(_extents(node.args[0]) if node.args else None, ndim)
        if _is(node.func, "R.Prim"):
            return PrimStructInfo(_literal(node.args[0] if node.args else options["dtype"]))
        if _is(node.func, "R.Callable") and len(node.args) > 1:
            purity = [_literal(one) for one in (*node.args[2:], *options.values())]
            return FuncStructInfo([_type(one) for one in node.args[0].elts], _type(node.args[1]), *purity)
    known = {"R.Tensor": lambda: TensorStructInfo(None), "R.Shape": ShapeStructInfo,
             "R.Callable": lambda: FuncStructInfo(None)}
    return known.get(ast.unparse(node), ObjectStructInfo)()


def _stated_type(value):
    """The type that a call states of its result, or None."""
    stated = value.attrs.get("out_sinfo", value.attrs.get("out_ty")) if isinstance(value, Call) else None
    return TupleStructInfo(stated) if isinstance(stated, list) else stated


class _Reader:
    """Makes the parts of a function. `names` has the variables that are defined, and `types` gives the types that
    the text does not state: its `infer` is called with a variable."""

    def __init__(self, names, types=None):
        self.names, self.types, self.attrs = dict(names), types, {}

    def variable(self, make, name, info=None):
        """A new variable of a binding."""
        self.names[name] = make(name, info, self.types)
        return self.names[name]

    def function(self, node):
        for one in node.args.args:
            self.names[one.arg] = Var(one.arg, _type(one.annotation))
        params = [self.names[one.arg] for one in node.args.args]
        body = self.sequence(node.body)
        options = {one.arg: one.value.value for d in node.decorator_list if isinstance(d, ast.Call)
                   for one in d.keywords}
        return LocalFunction(node.name, params, body, _type(node.returns) if node.returns else None,
                             self.attrs, options.get("pure", True))

    # ---- Statements

    def sequence(self, statements):
        """Statements up to the one that gives the value."""
        blocks, body = [], None
        for one in statements:
            if isinstance(one, ast.Return):
                body = self.value(one.value)
            elif isinstance(one, ast.With):
                blocks.append(DataflowBlock(self.dataflow(one)))
            else:
                for binding in self.bindings(one, Var):
                    if not blocks or type(blocks[-1]) is DataflowBlock:
                        blocks.append(BindingBlock([]))
                    blocks[-1].bindings.append(binding)
        last = blocks[-1].bindings[-1].var if body is None and blocks else body
        return SeqExpr(blocks, last)

    def dataflow(self, block):
        calls = [one.value for one in block.body if isinstance(one, ast.Expr)]
        known = {argument.id for call in calls if _is(call.func, "R.output") for argument in call.args}
        found = []
        for one in block.body:
            found += self.bindings(one, lambda *parts: (Var if parts[0] in known else DataflowVar)(*parts))
        return found

    def bindings(self, one, make):
        if isinstance(one, ast.Expr):
            return self.statement(one.value, make)
        if isinstance(one, ast.FunctionDef):
            function = _Reader(self.names, self.types).function(one)
            return [VarBinding(self.variable(make, one.name), function)]
        if isinstance(one, ast.If):
            return [self.branch(one, make)]
        stated = isinstance(one, ast.AnnAssign)
        target, value = (one.target if stated else one.targets[0]), one.value
        if isinstance(value, ast.Call) and ast.unparse(value.func).startswith("T."):
            return []  # n = T.int64()
        cast = isinstance(value, ast.Call) and _is(value.func, "R.match_cast")
        source = self.value(value.args[0] if cast else value)
        info = _type(one.annotation) if stated else _type(value.args[1]) if cast else None
        var = self.variable(make, target.id, _stated_type(source) if info is None else info)
        var.bound_value = source
        if isinstance(source, Bindable) and not cast:
            source.bound_to = var
        return [MatchCast(var, source, info) if cast else VarBinding(var, source)]

    def statement(self, call, make):
        if _is(call.func, "R.func_attr"):
            self.attrs = ast.literal_eval(call.args[0])
        if _is(call.func, "R.func_attr") or _is(call.func, "R.output"):
            return []
        return [VarBinding(make("_"), self.value(call))]

    def branch(self, one, make):
        sides = [_Reader(self.names, self.types).sequence(body) for body in (one.body, one.orelse)]
        var = self.variable(make, text_of(sides[0].body))
        return VarBinding(var, If(self.value(one.test), *sides))

    # ---- Values

    def value(self, node):
        if isinstance(node, ast.Name):
            return self.names.get(node.id, Value(node.id))
        if isinstance(node, (ast.Tuple, ast.List)):
            return Tuple([self.value(item) for item in node.elts])
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return TupleGetItem(self.value(node.value), node.slice.value)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "cls":
            return GlobalVar(node.attr)
        return self.call(node) if isinstance(node, ast.Call) else _literal(node)

    def call(self, node):
        name, args = ast.unparse(node.func), node.args
        if name == "R.const":
            return _constant(node)
        if name == "R.shape":
            return ShapeExpr(_extents(args[0]))
        known = {"R.prim_value": PrimValue, "R.str": StringImm, "R.dtype": DataTypeImm, "R.ExternFunc": ExternFunc}
        if name in known:
            return known[name](_literal(args[0]))
        if not name.startswith("R."):
            op = self.names.get(name, GlobalVar(name.removeprefix("cls.")))
        else:
            op = Op("relax." + name.removeprefix("R."))
        attrs = {one.arg: self.attribute(one) for one in node.keywords}
        if name in ("R.call_tir", "R.call_dps_packed") and len(args) > 2:
            attrs["out_sinfo"] = self.attribute(ast.keyword("out_sinfo", args[2]))
            args = args[:2]
        operands = [self.value(argument) for argument in args]
        if name.startswith("R.call_tir") and type(operands[0]) is Value:
            operands[0] = GlobalVar(text_of(operands[0]))
        return Call(op, operands, attrs)

    def attribute(self, keyword):
        if keyword.arg in ("out_sinfo", "out_ty", "sinfo_args", "ty_args"):
            return [_type(item) for item in keyword.value.elts] \
                if isinstance(keyword.value, (ast.List, ast.Tuple)) else _type(keyword.value)
        try:
            return ast.literal_eval(keyword.value)
        except ValueError:
            return self.value(keyword.value)


def check_range(value, dtype):
    """Refuses integers that a narrower type does not hold, which astype would change."""
    numbers, stated = np.asarray(value), str(dtype or "int32")
    if numbers.dtype.kind not in "iuO" or not numbers.size or not stated.lstrip("u").startswith("int"):
        return
    for number in (numbers.min(), numbers.max()):
        if stated in np.sctypeDict and not np.iinfo(stated).min <= number <= np.iinfo(stated).max:
            raise ValueError(f"relax.const: {number} does not fit {stated}: state a wider dtype, such as \"int64\"")


def constant(value, dtype):
    """The constant that R.const(value, dtype) gives."""
    if np.size(value) > MOST_PRINTED:
        array, stated = np.asarray(value), str(dtype or "float32")
        if array.dtype.kind == "f" and stated in ("float16", "float32", "float64"):
            array = array.astype(stated, copy=False)
        if array.dtype.name == stated:
            return Constant(array)
    text = text_of(Value("R.const")(value, *([] if dtype is None else [str(dtype)])))
    text = text.replace(text_of(math.nan), 'T.float32("nan")')  # its elements are numbers, no expressions
    usual = {"i": "int32", "b": "bool"}.get(np.asarray(value).dtype.kind, "float32")
    dtype = str(dtype or usual)
    if np.size(value) == 0:
        text = f'R.zeros({np.shape(value)}, "{dtype}")'  # a list would not have all extents
    return Constant(np.asarray(value, dtype if dtype in np.sctypeDict else "float32"), text)


def _constant(node):
    text = ast.unparse(node)
    if len(node.args) > 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        return _named_constant(node, text)
    dtype = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else None
    try:
        data = ast.literal_eval(node.args[0])
    except ValueError:
        return Value(text)  # with infinities, or without its contents
    usual = "int32" if np.asarray(data).dtype.kind == "i" else "float32"
    return Constant(np.asarray(data).astype(dtype or usual if dtype != "bfloat16" else "float32"), text)


def _named_constant(node, text):
    """The constant of R.const("constant:…", R.Tensor(shape, dtype)), or its text where the contents are not known."""
    from pleat.model import dtype_of
    contents, info = named(node.args[0].value), _type(node.args[1])
    if contents is None:
        return Value(text)
    return Constant(contents.array(dtype_of(str(info.dtype)), tuple(info.shape)), text)


class InferredTypes:
    """The types of the variables of a graph function, which are inferred when one is first asked for.

    module: gives the module of the function"""

    def __init__(self, module, name):
        self._module, self._name, self._types = module, name, None

    def infer(self, var):
        if self._types is None:
            self._types = self._inferred()
        found, whole = self._types.get(var.name_hint, (None, None))
        if whole is not None and isinstance(var.bound_value, Call) and isinstance(var.bound_value.op, Op):
            return whole  # an operator with several results, of which the first one has its name there
        if found is None:
            found = self._derived(var.bound_value)
        if found is None:
            raise PleatError(f"the type of '{var.name_hint}' is not known")
        return found

    def _derived(self, value):
        """The type of an item of a tuple, or of what a function of the module returns; None for others."""
        if isinstance(value, TupleGetItem) and isinstance(value.tuple_value, (Var, Tuple)):
            whole = value.tuple_value.fields if isinstance(value.tuple_value, Tuple) else value.tuple_value.struct_info
            fields = whole if isinstance(whole, list) else getattr(whole, "fields", [])
            item = fields[value.index] if value.index < len(fields) else None
            return item.struct_info if isinstance(item, (Var, Bindable)) else item
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            module = self._module()
            return module[str(value.op)].ret_struct_info if str(value.op) in module else None
        return None

    def _inferred(self):
        from pleat.relax.transform import Normalize
        from pleat.script._parse import from_source
        module = self._module()
        if len(module) > 1:  # inlining must not give the names of this function to variables of others
            tree = ast.parse(module.script())
            for one in ast.walk(tree):
                if isinstance(one, ast.FunctionDef) and one.name != self._name and _is_graph(one):
                    _Prefixed(one)
            module = from_source(ast.unparse(tree))
        typed = function_of(Normalize()(module).script(), self._name)
        found = {}  # the type of each, and that of the tuple of which it is an item
        for one in (binding for block in typed.body.blocks for binding in block.bindings):
            is_item = isinstance(one.value, TupleGetItem)
            whole = found.get(text_of(one.value.tuple_value), (None,))[0] if is_item else None
            own = one.var._struct_info
            if own is None and isinstance(whole, TupleStructInfo):
                own = whole.fields[one.value.index]
            found[one.var.name_hint] = own, whole
        return found


def _is_graph(function):
    return any(ast.unparse(one).startswith("R.") for one in function.decorator_list)


class _Prefixed(ast.NodeTransformer):
    """Gives the variables of a function other names."""

    def __init__(self, function):
        self.own = {one.id for one in ast.walk(function)
                    if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        self.own |= {one.arg for one in function.args.args}
        self.own -= {"cls"}
        self.generic_visit(function)

    def _new(self, name):
        return f"other_{name}" if name in self.own else name

    def visit_Name(self, node):
        return ast.copy_location(ast.Name(self._new(node.id), node.ctx), node)

    def visit_arg(self, node):
        self.generic_visit(node)
        node.arg = self._new(node.arg)
        return node


def function_of(text, name, types=None):
    """The parts of the function of this name in the text of a script. types: see _Reader"""
    tree = ast.parse(text)
    for body in (tree.body, *(one.body for one in tree.body if isinstance(one, ast.ClassDef))):
        for one in body:
            if isinstance(one, ast.FunctionDef) and one.name == name:
                return _Reader({}, types).function(one)
    raise PleatError(f"there is no graph function '{name}'")


# ---- Visits ----------------------------------------------------------------------------------------

def _values_in(argument):
    """The expressions in an operand, which may be a list of them."""
    if isinstance(argument, (tuple, list)):
        return [one for part in argument for one in _values_in(part)]
    return [argument] if isinstance(argument, Value) else []


def _parts(expr):
    if isinstance(expr, SeqExpr):
        yield from (part for block in expr.blocks for one in block.bindings for part in (one.value, one.var))
        yield expr.body
    elif isinstance(expr, Call):
        yield from (one for argument in expr.args for one in _values_in(argument))
    elif isinstance(expr, Tuple):
        yield from expr.fields
    elif isinstance(expr, TupleGetItem):
        yield expr.tuple_value
    elif isinstance(expr, If):
        yield from (expr.cond, expr.true_branch, expr.false_branch)
    elif isinstance(expr, LocalFunction):
        yield from (*expr.params, expr.body)


def post_order_visit(expr, fvisit):
    """Calls fvisit with an expression and all in it, each once and after those that it is made of."""
    seen, stack = set(), [(expr, False)]
    while stack:
        one, done = stack.pop()
        if done:
            fvisit(one)
        elif id(one) not in seen:
            seen.add(id(one))
            stack.append((one, True))
            parts = list(_parts(getattr(one, "node", one) if not isinstance(one, Value) else one))
            stack += [(part, False) for part in reversed(parts)]
