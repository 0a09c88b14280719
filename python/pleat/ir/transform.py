# SPDX-License-Identifier: Apache-2.0
"""Passes, lists of passes, and the context in which they run, with TVM's names."""
import difflib
import functools
import importlib
import inspect
import threading
from collections import namedtuple

from pleat._library import _lib
from pleat.ir._module import BaseFunc, IRModule, _names, transformed
from pleat.script._values import text_of


class PassInfo(namedtuple("PassInfo", "opt_level name required", defaults=((),))):
    """A description of a pass, for instruments. The name has the dialect of a tensor program's pass: "tir.Simplify"."""
    __slots__ = ()

    def is_named_in(self, names):
        """Is the name among these, with or without its dialect?"""
        return self.name in names or self.name.partition(".")[2] in names


_local = threading.local()
_METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class PassContext:
    """How passes run inside `with PassContext(...)`.

    disabled_pass: names of passes that are left out, with or without their dialect
    instruments: objects with any of the methods enter_pass_ctx(), exit_pass_ctx(),
        should_run(module, info), run_before_pass(module, info) and run_after_pass(module, info)
    config: options of passes by their names with a dialect: {"tirx.UnrollLoop": {"auto_max_step": 16}};
        other keys without one of TVM's dialects are kept for the instruments and passes of the caller
    opt_level, required_pass: kept for the instruments and passes of the caller"""

    def __init__(self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None,
                 config=None):
        self.opt_level, self.config = opt_level, dict(config or {})
        if self.config:
            _check_keys(self.config)
        self.required_pass = list(required_pass or [])
        self.disabled_pass = list(disabled_pass or [])
        self._take_instruments(instruments)

    def __enter__(self):
        self._call("enter_pass_ctx")
        _contexts().append(self)
        return self

    def __exit__(self, *error):
        _contexts().pop()
        self._call("exit_pass_ctx")

    def _call(self, method, *arguments):
        """The results of a method of the instruments that have it."""
        return [getattr(one, method)(*arguments) for one in self.instruments
                if hasattr(one, method)]

    def override_instruments(self, instruments):
        """Replaces the instruments from now on: the former ones leave the context, and the new ones enter it."""
        self._call("exit_pass_ctx")
        self._take_instruments(instruments)
        self._call("enter_pass_ctx")

    def _take_instruments(self, instruments):
        instruments = list(instruments or [])
        for one in instruments:
            if not any(hasattr(one, method) for method in _METHODS):
                raise TypeError(f"an instrument has any of the methods {', '.join(_METHODS)}, not {one!r}")
        self.instruments = instruments

    @staticmethod
    def current():
        """The innermost context."""
        return _contexts()[-1]

    @staticmethod
    def list_configs():
        """The keys that `config` may have, by what they are: {"tir.UnrollLoop": {"type": "dict"}}."""
        return _known_keys()


# Options of TVM's lowering, and those that say how code is made for devices, which change no result here.
_OPTIONS = {"add_lower_pass": "list", "disable_vectorize": "bool", "disable_storage_rewrite": "bool",
            **dict.fromkeys(("debug_keep_trivial_loop", "detect_global_barrier", "disable_cse_tir",
                             "enable_buffer_level_predication", "enable_debug", "enable_equiv_terms_in_cse_tir",
                             "instrument_bound_checkers", "instrument_lwp", "merge_static_smem", "noalias",
                             "ptx_ldg32", "use_async_copy"), "bool")}
_DIALECTS = ("tir", "tirx", "s_tir")


@functools.lru_cache(maxsize=None)
def _known_keys():
    from pleat.tir.transform import names_with_options
    kinds = {**_OPTIONS, **dict.fromkeys(names_with_options(), "dict")}
    return {f"{dialect}.{name}": {"type": kind} for dialect in _DIALECTS for name, kind in kinds.items()}


def _check_keys(config):
    unknown = [key for key in config if str(key).partition(".")[0] in _DIALECTS and key not in _known_keys()]
    if unknown:
        dialect, _, name = unknown[0].partition(".")
        known = sorted(key.partition(".")[2] for key in _known_keys() if key.startswith("tir."))
        near = difflib.get_close_matches(name, known, 1)
        raise AttributeError(f"PassContext: there is no option {unknown[0]!r}"
                             + (f"; did you mean '{dialect}.{near[0]}'?" if near else ".")
                             + f" Options have the dialect tir, tirx or s_tir, and are: {', '.join(known)}")


def _contexts():
    if not hasattr(_local, "contexts"):
        _local.contexts = [PassContext()]
    return _local.contexts


def _value_text(value):
    """The text of an argument of a pass."""
    from pleat.tir.index_map import IndexMap
    if isinstance(value, IndexMap):
        return repr(str(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_value_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value_text, value))}]"
    return text_of(value)


def pass_text(name, arguments):
    """The text of a pass with its arguments by their names; None stands for an absent one."""
    given = (f"{key}={_value_text(value)}" for key, value in arguments.items()
             if value is not None)
    return f"{name}({', '.join(given)})"


def run_passes(module, text):
    """The module after the passes that a text lists."""
    return IRModule(handle=transformed(_lib.pleat_module_run_passes, module._handle, None, text))


class Pass:
    """A pass: a call with a module, or a function, gives a new one."""

    def __init__(self, name, transform, opt_level=0):
        self.info, self._transform = PassInfo(opt_level, name), transform

    def __call__(self, thing):
        if not isinstance(thing, (BaseFunc, IRModule)):
            raise TypeError(f"{self.info.name}: expected an IRModule or a function, not {type(thing).__name__}")
        if isinstance(thing, BaseFunc):
            name = thing.__name__
            return self(IRModule(handle=thing._handle))[name]
        context = PassContext.current()
        left_out = self.info.is_named_in(context.disabled_pass)
        if left_out or not all(context._call("should_run", thing, self.info)):
            return thing
        context._call("run_before_pass", thing, self.info)
        result = self._transform(thing, context)
        if not isinstance(result, IRModule):
            raise TypeError(f"{self.info.name} gave {result!r}, expected an IRModule")
        context._call("run_after_pass", result, self.info)
        return result

    def __repr__(self):
        return f"{self.info.name}()"


def PrintIR(header=""):
    """A pass that prints the module behind a header, and changes nothing."""
    def transform(module, _):
        print(f"PrintIR({header}):\n{module.script()}" if header else module.script())
        return module
    return Pass("PrintIR", transform)


ModulePass = PrimFuncPass = FunctionPass = Pass


class Sequential(Pass):
    """Passes that run one after the other."""

    def __init__(self, passes=(), opt_level=0, name="sequential", required=()):
        super().__init__(name, self._run, opt_level)
        self.passes = list(passes)
        for one in self.passes:
            if not callable(one):
                raise TypeError(f"{name}: expected passes, not {one!r}")

    def _run(self, module, _):
        for one in self.passes:
            module = one(module)
        return module


def _maker(method, as_transform, opt_level, name):
    """Makes a pass of a function; of a class with such a function as a method, a function that gives
    passes, as the class gives instances."""
    def make(thing):
        if not callable(thing):
            raise TypeError(f"a pass is made of a function or a class, not of {thing!r}")
        title = name or thing.__name__
        if not inspect.isclass(thing):
            return Pass(title, as_transform(thing), opt_level)

        @functools.wraps(thing, updated=())
        def instance(*arguments, **named):
            made = Pass(title, as_transform(getattr(thing(*arguments, **named), method)), opt_level)
            made.__doc__ = thing.__doc__
            return made
        return instance
    return make


def module_pass(function=None, opt_level=0, name=None, required=()):
    """Makes a pass of a function of (module, context) that gives a module, or of a class that has it as the
    method transform_module; then a call of the result, with the class's arguments, gives a pass."""
    make = _maker("transform_module", lambda function: function, opt_level, name)
    return make(function) if function is not None else make


def _on_functions(function, kind="PrimFunc"):
    def transform(module, context):
        made = importlib.import_module("pleat.ir._module")
        kinds = getattr(made, kind)
        result = module.clone()
        for key in _names(module._handle):
            one = module[key]
            if isinstance(one, kinds):
                changed = function(one, module, context)
                if not isinstance(changed, kinds):
                    raise TypeError(f"a pass gave {changed!r} for {key}, expected a {kind}")
                result[key] = changed
        return result
    return transform


def prim_func_pass(function=None, opt_level=0, name=None, required=()):
    """Makes a pass of a function of (prim_func, module, context) that gives a PrimFunc; it runs on
    each tensor program. Of a class, the method is transform_function, as in module_pass."""
    make = _maker("transform_function", _on_functions, opt_level, name)
    return make(function) if function is not None else make


def function_pass(function=None, opt_level=0, name=None, required=()):
    """The same of a function of (function, module, context) that gives a relax.Function; it runs on each graph
    function."""
    make = _maker("transform_function", lambda one: _on_functions(one, "Function"), opt_level, name)
    return make(function) if function is not None else make
