# SPDX-License-Identifier: Apache-2.0
"""Runs graph functions with TVM's names: relax.build compiles them, a VirtualMachine calls them."""
import pathlib

from pleat._library import PleatError
from pleat.ir._module import IRModule, PrimFunc, load_json, save_json
from pleat.ir.transform import Pass
from pleat.model import Model, compile_options
from pleat.nd import Tensor
from pleat.registry import operators_in
from pleat.runtime import write_archive


class Executable:
    """The compiled graph functions of a module, by their names. Free sizes follow from the arrays of each
    call, as for pleat.Model, of which each function is one; it is compiled when it is first called,
    unless its sizes are known."""

    def __init__(self, mod, target=None, **options):
        self.mod, self._models = mod, {}
        self._options = {**compile_options(target), "operators": operators_in(mod), **options}
        self.names = _graph_names(mod)
        if not self.names:
            raise PleatError("the module has no graph function; pleat.build compiles tensor programs")
        for name in self.names:
            self.model(name)

    def model(self, name):
        """The pleat.Model of a function."""
        if name not in self.names:
            raise KeyError(f"the module has no graph function '{name}'; it has {', '.join(self.names)}")
        if name not in self._models:
            self._models[name] = Model(self.mod, func=name, **self._options)
        return self._models[name]

    def __getitem__(self, name):
        return VirtualMachine(self)[name]

    def export_library(self, path, *, workspace_dir=None):
        """Writes the functions to a file, which pleat.load_module reads: ".pleat", or ".so" with the code of
        a single function whose sizes are known, for other programs. The file has the source too, which
        is compiled for the sizes of later calls. workspace_dir: unused"""
        path = pathlib.Path(path)
        if path.suffix not in (".pleat", ".so"):
            raise PleatError(f"{path}: expected .pleat or .so; pleat.write writes other files")
        if path.suffix == ".so":
            if len(self.names) > 1 or self.model(self.names[0]).is_open:
                raise PleatError(f"{path}: a .so has one function whose sizes are known; write a .pleat")
            self.model(self.names[0]).write(path)
        keep = [] if self._options.get("operators") else \
            [name for name in self.names if not self.model(name).is_open]
        options = {name: value for name, value in self._options.items() if name != "operators"}
        write_archive(path, list(map(self.model, keep)), {
            "format": "pleat.relax", "table": keep, "source": save_json(self.mod), "options": options})

    def __repr__(self):
        return f"Executable({', '.join(f'{name}: {self.model(name)!r}' for name in self.names)})"


VMExecutable = Executable


def executable_of(model):
    """The Executable of a model that was compiled from an IRModule."""
    mod, options = model._again()
    if not isinstance(mod, IRModule):
        raise PleatError("export_library is for models of an IRModule; save and write are for all")
    made = Executable.__new__(Executable)
    made.mod, made.names = mod, _graph_names(mod)
    made._models, made._options = dict.fromkeys(made.names, model), _plain(options)
    return made


def loaded(saved, models):
    """The Executable that export_library wrote."""
    made = Executable.__new__(Executable)
    made.mod = load_json(saved["source"])
    made.names = _graph_names(made.mod)
    made._models = dict(zip(saved["table"], models))
    made._options = {**saved["options"], "operators": operators_in(made.mod)}
    return made


def _graph_names(mod):
    return [str(name) for name, function in mod.items() if not isinstance(function, PrimFunc)]


def _plain(options):
    """The options that were given, without the function, which is named for each model."""
    return {name: value for name, value in options.items() if value and name != "func"}


def build(mod, target=None, **options):
    """Compiles the graph functions of a module; the options are those of pleat.Model."""
    return Executable(mod, target, **options)


class VirtualMachine:
    """Calls the functions of an Executable, or of a pleat.Model: vm["main"](x, w). Results are arrays
    with TVM's methods, pleat.nd.Tensor; several results are a list."""

    def __init__(self, rt_mod, device=None, **_):
        if not isinstance(rt_mod, (Executable, Model)):
            raise TypeError(f"expected what pleat.compile makes of graph functions, not "
                            f"{type(rt_mod).__name__}")
        self.module, self._inputs, self._results = rt_mod, {}, {}

    def __getitem__(self, name):
        model = self.module.model(name) if isinstance(self.module, Executable) else _named(self.module, name)
        return lambda *arrays: _wrapped(model(*arrays))

    def set_input(self, func_name, *args):
        """Keeps the arrays for invoke_stateful."""
        self._inputs[func_name] = args

    def invoke_stateful(self, func_name):
        """Calls a function with the arrays of set_input, for get_outputs."""
        if func_name not in self._inputs:
            raise PleatError(f"set_input has not been called for '{func_name}'")
        self._results[func_name] = self[func_name](*self._inputs[func_name])

    def get_outputs(self, func_name):
        """The results of invoke_stateful."""
        if func_name not in self._results:
            raise PleatError(f"invoke_stateful has not been called for '{func_name}'")
        return self._results[func_name]


def _named(model, name):
    """The model, which is that of its module's only graph function."""
    source = model._source and model._source[0]
    names = [str(key) for key in source] if isinstance(source, IRModule) else [name]
    if name not in names:
        raise KeyError(f"the module has no graph function '{name}'; it has {', '.join(names)}")
    return model


def _wrapped(results):
    """Results as arrays with TVM's methods, without a copy."""
    return list(map(_wrapped, results)) if isinstance(results, (tuple, list)) else results.view(Tensor)


def get_pipeline(name="zero", **_):
    """The passes that a module needs before it is compiled: none, since compiling lowers, fuses and
    schedules by itself."""
    if name not in ("zero", "default", "default_build"):
        raise PleatError(f"there is no pipeline '{name}': expected zero, default or default_build")
    return Pass(name, lambda module, _: module)
