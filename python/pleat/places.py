# SPDX-License-Identifier: Apache-2.0
"""Puts places of the user's files into messages about a printed program, such as those of the compiler."""
import dataclasses
import linecache
import re
import warnings

from pleat._library import ffi, _lib

# A place, and the source line with its caret. A message of running code has neither line nor caret, and
# its place follows the severity.
SHOWN = r"^(\w+: )?{title}:(\d+):\d+: (.*)(?:\n *\d+ \|.*\n *\|.*)?"


def _place_in(handle, line):
    """(file, line, column, width, source) of what a line of the printed module came from, or None."""
    place = ffi.new("PleatPlace **")
    _lib.pleat_module_place(handle, line, place, ffi.NULL)
    if place[0] == ffi.NULL:
        return None
    one = ffi.gc(place[0], _lib.pleat_free)
    return (ffi.string(one.file).decode(errors="replace"), one.line, one.column, one.width,
            ffi.string(one.source).decode(errors="replace"))


def place_of(program, line):
    """The same of a module or function, through all texts that it was printed as and read from; None where
    that is no text of the user."""
    place = _place_in(program._handle, line)
    for title, handle in program._origins:
        if place is not None and place[0] == title:
            place = _place_in(handle, place[1])
    return None if place is None or place[0].startswith("script of ") else place


def _moved(message, title, program):
    notes = tuple(_moved(note, title, program) for note in message.notes)
    run = re.match(SHOWN.format(title=re.escape(title)), message.text)
    line = int(run[2]) if run else message.line if message.file == title else None
    place = place_of(program, line) if line else None
    if place is None:
        return dataclasses.replace(message, notes=notes)
    return dataclasses.replace(message, notes=notes, file=place[0], line=place[1], column=place[2],
                               text=run[3] if run else message.text)


def title_of(program):
    """How messages call the printed text of a module or function."""
    return f"script of {getattr(program, '__name__', 'the module')}"


def _shown_at(text, title, place_at):
    """The text of an error, in which what it shows of a line of `title` is shown at the place that `place_at`
    gives for that line, as place_of does. A line without one stays as it is."""
    def shown(match):
        place = place_at(int(match[2]))
        if place is None:
            return match[0]
        file, line, column, width, source = place
        return (f"{file}:{line}:{column}: {match[1] or ''}{match[3]}\n{line:5} | {source}\n"
                f"      | {' ' * (column - 1)}{'^' * width}")
    return re.sub(SHOWN.format(title=re.escape(title)), shown, text, flags=re.M)


def located(error, program):
    """The PleatError about the printed text of a module or function, with the places that its lines came
    from."""
    title = title_of(program)
    text = _shown_at(str(error), title, lambda line: place_of(program, line))
    return type(error)(text, [_moved(message, title, program) for message in error.messages])


_WARNED = {}  # where and with which texts Python has warned; it warns once of each


def warn_of(messages, program):
    """Gives the compiler's warnings about the printed text of a module or function as warnings of Python, at the
    places that its lines came from."""
    for message in messages:
        if message.severity == "warning":
            place = _moved(message, title_of(program), program) if program else message
            warnings.warn_explicit(place.text, UserWarning, place.file or "pleat", place.line or 1,
                                   registry=_WARNED)


def _call_in(source, name):
    """(column, width) of the call of a method in a line, or of all of the line where there is none."""
    found = re.search(rf"\b{re.escape(name)}\s*\(", source)
    if not found:
        return len(source) - len(source.lstrip()) + 1, len(source.strip())
    depth = 0
    for end in range(found.end() - 1, len(source)):
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        if depth == 0:
            break
    return found.start() + 1, end + 1 - found.start()


def at_call(error, file, line, name):
    """The PleatError of a schedule step, with the line of Python that called it in place of the text of the
    step; the same error where that line is not known."""
    source = linecache.getline(file, line).rstrip()
    if not source:
        return error
    place = (file, line, *_call_in(source, name), source)
    text = _shown_at(str(error), file, lambda shown: place if shown == line else None)
    messages = [dataclasses.replace(message, column=place[2]) if (message.file, message.line) == (file, line)
                else message for message in error.messages]
    return type(error)(text, messages)
