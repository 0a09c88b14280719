# SPDX-License-Identifier: Apache-2.0
"""The passes of lowering. Each has the name that the library gives it in capital letters
(FlattenBuffers for flatten_buffers), and those of TVM's pass with the same effect, if there is one.
Options are arguments, or stand in PassContext(config={"tirx.UnrollLoop": {"auto_max_step": 16}}).
The `info.name` of a pass is TVM's, which begins with the dialect: "tir.FlattenBuffer" here, and
"tirx.FlattenBuffer" of pleat.tirx.transform."""
import functools
import sys
import types

from pleat._library import _lib, ffi
from pleat.ir.transform import (Pass, PassContext, PrimFuncPass, Sequential, module_pass, pass_text,
                                prim_func_pass, run_passes)

__all__ = ["Pass", "PassContext", "PrimFuncPass", "Sequential", "module_pass", "passes", "prim_func_pass"]


def passes():
    """The names of the library's passes and a sentence about each, in the order of lowering."""
    found, i = {}, 0
    while _lib.pleat_pass_name(i) != ffi.NULL:
        found[ffi.string(_lib.pleat_pass_name(i)).decode()] = \
            ffi.string(_lib.pleat_pass_summary(i)).decode()
        i += 1
    return found


@functools.lru_cache(maxsize=None)
def _texts():
    """By the name of each pass of the library: its arguments and TVM's names of it, as lists."""
    found, i = {"lower": ([], [])}, 0
    while _lib.pleat_pass_name(i) != ffi.NULL:
        texts = (_lib.pleat_pass_arguments(i), _lib.pleat_pass_other_names(i))
        arguments, names = (ffi.string(text).decode().split() for text in texts)
        name = ffi.string(_lib.pleat_pass_name(i)).decode()
        found[name] = ([argument.rstrip("?") for argument in arguments], names)
        i += 1
    return found


def _named(shown):
    """The library's name of a pass; None when there is none."""
    return next((name for name, (_, names) in _texts().items()
                 if shown in names or name.title().replace("_", "") == shown), None)


def _given(shown, name, positional, keywords):
    """The arguments of a call of a pass by their names."""
    known = _texts()[name][0]
    if len(positional) > len(known):
        raise TypeError(f"{shown} takes at most {len(known)} arguments")
    given = {**dict(zip(known, positional)), **keywords}
    unknown = next((key for key in given if key not in known), None)
    if unknown is not None:
        has = ", ".join(known)
        raise TypeError(f"{shown} has no argument '{unknown}'" + (f"; it has: {has}" if has else ""))
    return given


def _configured(name, context):
    """The options that the context has for a pass, under any of its names."""
    options = {}
    for key, value in context.config.items():
        dialect, _, shown = key.rpartition(".")
        if dialect not in ("tir", "tirx", "s_tir") or _named(shown) != name:
            continue
        if not isinstance(value, dict):
            raise TypeError(f"PassContext: the options of {key} are a dictionary, not {value!r}")
        options.update(value)
    return options


def names_with_options():
    """All names of the passes that have options."""
    return [name for key, (options, others) in _texts().items() if options
            for name in (*others, key.title().replace("_", ""))]


def _pass(shown, name, given):
    def transform(module, context):
        arguments = {**_configured(name, context), **given}
        return run_passes(module, pass_text(name, arguments))
    return Pass(shown, transform)


def __dir__():
    from pleat.tir import module_passes
    shown = {name.title().replace("_", "") for name in _texts()}
    return sorted({*__all__, *module_passes.__all__, *shown, *(n for _, names in _texts().values() for n in names)})


# TVM's names of passes that say something else than the names of the functions that give them.
_INFO_NAMES = {"ForceNarrowIndexToInt32": "NarrowDataType", "RemoveUndef": "RemoveStoreUndef"}


def _made_in(dialect, make, shown):
    """The same function, whose passes have names of the dialect."""
    @functools.wraps(make)
    def made(*positional, **keywords):
        one = make(*positional, **keywords)
        one.info = one.info._replace(name=f"{dialect}.{_INFO_NAMES.get(shown, shown)}")
        return one
    return made


def _found(dialect, shown):
    """Finds a name of a module of passes of this dialect."""
    from pleat.tir import module_passes
    if shown in module_passes.__all__:
        one = getattr(module_passes, shown)
        has_dialect = isinstance(one, types.FunctionType) and shown != "Apply"  # as TVM names them
        return _made_in(dialect, one, shown) if has_dialect else one
    name = None if shown.startswith("_") else _named(shown)
    if name is None:
        raise AttributeError(f"module 'pleat.{dialect}.transform' has no pass {shown!r}")

    def make(*positional, **keywords):
        return _pass(shown, name, _given(shown, name, positional, keywords))
    make.__name__, make.__doc__ = shown, passes().get(name, "all passes, in order")
    return _made_in(dialect, make, shown)


__getattr__ = functools.partial(_found, "tir")


def of_dialect(dialect):
    """This module with the names of another dialect of TVM's: pleat.tirx.transform."""
    here = sys.modules[__name__]
    module = types.ModuleType(f"pleat.{dialect}.transform", __doc__)
    module.__dict__.update({name: getattr(here, name) for name in ("passes", "__all__", "__file__", *__all__)})
    module.__getattr__, module.__dir__ = functools.partial(_found, dialect), __dir__
    return module
