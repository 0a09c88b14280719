# SPDX-License-Identifier: Apache-2.0
"""Layouts: where each element of a tensor lies in memory, and exact answers about that."""
import math

from pleat import _expression, _library
from pleat._library import PleatError, Undecided

__all__ = ["Answer", "Layout", "PleatError", "Undecided"]


class Answer:
    """The answer to a yes-or-no question.

    True and false as a condition; an undecided one raises `Undecided` there. `witness` is an index
    that breaks a claim that is false (two of them for a collision), at the `values` of the symbols
    where there are some; `level` says which method answered: "digits", "isl" or "points";
    `certificate` is the proof as text, where asked for.
    """

    def __init__(self, reply):
        self.verdict = reply["answer"]
        self.witness = reply.get("witness")
        self.values = reply.get("values")
        self.reason = reply.get("reason")
        self.level = reply.get("level")
        self.certificate = reply.get("certificate")

    def __bool__(self):
        if self.verdict == "unknown":
            raise Undecided(self.reason or "cannot be decided")
        return self.verdict == "yes"

    def __repr__(self):
        parts = [self.verdict]
        if self.verdict == "no" and self.witness is not None:
            parts.append(f"witness {self.witness}")
        if self.values:
            parts.append("where " + ", ".join(f"{k} = {v}" for k, v in self.values.items()))
        if self.reason:
            parts.append(self.reason)
        return f"<{'; '.join(parts)}>"


def _axis(value):
    return value if isinstance(value, str) else int(value)


class Layout:
    """An index map on a shape.

    spelling: "NCHW16c", "aBcd16b", "n,c,h,w -> n,c//16,h,w,c%16", a lambda's text,
        "(4,8):(8,1)", … or an IndexMap.
    shape: the logical extents, integers or names of symbols ("C").
    physical: the physical extents, where they are not those that follow from the spelling.
    where: conditions on the symbols, such as "C % 16 == 0".
    order: the logical axes of a named spelling in their order, "NCHW".

    Equal layouts need not be spelled alike: ask with `equal`. PleatError for what is no layout.
    """

    def __init__(self, spelling, shape, *, physical=None, where=(), order=None):
        fields = {"layout": str(spelling), "shape": [_axis(n) for n in shape]}
        if physical is not None:
            fields["physical"] = [_axis(n) for n in physical]
        if where:
            fields["where"] = [where] if isinstance(where, str) else list(where)
        if order is not None:
            fields["order"] = order
        self._fields = fields
        self.physical_shape = tuple(self._ask("physical_shape")["answer"])

    @property
    def shape(self):
        return tuple(self._fields["shape"])

    @property
    def spelling(self):
        return self._fields["layout"]

    def _ask(self, op, other=None, **fields):
        b = other._fields if other is not None else None
        return _library.query(op, a=self._fields, b=b, **fields)

    def ask(self, op, other=None, **fields):
        """Any question that `pleat layout --help-batch` lists, with its reply as a dictionary."""
        return self._ask(op, other, **fields)

    # ---- Yes or no ----------------------------------------------------------------------------

    def equal(self, other, certificate=False):
        """Same map on the same logical shape, with the same physical extents."""
        return Answer(self._ask("equal", other, certificate=certificate))

    def same_map(self, other):
        """Same map on this layout's logical shape, whatever the physical extents."""
        return Answer(self._ask("same_map", other))

    def is_identity(self, certificate=False):
        return Answer(self._ask("identity", certificate=certificate))

    def is_injective(self, certificate=False):
        """No two elements share a place."""
        return Answer(self._ask("injective", certificate=certificate))

    def is_onto(self, certificate=False):
        """No place is padding."""
        return Answer(self._ask("onto", certificate=certificate))

    def is_bijective(self, certificate=False):
        return Answer(self._ask("bijective", certificate=certificate))

    # ---- Maps ---------------------------------------------------------------------------------

    def index_map(self):
        """The map alone, as a pleat.tir.IndexMap."""
        from pleat.tir import IndexMap
        return IndexMap.parse(self.spell("index-map").partition(" in [")[0])

    def inverse(self):
        """(layout on the physical shape, padding): the map back to the logical index, and the
        condition on its arguments (text; None: never) that says which places are padding.
        PleatError where the layout is not injective."""
        return self._map_reply(self._ask("inverse"))

    def divide(self, other):
        """What turns `other`'s places into this layout's: a map on `other`'s physical shape, and
        which of its places are padding. A copy reads place p and writes place map(p)."""
        return self._map_reply(self._ask("divide", other))

    def compose(self, inner):
        """This layout after `inner`, whose physical shape is this layout's logical one."""
        reply = self._ask("compose", inner)
        return self._on(reply["shape"], reply["answer"], reply.get("physical"))

    def _on(self, shape, spelling, physical=None):
        if " in [" in spelling:  # the text says the physical extents itself
            physical = None
        return Layout(spelling, shape, physical=physical, where=self._fields.get("where", ()))

    def _map_reply(self, reply):
        if reply["answer"] in ("no", "unknown"):
            raise PleatError(f"there is no such map: {Answer(reply)!r}")
        return self._on(reply["shape"], reply["answer"]), reply.get("padding")

    # ---- Numbers ------------------------------------------------------------------------------

    def offset(self, *index):
        """The place of an element, row-major over the physical axes, in elements."""
        return self._ask("offset", at=list(index))["answer"]

    def logical(self, offset):
        """The logical index at an offset, as a tuple; None on padding."""
        answer = self._ask("logical", at=offset)["answer"]
        return answer if answer is None else tuple(answer)

    def padding_count(self):
        """Places that hold no element: an integer, or text of the symbols."""
        reply = self._ask("padding")
        if reply["answer"] == "unknown":
            raise Undecided(reply.get("reason") or "cannot be decided")
        return reply["answer"]

    def strides(self):
        """For each logical axis its constant step in elements, None where it has none."""
        return tuple(self._ask("strides")["answer"])

    def vector_widths(self):
        """For each logical axis the widest run of elements that is contiguous and aligned."""
        return tuple(self._ask("vector")["answer"])

    # ---- Arrays -------------------------------------------------------------------------------

    def _sizes(self):
        if any(isinstance(n, str) for n in self.shape + self.physical_shape):
            raise PleatError(f"{self!r} has symbolic extents; arrays need numbers")
        return math.prod(self.shape), math.prod(self.physical_shape)

    def _offsets(self):
        import numpy as np
        elements = self._sizes()[0]
        found = _library.offsets(self._fields, elements)
        return found.reshape(elements, -1) if elements else np.empty((0, 1), np.int64)

    def pack(self, array, fill=0):
        """`array`, of the logical shape, in this layout: an array of the physical shape whose
        padding holds `fill`."""
        import numpy as np
        array, places = np.asarray(array), self._sizes()[1]
        if array.shape != self.shape:
            raise ValueError(f"the array is {array.shape}, the layout's logical shape {self.shape}")
        out = np.full(places, fill, array.dtype)
        out[self._offsets()] = array.reshape(-1, 1)
        return out.reshape(self.physical_shape)

    def unpack(self, array):
        """The elements of `array`, which has the physical shape, as an array of the logical one."""
        import numpy as np
        array = np.asarray(array)
        if array.shape != self.physical_shape:
            raise ValueError(f"the array is {array.shape}, "
                             f"the layout's physical shape {self.physical_shape}")
        return array.reshape(-1)[self._offsets()[:, 0]].reshape(self.shape)

    # ---- Seeing -------------------------------------------------------------------------------

    def spell(self, kind):
        """This layout in another notation: "index-map", "named", "onednn", "cute", "xla", "torch",
        "bases", "shard". PleatError where that notation cannot say it, with the reason."""
        reply = self._ask("spell", **{"as": kind})
        if reply["answer"] == "no":
            raise PleatError(reply.get("reason") or f"no {kind} spelling")
        return reply["answer"]

    def svg(self):
        """A picture: the logical tensor coloured by physical order, and memory by logical axis."""
        return self._ask("svg")["answer"]

    def _repr_svg_(self):
        return self.svg()

    def __repr__(self):
        parts = [repr(self.spelling), repr(self.shape)]
        parts += [f"{key}={value!r}" for key, value in self._fields.items()
                  if key not in ("layout", "shape")]
        return f"Layout({', '.join(parts)})"


def parse_condition(text):
    """A padding condition as an expression."""
    return _expression.const(0) if text is None else _expression.parse(text)
