# SPDX-License-Identifier: Apache-2.0
"""Arrays by their names as bytes, in the format of TVM's save_param_dict: a magic number, the names, and each
array with its device, element type, shape and elements. All numbers have the order of the processor's bytes."""
import struct

import numpy

LIST, ARRAY = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F  # what a list of arrays, and an array, begins with
CPU = 1


def _array_bytes(name, value):
    from pleat.model import element_of
    array = numpy.asarray(value.numpy() if hasattr(value, "numpy") else value, order="C")
    element = element_of(array.dtype)
    if element is None:
        raise TypeError(f"the array {name!r} has element type {array.dtype}, which arrays of programs do not have")
    shape = numpy.shape(array)
    head = struct.pack("<QQiiiBBH", ARRAY, 0, CPU, 0, len(shape), *element)
    return head + struct.pack(f"<{len(shape)}qq", *shape, array.nbytes) + array.tobytes()


def save_param_dict(params):
    """The arrays of a dictionary as bytes."""
    names = [name.encode() for name in params]
    parts = [struct.pack("<QQQ", LIST, 0, len(names))]
    parts += [struct.pack("<Q", len(name)) + name for name in names]
    parts.append(struct.pack("<Q", len(names)))
    return b"".join(parts + [_array_bytes(name, value) for name, value in params.items()])


def _dtype_of(*element):
    from pleat.model import EXTENDED_CODES, NUMPY_TYPES, dtype_of, element_of
    for name in (*NUMPY_TYPES, *EXTENDED_CODES):
        if name in NUMPY_TYPES or element[0] == EXTENDED_CODES[name]:
            dtype = dtype_of(name)
            if element_of(dtype) == element:
                return dtype
    raise ValueError("an array has the element type with code {}, {} bits and {} lanes, which arrays of programs do "
                     "not have".format(*element))


class _Reader:
    def __init__(self, data):
        self._data, self._at = memoryview(data), 0

    def bytes(self, count):
        if not 0 <= count <= len(self._data) - self._at:
            raise ValueError(f"the parameters end after {len(self._data)} bytes, within a name or an array")
        self._at += count
        return self._data[self._at - count:self._at]

    def numbers(self, form):
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def magic(self, expected, what):
        found, _ = self.numbers("QQ")
        if found != expected:
            raise ValueError(f"expected {what} as save_param_dict writes it, which begins with {expected:#x}, "
                             f"saw {found:#x}")

    def array(self):
        from pleat.nd import array
        self.magic(ARRAY, "an array")
        _, _, rank, code, bits, lanes = self.numbers("iiiBBH")
        shape = self.numbers(f"{max(rank, 0)}q")
        size, = self.numbers("q")
        dtype = _dtype_of(code, bits, lanes)
        values = numpy.frombuffer(self.bytes(size), dtype)
        if any(extent < 0 for extent in shape) or values.size != numpy.prod(shape, dtype=object):
            raise ValueError(f"an array of shape {list(shape)} has {size} bytes of {dtype}")
        return array(values.reshape(shape))


def load_param_dict(data):
    """The arrays, by their names, that save_param_dict wrote."""
    reader = _Reader(bytes(data))
    reader.magic(LIST, "a dictionary of arrays")
    count, = reader.numbers("Q")
    names = [bytes(reader.bytes(*reader.numbers("Q"))).decode() for _ in range(count)]
    if reader.numbers("Q") != (count,):
        raise ValueError(f"the parameters have {count} names, and another number of arrays")
    return {name: reader.array() for name in names}


def save_param_dict_to_file(params, path):
    """Writes what save_param_dict gives to a file."""
    with open(path, "wb") as file:
        file.write(save_param_dict(params))


def load_param_dict_from_file(path):
    """The arrays that save_param_dict_to_file wrote."""
    with open(path, "rb") as file:
        return load_param_dict(file.read())
