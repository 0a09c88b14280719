# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that runs tests written for TVM's Python package over Pleat's: `import tvm` gives
`pleat`. Nothing is made up: a module or name that Pleat lacks raises where it is used.

    PYTHONPATH=python:tests/python python -m pytest -p as_tvm .../test_tir_transform_simplify.py

The helpers of TVM's own test package, tvm.testing, are here, since they are no part of a compiler.
scripts/count_tvm_tests.py counts with this plugin how many tests of each pass hold."""
import importlib
import importlib.abc
import importlib.machinery
import inspect
import pathlib
import sys
import textwrap
import types

import pytest

import pleat


class _Missing:
    """A name that Pleat lacks: it can be imported, but not used."""

    def __init__(self, name):
        self.__dict__["_name"] = name

    def _raise(self, *_, **__):
        raise AttributeError(f"pleat has no {self._name[4:]}")

    __call__ = __getitem__ = __iter__ = __setattr__ = __mro_entries__ = _raise

    def __getattr__(self, name):
        self._raise()


class _Module(types.ModuleType):
    """A module of Pleat by TVM's name, or one that Pleat lacks."""
    __path__ = ()

    def __init__(self, name, real):
        super().__init__(name)
        self.__dict__["_real"] = real
        if name == "tvm":
            self.__dict__["testing"] = sys.modules["tvm.testing"]

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(name)
        if f"{self.__name__}.{name}" in sys.modules:
            return sys.modules[f"{self.__name__}.{name}"]
        if self._real is not None and hasattr(self._real, name):
            return getattr(self._real, name)
        if name == "__all__":
            raise AttributeError(name)
        if self.__name__.endswith(".testing") and _in_checkout(f"{self.__name__}.{name}"):
            return importlib.import_module(f"{self.__name__}.{name}")
        return _Missing(f"{self.__name__}.{name}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds tvm.NAME as pleat.NAME."""

    def find_spec(self, name, path, target=None):
        if name == "tvm" or name.startswith("tvm."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        other = "pleat" + spec.name[3:]
        if ".testing." in spec.name and (path := _in_checkout(spec.name)):
            module = types.ModuleType(spec.name)
            module.__file__ = str(path)
            return module
        try:
            return _Module(spec.name, importlib.import_module(other))
        except ModuleNotFoundError as error:
            if error.name is None or not other.startswith(error.name):
                raise
            return _Module(spec.name, None)

    def exec_module(self, module):
        if not isinstance(module, _Module):
            exec(compile(pathlib.Path(module.__file__).read_text(), module.__file__, "exec"), vars(module))


def _in_checkout(name):
    """The file of a module of TVM's that only its tests use, such as workloads, in the checkout of the tests that
    run."""
    file = pathlib.Path("python", *name.split(".")).with_suffix(".py")
    folders = [folder for argument in sys.argv[1:] for folder in pathlib.Path(argument).resolve().parents]
    return next((folder / file for folder in folders if (folder / file).exists()), None)


# ---- The helpers of tvm.testing ---------------------------------------------------------------------

def _same(function=None, *_, **__):
    """A decorator that states what a test requires: it stays as it is."""
    return function if callable(function) else _same


def _skipped(*_, **__):
    return pytest.mark.skip(reason="needs a GPU or another package")


def _parameter(*values, ids=None, by_dict=None):
    if by_dict:
        ids, values = list(by_dict), list(by_dict.values())

    def value(*_, request):  # a class of tests passes itself too
        return request.param
    return pytest.fixture(params=list(values), ids=ids)(value)


def _parameters(*rows, ids=None):
    return tuple(_parameter(*column) for column in zip(*rows))


def _of_class(cls, name):
    """A member of a CompareBeforeAfter as a fixture: a program, a function that gives one, or an
    error."""
    member = getattr(cls, name)
    if isinstance(member, (pleat.IRModule, pleat.tir.PrimFunc)) or not inspect.isfunction(member):
        return pytest.fixture(lambda self: member)
    if "self" in inspect.signature(member).parameters:
        return pytest.fixture(member)
    text = "@T.prim_func\n" + textwrap.dedent(inspect.getsource(member))
    names = {**member.__globals__, **inspect.getclosurevars(member).nonlocals}
    return pytest.fixture(lambda self: pleat.script.from_source(text, names))


def _is_fixture(thing):
    return hasattr(thing, "_pytestfixturefunction") or type(thing).__name__ == "FixtureFunctionDefinition"


@pytest.fixture
def target():
    return "llvm"


@pytest.fixture
def dev():
    return pleat.cpu()


class CompareBeforeAfter:
    """A test that runs `transform` on `before` and compares with `expected`."""

    check_well_formed = True

    def __init_subclass__(cls):
        for name in ("before", "expected"):
            if name in cls.__dict__ and not _is_fixture(cls.__dict__[name]):
                setattr(cls, name, _of_class(cls, name))
        transform = cls.__dict__.get("transform")
        if transform is not None and not inspect.isfunction(transform) and not _is_fixture(transform):
            setattr(cls, "transform", pytest.fixture(lambda self: transform))
        elif inspect.isfunction(transform):
            is_rule = inspect.signature(transform).parameters.keys() - {"self"}
            if not is_rule:
                setattr(cls, "transform", pytest.fixture(transform))

    def test_compare(self, before, expected, transform):
        module = before if isinstance(before, pleat.IRModule) else pleat.IRModule({"main": before})
        if isinstance(expected, type) and issubclass(expected, Exception):
            with pytest.raises((expected, pleat.PleatError)):
                transform(module)
            return
        after = transform(module)
        if not isinstance(expected, pleat.IRModule):
            expected = pleat.IRModule({"main": expected})
        pleat.ir.assert_structural_equal(after, expected)


def _assert_same_value(lhs, rhs):
    assert pleat.arith.Analyzer().can_prove_equal(lhs, rhs), f"{lhs!r} and {rhs!r}"


def _other_helper(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _skipped() if name.startswith("requires_") else _Missing(f"tvm.testing.{name}")


def _no_device(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: False


def _testing():
    import numpy
    module = types.ModuleType("tvm.testing")
    module.__path__ = []
    for name in ("fixture", "requires_llvm", "skip_if_32bit", "slow", "uses_gpu", "requires_x86"):
        setattr(module, name, _same)
    module.fixture = lambda function=None, **_: pytest.fixture(function) if function else \
        pytest.fixture
    module.parameter, module.parameters = _parameter, _parameters
    module.CompareBeforeAfter = CompareBeforeAfter
    module.main = lambda: None
    module.assert_allclose = lambda a, b, rtol=1e-7, atol=1e-7: numpy.testing.assert_allclose(
        a, b, rtol, atol)
    module.assert_prim_expr_equal = _assert_same_value
    module.device_enabled = lambda target: target in ("llvm", "c")
    module.is_ampere_or_newer = lambda: False
    module.env = types.ModuleType("tvm.testing.env")  # which devices there are: none
    module.env.__getattr__ = _no_device
    module.__getattr__ = _other_helper
    return module


def _named_main(thing):
    return thing if isinstance(thing, pleat.IRModule) else pleat.IRModule({"main": thing})


def _without_symbols(thing):
    return pleat.IRModule({str(name): function.without_attr("global_symbol")
                           for name, function in _named_main(thing).items()})


def _assert_equal_but_names(a, b, *_, **__):
    pleat.ir.assert_structural_equal(_without_symbols(a), _without_symbols(b))


def _verify_trace_roundtrip(sch, mod, *, debug_mask="all", text_format=("python", "json")):
    """Replays the trace, and its JSON, on the program without steps."""
    for form in [text_format] if isinstance(text_format, str) else text_format:
        again = pleat.tir.Schedule(mod, debug_mask=debug_mask)
        if form == "json":
            pleat.tir.schedule.Trace.apply_json_to_schedule(sch.trace.as_json(), again)
        else:
            sch.trace.apply_to_schedule(again)
        pleat.ir.assert_structural_equal(again.mod, sch.mod)
        assert again.trace == sch.trace
    return again


def _schedule_modules():
    """Parts of TVM's package of schedules that are for its tests, or another name of the module."""
    schedule = importlib.import_module("pleat.tir.schedule")
    testing = types.ModuleType("testing")
    testing.verify_trace_roundtrip = _verify_trace_roundtrip
    testing.assert_structural_equal_ignore_global_symbol = _assert_equal_but_names
    for package in ("tvm.tir.schedule", "tvm.s_tir.schedule"):
        sys.modules[f"{package}.schedule"] = _Module(f"{package}.schedule", schedule)
        sys.modules[f"{package}.testing"] = testing


class _Refused:
    """A program of a test file that Pleat refuses: the tests that use it fail, and the others run."""

    def __init__(self, error):
        self.__dict__["_error"] = error

    def _raise(self, *_, **__):
        raise self._error

    __call__ = __getitem__ = __iter__ = __script__ = _raise

    def __getattr__(self, name):
        raise self._error


def _refuse_where_used(module):
    """Lets a decorator of programs at the top of a file return what it refuses."""
    original = module._decorated

    def decorated(function, frame):
        try:
            return original(function, frame)
        except Exception as error:
            if frame.f_code.co_name != "<module>":
                raise
            return _Refused(error)
    module._decorated = decorated


for _dialect in ("tir", "ir"):
    _refuse_where_used(importlib.import_module(f"pleat.script.{_dialect}"))
# The functions of the package tvm_ffi that its tests call are pleat.ir's.
sys.modules["tvm_ffi"] = _Module("tvm_ffi", importlib.import_module("pleat.ir"))
# Classic TVM defines the errors of its public module tvm.error here.
sys.modules["tvm._ffi.base"] = _Module("tvm._ffi.base", importlib.import_module("pleat.error"))
sys.modules["tvm._ffi"] = _Module("tvm._ffi", None)
sys.meta_path.insert(0, _Finder())
sys.modules["tvm.testing"] = _testing()
sys.modules["tvm.testing.env"] = sys.modules["tvm.testing"].env
_schedule_modules()
