# SPDX-License-Identifier: Apache-2.0
"""Functions of Python by names, which graph functions call with R.call_dps_packed:

    @pleat.register_func("my.scale")
    def scale(x, y):                  # arrays (pleat.nd.Tensor): the inputs, then the outputs
        y[...] = x * 2"""

_functions = {}


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


def operators_in(module):
    """The registered functions that a module names, as Model takes them; None where there are none."""
    if not _functions:
        return None
    text = module.script()
    return {name: _operator(function) for name, function in _functions.items()
            if f'"{name}"' in text} or None
