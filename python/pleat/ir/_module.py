# SPDX-License-Identifier: Apache-2.0
"""Modules and functions as Python objects over those of the library (pleat/tir.h)."""
import functools
import json
import weakref

from pleat._library import PleatError, _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.script._contents import MOST_PRINTED, Printed
from pleat.script._parse import parse
from pleat.script._values import Value, text_of


class StructuralDifference(PleatError):
    """Raised by assert_structural_equal; the text shows the first difference in both programs."""


# ---- Calls of the library -----------------------------------------------------------------------

def _chars(text):
    return ffi.NULL if text is None else text.encode()


_sources = weakref.WeakKeyDictionary()  # of modules that were made of others


def sources_of(handle):
    """The modules that were read and of which this one was made, as a set of one object for each."""
    return _sources.setdefault(handle, frozenset([object()]))


def transformed(function, handle, *arguments):
    """The module that a function of the library makes of one, freed with the Python object."""
    result, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
    check_status(function(handle, *map(_argument, arguments), result, messages), messages)
    made = ffi.gc(result[0], _lib.pleat_module_free)
    modules = (one for one in (handle, *arguments) if isinstance(one, ffi.CData))
    _sources[made] = frozenset().union(*map(sources_of, modules))
    return made


def _argument(value):
    return _chars(value) if value is None or isinstance(value, str) else value


def _text(function, handle, *arguments):
    text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
    check_status(function(handle, *arguments, text, messages), messages)
    return _owned_text(text[0])


def printed(handle, newer_names=False, no_imports=False, annotate=False, most=MOST_PRINTED):
    """The text of a module, and the contents that it has by their names: those of constants with more than `most`
    elements."""
    taken = Printed(handle)
    options = ffi.new("PleatPrintOptions *", {
        "size": ffi.sizeof("PleatPrintOptions"), "newer_names": newer_names, "no_imports": no_imports,
        "annotate": annotate, "most_elements": most, "contents": taken.call_back})
    text = _text(_lib.pleat_module_print, handle, options)
    return text, taken.keep()


def print_handle(handle, **options):
    return printed(handle, **options)[0]


def _names(handle):
    return [ffi.string(_lib.pleat_module_function_name(handle, i)).decode()
            for i in range(_lib.pleat_module_function_count(handle))]


def _is_tensor_program(handle, name):
    return _lib.pleat_module_function_is_tensor_program(handle, _names(handle).index(name)) == 1


def _function_of(handle, name):
    """The function of a module as an object of its own."""
    from pleat.relax import Function
    from pleat.tir import PrimFunc
    kind = PrimFunc if _is_tensor_program(handle, name) else Function
    return kind(transformed(_lib.pleat_module_select, handle, name))


def only_function(handle):
    """The only function of a module as an object."""
    return _function_of(handle, _names(handle)[0])


def unwrapped(handle):
    """A module as an IRModule, or as a PrimFunc when it is a single tensor program."""
    names = _names(handle)
    is_plain = len(names) == 1 and not ffi.string(_lib.pleat_module_name(handle))
    if is_plain and _is_tensor_program(handle, names[0]):
        return only_function(handle)
    return IRModule(handle=handle)


# ---- Objects --------------------------------------------------------------------------------------

TVM_PRINT_OPTIONS = {"name", "show_meta", "ir_prefix", "tir_prefix", "tirx_prefix", "relax_prefix", "module_alias",
                     "buffer_dtype", "int_dtype", "float_dtype", "verbose_expr", "indent_spaces",
                     "print_line_numbers", "num_context_lines", "syntax_sugar", "show_object_address",
                     "show_all_ty", "show_all_struct_info", "extra_config", "path_to_underline", "path_to_annotate",
                     "obj_to_underline", "obj_to_annotate"}


class _Printed:
    """Something with a handle of the library, which prints as TVMScript."""

    # The titles and handles of the modules whose printed texts this was read from, the last first.
    _origins = ()

    def script(self, *, newer_names=False, no_imports=False, annotate=False, **options):
        """The text of TVMScript, which reads back as an equal object.

        newer_names: TVM's names since 2026, T.sblock and tirx
        annotate: comments with the logical accesses that flat ones came from
        show_meta: write all elements of constants with more than 1000 of them. Otherwise these are
                written as R.const("constant:…", R.Tensor(shape, dtype)), with the name of their
                contents, which is found as long as this process has a module with them
        TVM's other options, such as verbose_expr, change nothing."""
        unknown = sorted(options.keys() - TVM_PRINT_OPTIONS)
        if unknown:
            raise TypeError(f"script() has no option '{unknown[0]}'")
        most = 0 if options.get("show_meta") else MOST_PRINTED
        text, left_out = printed(self._handle, newer_names, no_imports, annotate, most)
        if left_out:
            text += f"# left out: the contents of {len(left_out)} constants, which script(show_meta=True) writes\n"
        return text

    def show(self, style=None, black_format=None, **options):
        """Prints the script. `style` and `black_format`, which choose TVM's colours and line breaks, change
        nothing."""
        print(self.script(**options))

    def same_as(self, other):
        """Is this the same object?"""
        return self is other

    def __str__(self):
        return self.script()

    def __script__(self):
        raise PleatError(f"a {type(self).__name__} is no value in a script: call it by its name")

    def __getstate__(self):
        return {"json": save_json(self)}

    def __setstate__(self, state):
        self._handle = _loaded(state["json"])


class BaseFunc(_Printed):
    """A function: pleat.tir.PrimFunc or pleat.relax.Function. It does not change."""

    _around = None  # the module of which it was asked

    def __init__(self, handle):
        self._handle = handle

    @property
    def __name__(self):
        return _names(self._handle)[0]

    def _named_keys(self, value):
        """An attribute with names in place of what its text has no values for."""
        return value

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with an attribute, or several from a dictionary. A buffer among the keys of a
        dictionary as a value stands for its name."""
        given = attr_key_or_dict
        pairs = given if isinstance(given, dict) else {given: attr_value}
        handle, name = self._handle, self.__name__
        for key, value in pairs.items():
            if key == "global_symbol":  # a name makes it public
                handle = transformed(_lib.pleat_module_rename, handle, None, str(value))
                for stated in ("private", "global_symbol"):
                    handle = _with_attribute(handle, None, stated, None)
            else:
                handle = _with_attribute(handle, None, key, text_of(self._named_keys(value)))
        return type(self)(handle)

    with_attrs = with_attr

    def without_attr(self, attr_key):
        """The function without an attribute; without its global_symbol, it is private."""
        handle = _with_attribute(self._handle, None, attr_key, None)
        if attr_key == "global_symbol":
            handle = _with_attribute(handle, None, "private", "True")
        return type(self)(handle)

    def __repr__(self):
        return self.script(no_imports=True)


def _as_handle(thing):
    if not isinstance(thing, _Printed):
        raise TypeError(f"expected an IRModule or a function, not {type(thing).__name__}")
    return thing._handle


def _with_attribute(handle, function, name, value):
    """A module with an attribute of a function, of its only one (None), or of its own ("")."""
    if not isinstance(name, str):
        raise TypeError(f"the name of an attribute is a string, not {name!r}")
    return transformed(_lib.pleat_module_set_attribute, handle, function, name, value)


class GlobalVar(str):
    """The name of a function of a module; it is a string."""

    @property
    def name_hint(self):
        return str(self)


def classic_name(name):
    """The name of an operation that it had before 2026."""
    return f"tir.{name[5:]}" if name.startswith("tirx.") else name


class Op(str):
    """An operation by its name, such as Op.get("tir.exp"); it is a string. The names of both generations are
    equal: "tir.exp" and "tirx.exp"."""

    get = classmethod(lambda cls, name: cls(name))

    @property
    def name(self):
        return self

    def same_as(self, other):
        return isinstance(other, Op) and self == other

    def __eq__(self, other):
        return classic_name(str(self)) == classic_name(str(other)) if isinstance(other, str) else NotImplemented

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(classic_name(str(self)))

    def __script__(self):
        return str.__repr__(self)

    def __repr__(self):
        return f"Op.get({str(self)!r})"


class IRModule(_Printed):
    """Functions by their names. Assigning to an item replaces or adds a function."""

    def __init__(self, functions=None, attrs=None, *, handle=None, kept=None):
        self._kept = kept or (None, {})  # the functions of a handle that were asked for
        if handle is None:
            handle = parse("@I.ir_module\nclass Module:\n    pass\n")
        self._handle = handle
        if functions and not hasattr(functions, "items"):
            raise TypeError(f"IRModule: expected a dictionary from names to functions, not {functions!r}")
        for name, function in (functions or {}).items():
            self[name] = function
        for name, value in (attrs or {}).items():
            self._handle = _with_attribute(self._handle, "", name, text_of(value))

    @classmethod
    def from_expr(cls, function):
        """The module that has this function, which is called main if it is private."""
        is_private = isinstance(function, PrimFunc) and function.attrs.get("private")
        name = function.__name__ if isinstance(function, Function) else function.attrs.get("global_symbol")
        return cls({"main" if is_private else str(name or function.__name__): function})

    def __getitem__(self, name):
        name = str(name)
        if name not in self:
            raise KeyError(f"the module has no function '{name}'; it has {', '.join(self) or 'none'}")
        if self._kept[0] is not self._handle:
            self._kept = self._handle, {}
        if name not in self._kept[1]:
            self._kept[1][name] = _function_of(self._handle, name)
            self._kept[1][name]._around = self._handle
        return self._kept[1][name]

    def __setitem__(self, name, function):
        handle, name = _as_handle(function), str(name)
        if name != _names(handle)[0]:
            handle = transformed(_lib.pleat_module_rename, handle, None, name)
        self._handle = transformed(_lib.pleat_module_update, self._handle, handle)

    def __delitem__(self, name):
        self._handle = transformed(_lib.pleat_module_remove, self._handle, str(name))

    def __contains__(self, name):
        return str(name) in _names(self._handle)

    def __iter__(self):
        return iter(_names(self._handle))

    def __len__(self):
        return _lib.pleat_module_function_count(self._handle)

    def keys(self):
        return list(map(GlobalVar, _names(self._handle)))

    get_global_vars = keys

    def get_global_var(self, name):
        """The variable of a function; KeyError when there is none."""
        return GlobalVar(self[name].__name__)

    def items(self):
        return [(name, self[name]) for name in self.keys()]

    @property
    def functions(self):
        return dict(self.items())

    def functions_items(self):
        """The names and the functions, in the order of their names."""
        return sorted(self.items())

    def update(self, other):
        """Adds the functions of another module; those of the same name are replaced."""
        other = other if isinstance(other, IRModule) else IRModule(other)
        self._handle = transformed(_lib.pleat_module_update, self._handle, other._handle)

    def update_func(self, name, function):
        self[name] = function

    def clone(self):
        """Another module with the same functions."""
        return IRModule(handle=self._handle)

    @property
    def attrs(self):
        """The attributes of the module, those of I.module_attrs, by their names."""
        from pleat.tir.node_table import module_attributes
        return module_attributes(self._handle)

    def get_attr(self, attr_key, default=None):
        """An attribute of the module, or the default where it has none of this name."""
        return self.attrs.get(attr_key, default)

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The module with an attribute, or several from a dictionary."""
        given = attr_key_or_dict
        made = self.clone()
        for name, value in (given if isinstance(given, dict) else {given: attr_value}).items():
            made._handle = _with_attribute(made._handle, "", name, text_of(value))
        return made

    with_attrs = with_attr

    def without_attr(self, attr_key):
        """The module without an attribute."""
        return IRModule(handle=_with_attribute(self._handle, "", attr_key, None))

    def __repr__(self):
        return self.script(no_imports=True)


def nodes_of(handle):
    """The nodes of a module as JSON: see pleat_module_nodes of pleat/tir.h."""
    return json.loads(_text(_lib.pleat_module_nodes, handle))


# ---- Comparing ------------------------------------------------------------------------------------

def structural_equal(lhs, rhs, map_free_vars=False):
    """Are two functions or modules equal up to the names of variables and buffers? Nodes too, up to
    those that they define; with map_free_vars the others may have other names too."""
    if not isinstance(lhs, _Printed) and not isinstance(rhs, _Printed):
        from pleat.tir.nodes import nodes_equal
        if not any(isinstance(one, Value) for one in (lhs, rhs)):
            return nodes_equal(lhs, rhs, map_free_vars)
        from pleat.relax.nodes import same_expr
        try:  # what is written in a script may be of a graph, or a number such as T.float32(1.5)
            return same_expr(lhs, rhs) or nodes_equal(lhs, rhs, map_free_vars)
        except TypeError:
            return False
    if isinstance(lhs, Function) and isinstance(rhs, Function):
        rhs = _renamed(rhs, lhs.__name__)
    if isinstance(lhs, IRModule) != isinstance(rhs, IRModule):
        return False
    equal, messages = ffi.new("int *"), ffi.new("PleatMessages **")
    status = _lib.pleat_module_equal(_as_handle(lhs), _as_handle(rhs), equal, ffi.NULL, messages)
    check_status(status, messages)
    return bool(equal[0])


def _renamed(function, name):
    """A graph function under another name: two are equal whatever their names."""
    return Function(transformed(_lib.pleat_module_rename, function._handle, None, name))


def structural_hash(thing, map_free_vars=False):
    """A number that equal functions or modules share. They have no free variables."""
    return _lib.pleat_module_hash(_as_handle(_renamed(thing, "main") if isinstance(thing, Function) else thing))


def _excerpt(title, text, line, column, width):
    """The lines around a position, which a caret marks."""
    lines, shown = text.splitlines(), [title]
    for number in range(max(line - 3, 1), min(line + 2, len(lines)) + 1):
        shown.append(f"{number:5} | {lines[number - 1]}")
        if number == line:
            shown.append("      | " + " " * (column - 1) + "^" * width)
    return "\n".join(shown)


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Raises StructuralDifference with the first difference of two functions or modules, shown in
    the text of both; see structural_equal."""
    if isinstance(lhs, Function) and isinstance(rhs, Function):
        rhs = _renamed(rhs, lhs.__name__)
    if not isinstance(lhs, _Printed) and not isinstance(rhs, _Printed):
        if not structural_equal(lhs, rhs, map_free_vars):
            raise StructuralDifference(f"not equal: {lhs!r} and {rhs!r}")
        return
    if isinstance(lhs, IRModule) != isinstance(rhs, IRModule):
        kinds = ("a module" if isinstance(one, IRModule) else "a function" for one in (lhs, rhs))
        raise StructuralDifference(" and ".join(kinds))
    equal, messages = ffi.new("int *"), ffi.new("PleatMessages **")
    found = ffi.new("PleatDifference **")
    status = _lib.pleat_module_equal(_as_handle(lhs), _as_handle(rhs), equal, found, messages)
    check_status(status, messages)
    if equal[0]:
        return
    d = ffi.gc(found[0], _lib.pleat_free)
    parts = [ffi.string(d.text).decode()]
    for title, thing, place in (("first:", lhs, (d.a_line, d.a_column, d.a_width)),
                                ("second:", rhs, (d.b_line, d.b_column, d.b_width))):
        parts.append(_excerpt(title, thing.script(), *place) if place[0]
                     else f"{title}\n{thing.script()}")
    raise StructuralDifference("\n".join(parts))


# ---- Files ----------------------------------------------------------------------------------------

def save_json(thing):
    """A function or module as JSON, which load_json reads as an equal object; or a tensor, an operation or a schedule
    of tensor expressions, a node, or a list or dictionary of them."""
    from pleat.te import saved
    if saved.can_save(thing):
        return saved.save(thing)
    return _text(_lib.pleat_module_save, _as_handle(thing))


def _loaded(text):
    result, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
    check_status(_lib.pleat_module_load(text.encode(), result, messages), messages)
    return ffi.gc(result[0], _lib.pleat_module_free)


def load_json(text):
    """The object that save_json wrote."""
    from pleat.te import saved
    if not isinstance(text, str):
        raise TypeError(f"load_json: expected a text, not {type(text).__name__}")
    if saved.is_saved(text):
        return saved.load(text)
    return unwrapped(_loaded(text))


# ---- Tensor programs ------------------------------------------------------------------------------

class PrimFunc(BaseFunc):
    """A tensor program. `params`, `buffer_map`, `body`, `ret_type` and `attrs` are its parts as
    nodes (pleat.tir.nodes), with TVM's field names.

    PrimFunc(params, body, ret_type, buffer_map, attrs) makes one of nodes. A parameter is a variable
    or a buffer; attrs["global_symbol"] is the name. PleatError for a program that is not well
    formed."""

    def __init__(self, params, body=None, ret_type=None, buffer_map=None, attrs=None):
        if body is not None:
            from pleat.tir.node_table import make_function
            params = make_function(params, body, ret_type, buffer_map, attrs)
        super().__init__(params)

    @functools.cached_property
    def node(self):
        """The node of the function, with all its parts."""
        from pleat.tir.node_table import function_nodes
        return function_nodes(self._handle)[self.__name__]

    @functools.cached_property
    def _body(self):
        from pleat.tir.scopes import flat
        return flat(self.node.body) if self.node.is_newer else self.node.body

    def __getattr__(self, name):
        if name == "attrs":
            from pleat.tir.node_table import with_targets
            return with_targets(self.node.attrs)
        if name == "body":
            return self._body
        if name in ("params", "buffer_map", "ret_type"):
            return getattr(self.node, name)
        raise AttributeError(f"a PrimFunc has no attribute '{name}'")

    def _named_keys(self, value):
        """An attribute's dictionary with names in place of buffers, their data variables, and parameters."""
        if not isinstance(value, dict):
            return value
        names = {parameter: buffer.name for parameter, buffer in self.buffer_map.items()} \
            if any(hasattr(key, "name") for key in value) else {}
        result = {names.get(key, getattr(key, "name", key)): one for key, one in value.items()}
        for key in result:
            if not isinstance(key, str):
                raise TypeError(f"expected text or a buffer as a key of an attribute, saw {key!r}")
        return result

    def with_body(self, new_body):
        """The function with another body, as a node."""
        from pleat.tir.node_table import make_module
        return PrimFunc(make_module({self.__name__: self.node.with_fields(body=new_body)}))

    def specialize(self, param_map):
        """The function for given values: a dictionary from scalar parameters, or variables in the
        shapes of buffers, to numbers. A variable is a node or a name. A parameter with a buffer may be
        given another buffer, whose sizes are then the values. A value may be an expression of variables in
        shapes."""
        if not param_map:
            return self
        texts, given = [], self._values_in(param_map)
        if any(hasattr(value, "dtype") and not hasattr(value, "value") for value in given.values()):
            return self._with_expressions(given)
        for variable, value in given.items():
            name = variable if isinstance(variable, str) else getattr(variable, "name", None)
            if name is None:
                raise TypeError(f"expected a variable or its name, not {variable!r}")
            texts.append(ffi.new("char[]", f"{name}={text_of(value)}".encode()))
        values = ffi.new("char *[]", texts)
        result, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
        status = _lib.pleat_module_specialize(self._handle, ffi.NULL, values, len(texts), result,
                                              messages)
        check_status(status, messages)
        return PrimFunc(ffi.gc(result[0], _lib.pleat_module_free))

    def _with_expressions(self, given):
        """The function with expressions in the place of variables in the shapes of its buffers."""
        from pleat.tir.nodes import Var, converted
        from pleat.tir.stmt_functor import _Rewriter
        values = {}
        for variable, value in given.items():
            if not isinstance(variable, Var) or variable in self.buffer_map:
                raise ValueError(f"specialize: {variable!r} is no number, and its value is an expression")
            values[variable] = converted(value)
        rewriter = _Rewriter(lambda one: values.get(one) if isinstance(one, Var) else None, None,
                             with_buffers=True)
        buffers = {param: rewriter.value(buffer) for param, buffer in self.buffer_map.items()}
        attrs = {**self.attrs, "global_symbol": self.__name__}
        params = [one for one in self.params if one not in values]
        return PrimFunc(params, rewriter.value(self.body), self.ret_type, buffers, attrs)

    def _values_in(self, param_map):
        """The values of specialize by variables, with those that buffers give."""
        from pleat.tir.nodes import Buffer, IntImm, Var, converted
        found = {}
        for param, value in param_map.items():
            if not isinstance(value, Buffer):
                found[param] = value
                continue
            own = self.buffer_map.get(param, param)
            if not isinstance(own, Buffer):
                raise ValueError(f"specialize: {param!r} is no parameter with a buffer")
            strides = value.strides if own.strides else []
            mine, given = ([*one.shape, *steps,
                            IntImm("int32", 0) if one.elem_offset is None else one.elem_offset]
                           for one, steps in ((own, own.strides), (value, strides)))
            if own.dtype != value.dtype or len(mine) != len(given):
                raise ValueError(f"specialize: {value!r} has another type, or other axes, than {own!r}")
            for size, number in zip(mine, given):
                if size is number:
                    continue
                if isinstance(size, Var):
                    number = number.value if isinstance(number, IntImm) else number
                    if not structural_equal(converted(found.setdefault(size, number)), converted(number), True):
                        raise ValueError(f"specialize: '{size.name}' gets {found[size]!r} and {number!r}")
                elif not structural_equal(size, number):
                    raise ValueError(f"specialize: {own.name} has {size!r} where the given buffer has {number!r}")
        return found

    def __call__(self, *arguments):
        """Runs the program on arrays: compiles it when it is first called. See pleat.build."""
        return self._built(*arguments)

    @functools.cached_property
    def _built(self):
        from pleat.runtime import build
        return build(self)


class Function(BaseFunc):
    """A graph function of operator calls. `params`, `body`, `ret_struct_info`, `attrs` and `is_pure` are its
    parts (pleat.relax.nodes), with TVM's field names.

    Function(params, body) makes one of variables and an expression of them (pleat.relax.expr)."""

    def __init__(self, params, body=None, ret_struct_info=None, is_pure=True, attrs=None, *, ret_ty=None):
        if body is not None:
            from pleat.relax.block_builder import function_of
            params = function_of(params, body, attrs)._handle
        super().__init__(params)

    @functools.cached_property
    def node(self):
        """The function as its parts."""
        from pleat.relax.nodes import InferredTypes, function_of
        types = InferredTypes(lambda: IRModule(handle=self._around or self._handle), self.__name__)
        return function_of(self.script(), self.__name__, types)

    def bind_params(self, binding_map):
        """The function with constants in the place of parameters: see relax.transform.BindParams."""
        from pleat.relax.transform import BindParams
        return BindParams(self.__name__, binding_map)(self)

    def bind_symbolic_vars(self, binding_map):
        """The function with numbers in the place of sizes: see relax.transform.BindSymbolicVars."""
        from pleat.relax.transform import BindSymbolicVars
        return BindSymbolicVars(binding_map)(self)

    def __getattr__(self, name):
        if name in ("params", "body", "ret_struct_info", "attrs", "is_pure"):
            return getattr(self.node, name)
        raise AttributeError(f"a graph function has no attribute '{name}'")
