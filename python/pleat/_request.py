# SPDX-License-Identifier: Apache-2.0
"""Requests to the library: which call-backs they have, and what their calls raise."""
import threading

from pleat._library import PleatError, _lib, ffi, message_of, take_messages


class PleatFault(PleatError):
    """An internal error of Pleat. Please report it with the model."""


class PleatCancelled(PleatError):
    """A call-back ended the call."""


def set_numbers(struct, **numbers):
    """Sets fields of a struct. An error names the field, which has the name of the caller's argument."""
    for name, value in numbers.items():
        try:
            setattr(struct, name, value)
        except TypeError:
            raise TypeError(f"{name}: expected an integer, not {value!r}") from None
        except OverflowError:
            raise OverflowError(f"{name}: {value} is too large") from None


class Hooks:
    """The call-backs of a request. An exception in one of them ends the call, which raises it."""

    def __init__(self, log, progress):
        self.log, self.progress, self.error, self.keep = log, progress, None, []

    def set_in(self, struct):
        if self.log:
            struct.log = self._keep(ffi.callback("void(void *, const PleatMessage *)", self._log))
        if self.progress:
            struct.progress = self._keep(ffi.callback("int(void *, const char *, int, int)",
                                                      self._progress, error=1))
        if self.log or self.progress:
            struct.cancel = self._keep(ffi.callback("int(void *)", self._cancel, error=1))

    def _keep(self, call_back):
        self.keep.append(call_back)
        return call_back

    def _call(self, function, *arguments):
        try:
            return None if self.error else function(*arguments)
        except BaseException as error:  # the call raises it again
            self.error = error
            return None

    def _log(self, _, message):
        self._call(lambda: self.log(message_of(message)))

    def _progress(self, _, what, done, count):
        stop = self._call(lambda: self.progress(ffi.string(what).decode(), done, count))
        return bool(self.error) or stop is False

    def _cancel(self, _):
        return bool(self.error)


class Pool:
    """The caller's function that runs the loops of a model, as the library calls it.

    An exception in it ends the run, which raises it. Sessions may call it in several threads."""

    def __init__(self, function):
        self._function, self._raised = function, threading.local()
        self._call_back = ffi.callback("PleatParallelFor", self._run)

    def set_in(self, struct):
        struct.parallel_for = self._call_back

    def _run(self, _, body, body_env, count):
        is_open = True

        def part(begin, end):
            if not is_open or not 0 <= begin <= end <= count:
                raise ValueError(f"the part {begin} to {end} of a loop of {count} iterations"
                                 + ("" if is_open else ", which has ended"))
            body(body_env, begin, end)
        try:
            self._function(part, count)
        except BaseException as error:  # the run raises it again
            self._raised.error = error
        is_open = False

    @property
    def error(self):
        """The exception of this thread's run, which is then forgotten."""
        return self._raised.__dict__.pop("error", None)


class Callers:
    """Several of what runs code of the caller, as one."""

    def __init__(self, *callers):
        self._callers = callers

    def set_in(self, struct):
        for caller in self._callers:
            caller.set_in(struct)

    @property
    def error(self):
        """The first exception that one of them has."""
        return next(filter(None, [caller.error for caller in self._callers]), None)


def together(*callers):
    """One object for those of the callers that are not None; None when there is none."""
    callers = [caller for caller in callers if caller]
    return Callers(*callers) if len(callers) > 1 else next(iter(callers), None)


def check_status(status, messages, *callers):
    """The list of messages; raises the exception that belongs to the status. `callers` are what ran
    code of the caller during the call: Hooks, a Pool or None."""
    text, items = take_messages(messages[0])
    for error in [caller.error for caller in callers if caller]:
        if error:
            raise error
    if status == _lib.PLEAT_OK:
        return items
    if status == _lib.PLEAT_NO_MEMORY:
        raise MemoryError(text)
    kinds = {_lib.PLEAT_FAULT: PleatFault, _lib.PLEAT_CANCELLED: PleatCancelled}
    raise kinds.get(status, PleatError)(text, items)
