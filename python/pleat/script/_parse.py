# SPDX-License-Identifier: Apache-2.0
"""Gives the source text of Python functions and classes to the library's parser, and answers its
questions about the names that they capture."""
import builtins
import importlib
import inspect
import linecache
import sys

from pleat._library import PleatError, _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.script._contents import Read
from pleat.script._values import Macro, MacroUse, Value, text_of

DIALECTS = {name: f"pleat.script.{name}" for name in ("tir", "tirx", "relax", "ir")}
USUAL_ALIASES = {"T", "tir", "tirx", "R", "relax", "I"}  # which the parser knows without an import


def _decorated_class(frame):
    """The same of the class whose decorator runs in this frame; None where no decorator does. Python finds a class
    by its name alone, which another class of the file may have, and only in modules that it has loaded by name."""
    lines, at = linecache.getlines(frame.f_code.co_filename, frame.f_globals), frame.f_lineno - 1
    if at >= len(lines) or not lines[at].lstrip().startswith("@"):
        return None
    while at and lines[at - 1].lstrip().startswith("@"):
        at -= 1
    return "".join(inspect.getblock(lines[at:])), frame.f_code.co_filename, at + 1


def source_of(thing, frame=None):
    """The text of a function or class, its file, and the number of its first line."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)) or thing.__name__ == "<lambda>":
        seen = "a lambda" if inspect.isfunction(thing) else repr(thing)
        raise TypeError(f"expected a function made by def, or a class, whose source text is read; got {seen}")
    found = _decorated_class(frame) if inspect.isclass(thing) and frame is not None else None
    if found:
        return found
    try:
        lines, first = inspect.getsourcelines(thing)
        return "".join(lines), inspect.getsourcefile(thing) or "script", max(first, 1)
    except (OSError, TypeError) as error:
        raise PleatError(f"the source text of {thing.__qualname__} is not known ({error}): write it "
                         "to a file, or use pleat.script.from_source") from error


def local_names(frame, thing):
    """The names of the functions and classes around a definition in this frame."""
    around, enclosing, names = [], set(thing.__qualname__.split(".")), {}
    while frame is not None and frame.f_code.co_name != "<module>":
        if not around or (frame.f_globals is around[0].f_globals
                          and frame.f_code.co_name in enclosing):
            around.append(frame)
        frame = frame.f_back
    for one in reversed(around):
        names.update(one.f_locals)
    return names


def make_macro(args, hygienic, frame):
    """The macro that a decorator makes of a function in this frame, or the decorator."""
    def make(function):
        return Macro(function, hygienic, local_names(frame, function))
    if args and not callable(args[0]):
        raise ValueError("a macro takes `hygienic` as a keyword argument")
    return make(*args) if args else make


def names_around(thing, module_names, names):
    """All names that a definition can use: those of Python, of its module, the given local ones,
    and, for a function, those that it closes over."""
    names = {**vars(builtins), **module_names, **names}
    if inspect.isfunction(thing):
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or ()):
            try:
                names[name] = cell.cell_contents
            except ValueError:  # it is assigned after this definition
                names.pop(name, None)
    return names


def _imports(names):
    """Imports that give the dialects the aliases that they have in the program, and take away those that
    are names of other values."""
    lines = []
    scripts = sys.modules["pleat.script"]
    lines += [f"from pleat import script as {name}" for name, value in names.items()
              if value is scripts and name.isidentifier()]
    for dialect, module in DIALECTS.items():
        module = sys.modules.get(module)
        lines += [f"from pleat.script import {dialect} as {name}" for name, value in names.items()
                  if value is module and module is not None and name.isidentifier()]
    lines += [f"from pleat.script import values as {name}" for name in sorted(USUAL_ALIASES & names.keys())
              if not inspect.ismodule(names[name]) and not callable(names[name])]
    return "\n".join(lines) + "\n"


def _is_operation(name):
    """Answers whether the program registered an operation of a name that the parser does not know."""
    if not importlib.import_module("pleat.ir.op").is_registered(name):
        raise NameError(name)
    return True


def _emit_te(*args, **options):
    """Answers with the call of the tensor program that R.emit_te makes."""
    return importlib.import_module("pleat.relax.emitted").emitted_in_script(*args, **options)


def _registers_operations():
    registry = sys.modules.get("pleat.ir.op")
    return registry is not None and registry.any_registered()


class _Capture:
    """Answers the parser: evaluates expressions among the names of the program.

    Scope 0 has the names around the script; each macro that is used adds one."""

    def __init__(self, names):
        self.scopes, self.keep, self.error = [names], [], None

    def answer(self, asked, captured):
        try:
            return self._answer(asked, captured)
        except NameError as error:
            if not ffi.string(asked.expression).startswith(b"_pleat_emit_te("):
                return _lib.PLEAT_CAPTURE_UNKNOWN
            self.error, text = error, str(error)
        except PleatError as error:
            self.error, text = error, str(error)
        except Exception as error:
            self.error, text = error, f"{type(error).__name__}: {error}{self._hint(asked, error)}"
        captured.text = self._text(text)
        return _lib.PLEAT_CAPTURE_REFUSED

    @staticmethod
    def _hint(asked, error):
        """Advice where an operation of Python was given a value of the program."""
        if not asked.name_count or not isinstance(error, (TypeError, IndexError)) or "known only" in str(error):
            return ""
        return ("\nPython computes this while the program is read, when "
                f"'{ffi.string(asked.names[0]).decode()}' has no value; pass what it needs as a parameter")

    def _answer(self, asked, captured):
        own = [ffi.string(asked.names[i]).decode() for i in range(asked.name_count)]
        names = {"_pleat_is_operation": _is_operation, "_pleat_emit_te": _emit_te, **self.scopes[asked.scope],
                 **{name: Value(name, self._type(asked, i)) for i, name in enumerate(own)}}
        value = eval(ffi.string(asked.expression).decode(), names)
        if isinstance(value, MacroUse):
            return self._macro(value.macro, captured)
        captured.text = self._text(text_of(value))
        return _lib.PLEAT_CAPTURE_VALUE

    @staticmethod
    def _type(asked, i):
        """The element type of a name of the script that is a buffer or a variable; None for others."""
        known = asked.types != ffi.NULL and asked.types[i] != ffi.NULL
        return ffi.string(asked.types[i]).decode() if known else None

    def _macro(self, macro, captured):
        text, file, captured.first_line = source_of(macro.function)
        captured.text, captured.file = self._text(text), self._text(file)
        self.scopes.append(names_around(macro.function, macro.function.__globals__, macro.names))
        captured.scope, captured.sees_names = len(self.scopes) - 1, not macro.hygienic
        return _lib.PLEAT_CAPTURE_MACRO

    def _text(self, text):
        self.keep = self.keep[-8:] + [ffi.new("char[]", text.encode())]
        return self.keep[-1]


def parse(text, file="script", first_line=1, names=None):
    """The module of the library for a script, which pleat_module_free frees."""
    captures = names is not None or _registers_operations()
    capture, read = _Capture(names or {}), Read()
    answer = ffi.callback("int(void *, const PleatCapture *, PleatCaptured *)",
                          lambda _, asked, captured: capture.answer(asked, captured))
    keep = [ffi.new("char[]", part.encode()) for part in (text, file, _imports(names or {}))]
    script = ffi.new("PleatScript *", {
        "size": ffi.sizeof("PleatScript"), "text": keep[0], "file": keep[1],
        "first_line": first_line, "imports": keep[2],
        "capture": answer if captures else ffi.NULL, "contents": read.call_back})
    module, messages = ffi.new("PleatModule **"), ffi.new("PleatMessages **")
    with read:
        status = _lib.pleat_module_parse(script, module, messages)
    try:
        check_status(status, messages)
    except PleatError as error:
        raise error from capture.error
    return ffi.gc(module[0], _lib.pleat_module_free)


def parse_definition(thing, frame, marker, replaces=False):
    """The module of the library for a function or a class that is defined in a frame.

    marker: the decorator, such as "tir.prim_func", of a definition that was written without one
    and given to the function instead; with `replaces`, it takes the place of the one that was written"""
    text, file, first_line = source_of(thing, frame)
    while replaces and text.lstrip().startswith("@"):
        text, first_line = text.partition("\n")[2], first_line + 1
    names = names_around(thing, frame.f_globals, local_names(frame, thing))
    if not text.lstrip().startswith("@"):
        indent, dialect = text[:len(text) - len(text.lstrip())], marker.partition(".")[0]
        names[f"_pleat_{dialect}"] = sys.modules[DIALECTS[dialect]]
        text, first_line = f"{indent}@_pleat_{marker}\n{text}", first_line - 1
    return parse(text, file, first_line, names)


def is_in_module_class(frame):
    """Is this the body of a class under @ir_module? Its functions are read with the class."""
    if "__qualname__" not in frame.f_locals or "__module__" not in frame.f_locals:
        return False
    try:
        lines, _ = inspect.findsource(frame.f_code)
    except OSError:
        return False
    at = frame.f_code.co_firstlineno - 1
    while at < len(lines) and lines[at].lstrip().startswith(("@", "#")):
        if "ir_module" in lines[at] or "rewriter" in lines[at]:
            return True
        at += 1
    return False


def from_source(text, extra_vars=None):
    """The function or module in a text of TVMScript; with `extra_vars`, a dictionary of captured
    names. A single tensor program without a class is a PrimFunc, otherwise the result is an
    IRModule."""
    if not isinstance(text, str):
        raise TypeError(f"from_source: expected a text of TVMScript, not {type(text).__name__}")
    made = importlib.import_module("pleat.ir._module")
    return made.unwrapped(parse(text, names=extra_vars))


def format(text, *, upgrade=False, newer_names=False, file="script"):  # noqa: A001
    """The text of a Python file with its TVMScript formatted. Other Python and comments stay.

    upgrade: rewrites the syntax of older versions of TVMScript
    newer_names: with `upgrade`, uses TVM's names since 2026, T.sblock and tirx
    file: its name in messages

    Raises PleatError, with the lines at fault, for a script that cannot be read."""
    keep = ffi.new("char[]", file.encode())
    options = ffi.new("PleatFormatOptions *", {
        "size": ffi.sizeof("PleatFormatOptions"), "upgrade": upgrade, "newer_names": newer_names,
        "file": keep})
    formatted, messages = ffi.new("char **"), ffi.new("PleatMessages **")
    check_status(_lib.pleat_script_format(text.encode(), options, formatted, messages), messages)
    return _owned_text(formatted[0])
