# SPDX-License-Identifier: Apache-2.0
"""The numbers that types have."""
import math
import re

# The greatest finite number, by the type.
GREATEST = {"float64": math.ldexp(1 - 2.0**-53, 1024), "float32": (2 - 2.0**-23) * 2.0**127,
            "float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127}


def bounds_of(dtype):
    """(least, greatest) finite number of a type; None where they are not known."""
    if dtype in GREATEST:
        return -GREATEST[dtype], GREATEST[dtype]
    if dtype == "bool":
        return 0, 1
    form = re.fullmatch(r"(u?)int(\d+)", dtype)
    if not form:
        return None
    bits = int(form[2])
    return (0, 2**bits - 1) if form[1] else (-2**(bits - 1), 2**(bits - 1) - 1)


def fits(value, dtype):
    """Is it between the least and the greatest number of the type? Infinities and NaN are numbers of floating-point
    types. For bfloat16, what rounds to one is a number, too."""
    bounds = bounds_of(dtype)
    if dtype == "bfloat16":
        value *= 1 - 2.0**-9
    return bounds is None or not math.isfinite(value) or bounds[0] <= value <= bounds[1]


def type_of_number(value):
    """The type of a number of Python without one: int32, float32 or bool, or a larger one that has it."""
    if isinstance(value, bool):
        return "bool"
    types = ("float32", "float64") if isinstance(value, float) else ("int32", "int64", "uint64")
    return next((dtype for dtype in types if fits(value, dtype)), types[0])
