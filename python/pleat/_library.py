# SPDX-License-Identifier: Apache-2.0
"""Loads libpleat.so, and sends it questions for the classes of this package."""
import dataclasses
import functools
import importlib
import json
import os
import pathlib
import warnings

from pleat import _declarations

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Message:
    """An error, a warning or a note, of which it is the `severity`.

    `code` is the kind of fault, one of the words that pleat.h lists; `file`, `line`, `column` and
    `node` say where it is, and are None where they are not known; `text` may have several lines."""
    severity: str
    code: str
    text: str
    file: str = None
    line: int = None
    column: int = None
    node: str = None
    notes: tuple = ()

    def __str__(self):
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        node = f"node '{self.node}': " if self.node else ""
        return f"{place + ': ' if place else ''}{self.severity}: {node}{self.text}"


class PleatError(RuntimeError, ValueError):
    """A refused question or model. The text says what is wrong and where, with a caret;
    `messages` is a list of the same as Message objects. TVM raises one or the other of its bases."""

    def __init__(self, text, messages=()):
        super().__init__(text)
        self.messages = list(messages)


class Undecided(PleatError):
    """Raised when an undecided answer is used as yes or no; the message is the reason."""


CHECKOUT = HERE.parent.parent  # when the package runs from a checkout


def _candidates():
    if os.environ.get("PLEAT_LIBRARY"):
        return [pathlib.Path(os.environ["PLEAT_LIBRARY"])]
    return [HERE / "libpleat.so", CHECKOUT / "build" / "libpleat.so",
            pathlib.Path("libpleat.so.0")]


def _made_interface(folders):
    """The module _interface of the first of the folders that has one, or None."""
    from importlib import machinery, util
    spec = machinery.PathFinder.find_spec(_declarations.NAME, [str(folder) for folder in folders])
    if not spec:
        return None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _interface():
    """The cffi interface. It is that of the module that the build made, unless the package runs
    from a checkout whose headers have changed since; the headers themselves are then read."""
    given = os.environ.get("PLEAT_LIBRARY")
    folders = [HERE, *([pathlib.Path(given).parent / "python"] if given else []),
               CHECKOUT / "build" / "python"]
    module = _made_interface(folders)
    headers = _declarations.header_text(CHECKOUT / "include" / "pleat")
    if module and headers in (None, module.HEADERS):
        return module.ffi
    if not headers:
        raise ImportError(f"{_declarations.NAME}.py is missing in {HERE}; install this package "
                          "again with pip, which makes it")
    if module:
        warnings.warn(f"{module.__file__} was made from other headers than those of {CHECKOUT}, "
                      "which are read instead, in about 60 ms; ninja makes it again",
                      ImportWarning, stacklevel=2)
    return _declarations.cffi_interface(headers)


def _check_version(lib, path):
    """Refuses a library that may lack something of the headers; pleat.h has the rule."""
    has, needs = lib.pleat_version_number(), lib.PLEAT_VERSION_NUMBER
    if has // 10000 != needs // 10000 or has < needs:
        def spelled(number):
            return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        raise ImportError(f"{path} is version {spelled(has)} of Pleat, and this package needs "
                          f"{spelled(needs)} or a later version {needs // 10000}: install both from "
                          "the same sources, or say in PLEAT_LIBRARY where the library is")


def _open():
    ffi, tried = _interface(), []
    for path in _candidates():
        try:
            lib = ffi.dlopen(str(path))
        except OSError as error:
            tried.append(f"  {error}")
            continue
        _check_version(lib, path)
        return ffi, lib
    raise ImportError("libpleat.so was not found; build Pleat and install this package again, or "
                      "say where it is in PLEAT_LIBRARY\n" + "\n".join(tried))


class _Opened:
    """The library and its cffi interface, which are opened when they are first used, because an
    import of this package should take no time."""

    @functools.cached_property
    def both(self):
        return _open()


class _Part:
    def __init__(self, opened, number):
        self._opened, self._number = opened, number

    def __getattr__(self, name):
        value = getattr(self._opened.both[self._number], name)
        setattr(self, name, value)
        return value


class Lazy:
    """A module that is imported when it is first used."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value


_opened = _Opened()
ffi, _lib = _Part(_opened, 0), _Part(_opened, 1)


def version():
    return ffi.string(_lib.pleat_version_text()).decode()


def _owned_text(pointer):
    if pointer == ffi.NULL:
        raise MemoryError("Pleat ran out of memory")
    try:
        return ffi.string(pointer).decode()
    finally:
        _lib.pleat_free(pointer)


SEVERITIES = ("error", "warning", "note")


def _text(pointer):
    return None if pointer == ffi.NULL else ffi.string(pointer).decode(errors="replace")


def message_of(one):
    """A PleatMessage as a Message object."""
    notes = tuple(message_of(one.notes[i]) for i in range(one.note_count))
    return Message(SEVERITIES[one.severity], _text(one.code), _text(one.text), _text(one.file),
                   one.line or None, one.column or None, _text(one.node), notes)


def take_messages(pointer):
    """The text and the Message objects of owned PleatMessages, which are then freed."""
    try:
        return (_text(_lib.pleat_messages_text(pointer)).rstrip("\n"),
                [message_of(_lib.pleat_messages_get(pointer, i))
                 for i in range(_lib.pleat_messages_count(pointer))])
    finally:
        _lib.pleat_messages_free(pointer)


def _query_message(error, severity="error"):
    notes = tuple(_query_message(note, "note") for note in error.get("notes", []))
    return Message(severity, "layout", error["message"], error.get("field"),
                   1 if "column" in error else None, error.get("column"), notes=notes)


def _error(error):
    """The exception for the "error" of a reply, with the text and a caret if there is a text."""
    lines = [error["message"]]
    text, column = error.get("text"), error.get("column")
    if text and column and "\n" not in text:
        width = max(error.get("end", column + 1) - column, 1)
        lines += [f"  {text}", "  " + " " * (column - 1) + "^" * width]
    for note in error.get("notes", []):
        lines.append(f"note: {note['message']}")
    return PleatError("\n".join(lines), [_query_message(error)])


def query(op, certificate=False, **fields):
    """The reply to one question, as a dictionary. PleatError when the question is refused."""
    request = json.dumps({"op": op, **{k: v for k, v in fields.items() if v is not None}})
    reply = json.loads(_owned_text(_lib.pleat_layout_query(request.encode(), certificate)))
    if "error" in reply:
        raise _error(reply["error"])
    return reply


def _check(status, messages):
    text, items = take_messages(messages[0])
    if status:
        raise PleatError(text, items)


def offsets(layout, count):
    """The offsets of all elements of a layout, as an array of int64.

    `layout` is an object as in a question, and `count` the expected number of offsets."""
    import numpy as np
    lib, messages = _lib, ffi.new("PleatMessages **")
    handle, total = ffi.new("PleatLayout **"), ffi.new("int64_t *")
    _check(lib.pleat_layout_from_json(json.dumps(layout).encode(), handle, messages), messages)
    try:
        out = np.empty(count, np.int64)
        while True:
            room = ffi.cast("int64_t *", out.ctypes.data)
            _check(lib.pleat_layout_offsets(handle[0], room, out.size, total, messages), messages)
            if total[0] <= out.size:
                return out[:total[0]]
            out = np.empty(total[0], np.int64)  # the layout has copies
    finally:
        lib.pleat_layout_free(handle[0])
