# SPDX-License-Identifier: Apache-2.0
"""BlockBuilder, which builds graph functions call by call. Its result is the text of TVMScript, which the
library reads."""
import contextlib
import re

from pleat._library import PleatError, _lib, ffi
from pleat.ir._module import IRModule, print_handle
from pleat.relax.emitted import emitted, number_type, program_name
from pleat.relax.expr import GlobalVar, StatedCall, TensorStructInfo, Var, call_tir
from pleat.relax.transform import Normalize
from pleat.script import relax as R, tir as T
from pleat.script._parse import parse
from pleat.script._values import Value, free_name, text_of
from pleat.tir.nodes import Var as Size, sizes_named


class _Function:
    """The function that is being built."""

    def __init__(self, name, params, attrs, private):
        self.name, self.attrs, self.private = name, attrs or {}, private
        self.lines, self.returns, self.outputs, self.params = [], None, None, []
        self.names, self.sizes, self.renamed = {"cls", "R", "T", "I"}, {}, {}
        self.take(params or [])

    def take(self, params):
        """Adds parameters, whose extents may be names of sizes."""
        for param in params:
            param.name_hint = self.free_name(param.name_hint)
            info = param.struct_info
            if isinstance(info, TensorStructInfo) and info.shape is not None:
                shape = [self.size_named(e) if isinstance(e, str) else e for e in info.shape]
                param._struct_info = TensorStructInfo(shape, info.dtype)
            self.params.append(param)

    def free_name(self, hint):
        """A name like the hint that no other variable has."""
        name = free_name(hint, self.names.__contains__)
        self.names.add(name)
        return name

    def size_named(self, name):
        for size, taken in self.sizes.items():
            if taken == name:
                return size
        size = Size(name, "int64")
        self.size_name(size)
        return size

    def size_name(self, size):
        """The name of a size in the text."""
        if size not in self.sizes:
            self.sizes[size] = self.free_name(size.name)
        return self.sizes[size]

    def text(self, returns):
        """The lines of the function; `returns` is the text of its result."""
        with sizes_named(self.size_name):
            params = ", ".join(f"{p.name_hint}: {_annotation(p.struct_info)}" for p in self.params)
            attrs = [f"    R.func_attr({text_of(self.attrs)})"] if self.attrs else []
        return [f"@R.function{'(private=True)' if self.private else ''}", f"def {self.name}({params}):",
                *attrs, *(f"    {name} = T.{size.dtype}()" for size, name in self.sizes.items()),
                "    cls = _Module", *(f"    {line}" for line in self.lines), f"    return {returns}"]


def _annotation(info):
    return info.annotation() if isinstance(info, TensorStructInfo) else text_of(info)


class BlockBuilder:
    """Builds the functions of a module, as TVM's does:

        bb = relax.BlockBuilder()
        with bb.function("main", [x, w]):
            with bb.dataflow():
                y = bb.emit(relax.op.matmul(x, w))
                z = bb.emit_output(relax.op.nn.relu(y))
            bb.emit_func_output(z)
        module = bb.get()

    The library reads each function when it ends, and refuses one that is not well formed."""

    def __init__(self, mod=None):
        self._module = mod.clone() if mod is not None else IRModule()
        self._function = None

    # ---- Functions

    @contextlib.contextmanager
    def function(self, name, params=None, attrs=None, private=False):
        """The function that the calls in the `with` build. params: a list of relax.Var"""
        if self._function:
            raise PleatError(f"the function '{self._function.name}' has not ended")
        self._function = _Function(name, params, attrs, private)
        try:
            yield
            if self._function.returns is None:
                raise PleatError(f"the function '{name}' has no result: call emit_func_output")
            self._module = IRModule(handle=self._read(self._function.returns))
        finally:
            self._function = None

    @contextlib.contextmanager
    def dataflow(self):
        """A part of the function without side effects. What it gives to the rest is emitted by
        emit_output."""
        function = self._current()
        begin, function.outputs = len(function.lines), []
        function.lines.append("with R.dataflow():")
        yield
        outputs, function.outputs = function.outputs, None
        if len(function.lines) == begin + 1:
            function.lines.pop()
        elif outputs:
            function.lines.append(f"    R.output({', '.join(outputs)})")

    def emit_func_output(self, output, params=None):
        """Ends the function with its result: an expression, or a tuple of some."""
        function = self._current()
        function.take(params or [])
        output = tuple(output) if isinstance(output, list) else output
        function.returns = self._text(output)

    def add_func(self, func, func_name):
        """Adds a function to the module under this name, or one like it; returns its GlobalVar."""
        name = free_name(func_name, self._module.__contains__)
        self._module[name] = func
        return GlobalVar(name)

    def update_func(self, gv, updated_func):
        """Replaces a function of the module."""
        self._module[str(gv)] = updated_func

    def get(self):
        """The module."""
        return self._module.clone()

    finalize = get

    # ---- Bindings

    def emit(self, expr, name_hint=""):
        """Binds an expression to a new variable, which it returns."""
        inside = self._current().outputs is not None
        return self._bind(expr, name_hint or ("lv" if inside else "gv"))

    def emit_output(self, output, name_hint=""):
        """Binds an expression to a variable that the rest of the function may use."""
        function = self._current()
        if function.outputs is None:
            raise PleatError("emit_output stands within `with bb.dataflow()`")
        if isinstance(output, (tuple, list)):
            return tuple(self.emit_output(one, name_hint) for one in output)
        made = self._bind(output, name_hint or "gv")
        function.outputs.append(made.name_hint)
        if isinstance(output, Var):  # outside of the dataflow, the old name means the new one
            function.renamed[output] = made.name_hint
        return made

    def emit_te(self, func, *args, **options):
        """Computes an expression by a function of te.Tensors, to which the tensors among the arguments
        are given as such. primfunc_name_hint: the name of the tensor program; primfunc_attrs: its
        attributes"""
        return self.emit(self.call_te(func, *args, **options))

    def call_te(self, func, *args, primfunc_name_hint=None, **options):
        """The call of emit_te as an expression."""
        from pleat import te

        def operand(value):
            var = value if isinstance(value, Var) else self.emit(value)
            number = number_type(var.struct_info)
            if number:
                return var, Size(var.name_hint, number)
            return var, te.placeholder(var.shape, var.dtype, name=var.name_hint)
        program, inputs, types = emitted(func, args, options, operand)
        return call_tir(self.add_func(program, program_name(func, primfunc_name_hint)), inputs, types)

    def match_cast(self, value, struct_info, name_hint=""):
        """States the type of a value, which a run checks."""
        return self.emit(Value("R.match_cast")(value, struct_info), name_hint)

    # ---- Text

    def _current(self):
        if not self._function:
            raise PleatError("this stands within `with bb.function(…)`")
        return self._function

    def _text(self, expr):
        """The text of an expression at this place of the function."""
        function = self._current()
        with sizes_named(function.size_name):
            return text_of(_renamed(expr, {} if function.outputs is not None else function.renamed))

    def _bind(self, expr, hint):
        function = self._current()
        text = self._text(expr)
        stated = expr.stated_info if isinstance(expr, StatedCall) else None
        var = Var(function.free_name(hint), stated, builder=self)
        function.lines.append(f"{'    ' * (function.outputs is not None)}{var.name_hint} = {text}")
        return var

    def _read(self, returns):
        """The module with the function as it is so far, which gives `returns`."""
        text = print_handle(self._module._handle)
        name = ffi.string(_lib.pleat_module_name(self._module._handle)).decode() or "Module"
        lines = [line.replace("cls = _Module", f"cls = {name}") for line in self._function.text(returns)]
        if not len(self._module):
            text = f"from pleat.script import ir as I, relax as R, tir as T\n@I.ir_module\nclass {name}:\n"
        return parse(text + "\n" + "".join(f"    {line}\n" for line in lines), "the function that is built")

    def infer(self, var):
        """The type of a variable of the function."""
        function = self._current()
        kept = list(function.lines)
        if function.outputs is not None:
            function.lines.append(f"    R.output({var.name_hint})")
        try:
            handle = self._read(var.name_hint)
        finally:
            function.lines = kept
        text = Normalize()(IRModule(handle=handle)).script(no_imports=True)
        return _type_of_result(text, function)


def _renamed(expr, names):
    if isinstance(expr, (tuple, list)):
        return type(expr)(_renamed(one, names) for one in expr)
    return Value(names[expr]) if isinstance(expr, Var) and expr in names else expr


def _type_of_result(text, function):
    """The type of what a normal function returns, from its text."""
    text = text[text.index(f"def {function.name}("):]
    name = re.search(r"\n +return (\w+)\n", text)[1]
    line = re.search(rf"\n +{name}(?:: (R\..*))? = (?:R\.call_tir\(.*, out_sinfo=(R\..*)\)\n)?", text)
    if line is None or not (line[1] or line[2]):
        raise PleatError(f"the type of '{name}' is not known")
    names = {name: size for size, name in function.sizes.items()}
    return eval(line[1] or line[2], {"R": R, "T": T, **names})  # noqa: S307 - text of the library


def function_of(params, body, attrs=None):
    """A graph function of variables and an expression of them."""
    builder, attrs = BlockBuilder(), dict(attrs or {})
    name = attrs.pop("global_symbol", "main")
    with builder.function(name, list(params), attrs):
        builder.emit_func_output(body)
    return builder.get()[name]
