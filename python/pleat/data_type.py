# SPDX-License-Identifier: Apache-2.0
"""Types of elements as objects with TVM's fields: DataType("float32x4").lanes is 4."""
import enum
import re

_BITS = {"bool": 8, "handle": 64, "void": 0}
_LETTERS = {"int": "INT", "uint": "UINT", "float": "FLOAT", "bfloat": "BFLOAT"}


_SHORT = re.compile(r"(u?int|float)(?=x\d+$|$)")


def full_name(dtype):
    """The name of a type with its bits: "float" is float32, and "int" int32, as in TVM."""
    return _SHORT.sub(r"\g<1>32", dtype, count=1) if _SHORT.match(dtype) else dtype


class DataTypeCode(enum.IntEnum):
    """The kinds of types, with the numbers that DLPack gives them."""
    INT, UINT, FLOAT, HANDLE, BFLOAT, BOOL = 0, 1, 2, 3, 4, 6


class DataType(str):
    """A type of elements: its name, as text, and its parts. `itemsize` counts the bytes of all lanes."""

    def __new__(cls, name):
        name = full_name(str(name)) or "void"
        match = re.fullmatch(r"(bool|handle|void|(?:u?int|b?float)(\d+)(?:_\w+)?)(?:x(\d+))?", name)
        if not match:
            raise ValueError(f"expected the name of a type such as 'float32x4', saw {name!r}")
        self = super().__new__(cls, name)
        kind = match[1]
        letters = re.match("[a-z]+", kind)[0]
        self.bits = int(match[2] or _BITS.get(kind))
        self.lanes = int(match[3] or 1)
        self.type_code = DataTypeCode[_LETTERS.get(letters, "BOOL" if letters == "bool" else "HANDLE")]
        return self

    @property
    def itemsize(self):
        return (self.bits * self.lanes + 7) // 8

    def with_lanes(self, lanes):
        """The type of as many elements of the same kind."""
        name = re.sub(r"x\d+$", "", self)
        return DataType(f"{name}x{lanes}" if lanes != 1 else name)

    def __repr__(self):
        return f"DataType({str(self)!r})"
