# SPDX-License-Identifier: Apache-2.0
"""Functions of Python by names, which graph functions call with R.call_dps_packed, and tensor programs with
T.call_packed:

    @pleat.register_func("my.scale")
    def scale(x, y):                  # arrays (pleat.nd.Tensor): the inputs, then the outputs
        y[...] = x * 2"""

import importlib
import os

_functions = {}
_MODULES = {"tvm.contrib.cblas.": "pleat.contrib.cblas"}  # of functions that are there without registration


def register_func(func_name, f=None, override=False):
    """Registers a function under a name; without `f`, a decorator. ValueError for a name that has one
    already, unless `override` is set."""
    if callable(func_name):
        func_name, f = func_name.__name__, func_name

    def register(function):
        if not callable(function):
            raise TypeError(f"'{func_name}' is {type(function).__name__}, expected a function")
        if func_name in _functions and not override:
            raise ValueError(f"a function '{func_name}' is registered already: give override=True to "
                             "replace it")
        _functions[func_name] = function
        return function
    return register if f is None else register(f)


register_global_func = register_func


def get_global_func(name, allow_missing=False):
    """The function that is registered under a name. Where there is none, ValueError, or None with
    allow_missing."""
    for begin, module in _MODULES.items():
        if name.startswith(begin):
            importlib.import_module(module)
    if name not in _functions and not allow_missing:
        raise ValueError(f"no function '{name}' is registered; there are {', '.join(_functions) or 'none'}")
    return _functions.get(name)


def remove_global_func(name):
    """Forgets a function, which compiled models keep."""
    _functions.pop(name, None)


def _operator(function):
    from pleat.nd import Tensor
    from pleat.operators import Operator

    def run(*arrays, out):
        function(*(one.view(Tensor) for one in (*arrays, *out)))
    return Operator(run)


def _text_of(model):
    """The script of a pleat.IRModule, of a file whose name ends in .py, or of its bytes; "" for others."""
    if hasattr(model, "_handle"):
        return model.script()
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model).decode(errors="replace")
    is_script = isinstance(model, (str, os.PathLike)) and os.fspath(model).endswith(".py")
    if not is_script or not os.path.exists(model):
        return ""
    with open(model, encoding="utf-8", errors="replace") as file:
        return file.read()


def operators_in(model):
    """The registered functions that a script names, as Model takes them; None where there are none."""
    if not _functions:
        return None
    text = _text_of(model)
    return {name: _operator(function) for name, function in _functions.items()
            if f'"{name}"' in text or f"'{name}'" in text} or None
