# SPDX-License-Identifier: Apache-2.0
"""The contents of large constants, which scripts refer to by their names. The library has the bytes, and modules,
nodes and models share them."""
import threading
import weakref

from pleat._library import _lib, ffi
from pleat._request import check_status

MOST_PRINTED = 1000  # elements of a constant that is printed in full
_known = weakref.WeakValueDictionary()  # the contents that something has, by their names
_had_by = weakref.WeakKeyDictionary()  # those of the modules that were printed, by their handles


class Contents:
    """The bytes of a constant."""

    def __init__(self, owned):
        self.handle = ffi.gc(owned, _lib.pleat_contents_free)
        self.name = ffi.string(_lib.pleat_contents_name(owned)).decode()

    def array(self, dtype, shape):
        """The elements as an array that cannot be written, without a copy."""
        import numpy as np
        data = ffi.cast("char *", _lib.pleat_contents_data(self.handle))
        kept = ffi.gc(data, lambda _, owner=self: None)  # the array keeps the contents
        array = np.frombuffer(ffi.buffer(kept, _lib.pleat_contents_bytes(self.handle)), dtype).reshape(shape)
        array.flags.writeable = False
        return array


def _kept(owned):
    """The object for contents, of which it frees the reference."""
    made = Contents(owned)
    return _known.setdefault(made.name, made)


def contents_of(array):
    """The contents of an array of NumPy, which are copied unless they are known by it already."""
    import numpy as np
    owned, messages = ffi.new("PleatContents **"), ffi.new("PleatMessages **")
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    data = ffi.from_buffer(array.reshape(-1).view(np.uint8)) if array.size else ffi.NULL
    check_status(_lib.pleat_contents_new(data, array.nbytes, owned, messages), messages)
    return _kept(owned[0])


def named(name):
    """The contents of this name, or None."""
    return _known.get(name)


class Printed:
    """The call-back of a printer, which takes the contents that the text has by their names. They are known as long
    as the module of the handle."""

    def __init__(self, handle):
        self.contents, self.handle = {}, handle
        self.call_back = ffi.callback("void(void *, PleatContents *)", self._take)

    def _take(self, _, contents):
        one = _kept(_lib.pleat_contents_keep(contents))
        self.contents[one.name] = one

    def keep(self):
        if self.contents:
            _had_by.setdefault(self.handle, {}).update(self.contents)
        return list(self.contents.values())


_reading = threading.local()  # the Read of the script that this thread reads


class Read:
    """The call-back of a reader, which gives the contents of names, and those of arrays that the script captures."""

    def __init__(self):
        self.contents = []
        self.call_back = ffi.callback("PleatContents *(void *, const char *)", self._give)

    def _give(self, _, name):
        found = named(ffi.string(name).decode())
        self.contents.append(found)  # until the script is read
        return ffi.NULL if found is None else found.handle


    def __enter__(self):
        self._outer, _reading.by = getattr(_reading, "by", None), self
        return self

    def __exit__(self, *_):
        _reading.by = self._outer


def large_contents(array):
    """The contents of a large array; None for a small one, and for elements that constants do not have."""
    if array.size <= MOST_PRINTED:
        return None
    from pleat.model import NARROW_BITS, element_of
    if array.dtype.subdtype or element_of(array.dtype) is None or array.dtype.name in NARROW_BITS:
        return None
    return contents_of(array)


def constant_text(contents, array):
    """The constant of an array whose contents are known by their name."""
    return f'R.const("{contents.name}", R.Tensor({array.shape}, "{array.dtype}"))'


def captured_text(array):
    """The text of a large array that a script captures while it is read; None for others."""
    reader = getattr(_reading, "by", None)
    contents = large_contents(array) if reader is not None else None
    if contents is None:
        return None
    reader.contents.append(contents)
    return constant_text(contents, array)
