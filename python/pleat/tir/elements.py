# SPDX-License-Identifier: Apache-2.0
"""The elements of a large constant, T.allocate_const, as a field of its node."""
import base64
import collections.abc

MOST_LISTED = 256  # elements of a constant that are a list of Python's numbers
_TYPES = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"float32", "float64"}


class Elements(collections.abc.Sequence):
    """A sequence of numbers in the memory of an array of NumPy, which cannot be written."""

    def __init__(self, array):
        self._array = array.reshape(-1)
        self._array.flags.writeable = False

    def __len__(self):
        return self._array.size

    def __getitem__(self, index):
        return self._array[index].tolist()

    def __iter__(self):
        return iter(self._array.tolist())

    def __eq__(self, other):
        if not isinstance(other, Elements):
            return self._array.tolist() == other
        return self._array.dtype == other._array.dtype and self._array.tobytes() == other._array.tobytes()

    __hash__ = object.__hash__

    def __array__(self, dtype=None, copy=None):
        return self._array.astype(dtype or self._array.dtype, copy=bool(copy))

    def __repr__(self):
        return f"<{len(self)} elements of {self._array.dtype}>"

    def in_base64(self):
        return {"base64": base64.b64encode(self._array.data).decode()}


def elements_in_base64(text, dtype):
    """The elements of which a table has the bytes."""
    import numpy as np
    return Elements(np.frombuffer(base64.b64decode(text), dtype))


def elements_of(data, dtype):
    """The elements of a constant: a list, or Elements where they are many and their type is one of NumPy's."""
    data = data if hasattr(data, "__len__") else list(data)
    if len(data) <= MOST_LISTED and not hasattr(data, "ndim") or dtype not in _TYPES:
        return data.tolist() if hasattr(data, "ndim") else list(data)
    import numpy as np
    array = np.asarray(data)
    if array.size <= MOST_LISTED or array.dtype.kind not in "iuf" or not _holds(array, np.dtype(dtype)):
        return array.reshape(-1).tolist() if hasattr(data, "ndim") else list(data)
    return Elements(array.astype(dtype))


def _holds(array, dtype):
    """Does the type have these numbers? Otherwise they are listed, and refused where the constant is made."""
    if dtype.kind == "f":
        return True
    import numpy as np
    return array.dtype.kind != "f" and array.min() >= np.iinfo(dtype).min and array.max() <= np.iinfo(dtype).max
