# SPDX-License-Identifier: Apache-2.0
"""Layouts: where each element of a tensor is stored in memory, and exact answers about it.

Extents, and numbers in answers, are integers, or texts such as "C" or "16*K" when they are
symbolic. A mistake raises PleatError, which says where the mistake is. A question that cannot be
decided for all values of the symbols raises Undecided with the reason.
"""
import math
import operator
from typing import NamedTuple, Optional, Tuple, Union

from pleat import _expression, _library
from pleat._library import PleatError, Undecided

__all__ = ["Answer", "Block", "Conflicts", "Copy", "Factor", "Layout", "Level", "Loop", "Loops",
           "Move", "Place", "PleatError", "Runs", "Slice", "Swizzle", "Undecided"]

Extent = Union[int, str]


class Answer:
    """The answer to a yes-or-no question.

    As a condition it is true or false; an undecided answer raises `Undecided` there. `witness` is
    an index that refutes the question (two indices for a collision); if the layout has symbols,
    they have the `values`. `level` is the method that answered: "digits", "isl" or "points".
    `certificate` is the proof as text, if the question asked for it.
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


def _why_not(answer):
    """Why an answer is no, as text: two indices that collide, or the whole answer."""
    pair = answer.witness
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(one, list) for one in pair)):
        return repr(answer)
    values = ", ".join(f"{name} = {value}" for name, value in (answer.values or {}).items())
    where = f" where {values}" if values else ""
    return f"{pair[0]} and {pair[1]} have the same physical index{where}"


class Slice(NamedTuple):
    """The layout of a box of a tensor: it maps the box's indices to offsets in the whole tensor.

    The box's first element has the offset `offset`, and the others are at `strides` from it; both
    are None when the box has no such description."""
    layout: "Layout"
    offset: Optional[Extent]
    strides: Optional[Tuple[Extent, ...]]


class Runs(NamedTuple):
    """`total` lines or offsets in `count` runs of consecutive ones; `runs` has the first runs as
    (start, length)."""
    total: int
    count: int
    runs: Tuple[Tuple[int, int], ...]


class Conflicts(NamedTuple):
    """The bank conflicts of an access.

    degree: the words that the busiest bank, `bank`, serves in one phase; 1 is no conflict.
    waves: the sum over all phases of the words that the phase's busiest bank serves.
    words: the number of distinct words read. phase: the number of lanes served together.
    lanes: two lanes that wait for each other, or None."""
    degree: int
    waves: int
    words: int
    bank: int
    phase: int
    lanes: Optional[list]


class Swizzle(NamedTuple):
    """A layout after a linear swizzle of its offsets.

    offset_map: the swizzle as a map of offsets, "o -> o ^ ...". name: "Swizzle<B,M,S>" when the
    swizzle has that form. waves: the waves of each access. bound: a lower bound of the waves of any
    linear swizzle. optimal: whether no linear swizzle has fewer waves, which is proved."""
    layout: "Layout"
    offset_map: str
    name: Optional[str]
    waves: Tuple[int, ...]
    bound: Tuple[int, ...]
    optimal: bool


class Factor(NamedTuple):
    """The digit (axis // cut) % extent, and its stride in each of two layouts."""
    axis: str
    cut: int
    extent: Extent
    strides: Tuple[Extent, Extent]


class Place(NamedTuple):
    """The resource, "memory" or a name, that one step of a digit changes by `stride`."""
    resource: str
    stride: Extent


class Move(NamedTuple):
    """Where the digit (axis // cut) % extent is before and after a copy.

    `source` or `target` is None when the digit changes no physical axis there."""
    axis: str
    cut: int
    extent: Extent
    source: Optional[Place]
    target: Optional[Place]


class Level(NamedTuple):
    """The elements for which this is the outermost resource on which their physical index changes.

    where: the layout that has the resource: the source ("from"), the target ("to"), or both."""
    resource: str
    where: str
    elements: int
    bytes: int


class Copy(NamedTuple):
    """A copy, described by the digits that move.

    copies: the number of elements written. still: the number of elements that keep their physical
    index. levels: the elements that move over each resource. All are None for symbolic extents."""
    moves: Tuple[Move, ...]
    copies: Optional[int]
    still: Optional[int]
    levels: Optional[Tuple[Level, ...]]


class Loop(NamedTuple):
    """A loop of `extent` iterations, each `stride` further in memory and `step` further on `axis`.

    The axis is "" when the loop runs over several axes."""
    axis: str
    step: int
    extent: Extent
    stride: Extent


class Loops(NamedTuple):
    """Loops that visit memory in sequence, the outermost first.

    index: the map from the loops' counters to the logical index. guard: the condition under which
    there is an element; None: always."""
    loops: Tuple[Loop, ...]
    index: str
    guard: Optional[str]


class Block(NamedTuple):
    """`extent` steps of `block` elements along an axis."""
    axis: str
    block: int
    extent: Extent


def _axis(value):
    return value if isinstance(value, str) else operator.index(value)


def _extents(shape):
    """A list of extents from a sequence or from one extent; text ("1x30x7x7") is unchanged."""
    if isinstance(shape, str):
        return shape
    return [_axis(n) for n in (shape if hasattr(shape, "__iter__") else [shape])]


def _range(value):
    """A range of an axis as text, from an index, a slice, a range or a tuple; text is unchanged."""
    if isinstance(value, str):
        return value
    if isinstance(value, range):
        value = slice(value.start, value.stop, value.step)
    if isinstance(value, slice):
        parts = [value.start, value.stop] + ([] if value.step is None else [value.step])
    elif isinstance(value, (tuple, list)):
        parts = value
    else:
        parts = [int(value), int(value) + 1]
    return ":".join("" if part is None else str(_axis(part)) for part in parts)


def _box(box, axes):
    """Ranges as text: `box` is text, a mapping of axes to ranges, or a range for each axis."""
    if isinstance(box, str):
        return ", ".join([box] * bool(box) + [f"{k}={_range(v)}" for k, v in axes.items()])
    if box is not None and not hasattr(box, "items"):
        box = [_range(item) for item in box]
        return ", ".join(box + [f"{k}={_range(v)}" for k, v in axes.items()])
    return ", ".join(f"{k}={_range(v)}" for k, v in {**(box or {}), **axes}.items())


def _read(read):
    """An access as text of ranges, or as an object with a map from lanes to indices."""
    return read if hasattr(read, "items") and "map" in read else _box(read, {})


def _banks(banks, element_bits, vector):
    return {"banks": list(banks), "element_bits": element_bits, "vector": vector}


class Layout:
    """An index map on a shape.

    spelling: "NCHW16c", "aBcd16b", "n,c,h,w -> n,c//16,h,w,c%16", a lambda's text,
        "(4,8):(8,1)", … or an IndexMap, or a function of indices as IndexMap.from_func takes.
    shape: the logical extents, integers or names of symbols ("C"). None: those in the spelling
        (CuTe, PyTorch, bases, shards, XLA after a type), else a symbol for each axis, "N", "C".
    physical: the physical extents, if they differ from those that follow from the spelling.
    where: conditions on the symbols, such as "C % 16 == 0".
    order: the logical axes of a named spelling in their order, "NCHW".

    Equal layouts may have different spellings: compare them with `equal`. Raises PleatError when
    the spelling is not that of a layout.
    """

    def __init__(self, spelling, shape=None, *, physical=None, where=(), order=None):
        if callable(spelling):
            from pleat.tir import IndexMap
            ndim = len(_extents(shape)) if shape is not None and not isinstance(shape, str) else None
            spelling = IndexMap.from_func_with_separators(spelling, ndim)[0]
        fields = {"layout": str(spelling)}
        if shape is not None:
            fields["shape"] = _extents(shape)
        if physical is not None:
            fields["physical"] = _extents(physical)
        if where:
            fields["where"] = [where] if isinstance(where, str) else list(where)
        if order is not None:
            fields["order"] = order
        self._fields = fields
        reply = self._ask("physical_shape")
        fields["shape"] = reply["shape"]
        self.physical_shape = tuple(reply["answer"])

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
        """Asks a question that `pleat layout --help-batch` lists; returns the reply, a dictionary."""
        return self._ask(op, other, **fields)

    # ---- Yes or no ----------------------------------------------------------------------------

    def equal(self, other, certificate=False):
        """Do both have equal maps, logical shapes and physical extents?"""
        return Answer(self._ask("equal", other, certificate=certificate))

    def same_map(self, other):
        """Are the maps equal on this layout's logical shape? The physical extents may differ."""
        return Answer(self._ask("same_map", other))

    def is_identity(self, certificate=False):
        return Answer(self._ask("identity", certificate=certificate))

    def is_injective(self, certificate=False):
        """Do any two elements have different physical indices?"""
        return Answer(self._ask("injective", certificate=certificate))

    def is_onto(self, certificate=False):
        """Does every physical index hold an element, so that there is no padding?"""
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
        condition on a physical index (text; None: never true) under which it is padding.
        Raises PleatError when the layout is not injective."""
        return self._map_reply(self._ask("inverse"))

    def divide(self, other):
        """(map, padding): the map from an element's physical index in `other` to its physical index
        in this layout, and the condition under which a physical index of `other` is padding. A copy
        from `other` reads at p and writes at map(p)."""
        return self._map_reply(self._ask("divide", other), other)

    def left_divide(self, other):
        """(map, padding): the map from an index of `other` to the index of this layout that has the
        same physical index, and the condition under which there is no such index."""
        return self._map_reply(self._ask("left_divide", other), other)

    def compose(self, inner):
        """This layout applied after `inner`, whose physical shape is this one's logical shape."""
        return self._made(self._ask("compose", inner), inner)

    def slice(self, box=None, **axes):
        """The layout of a box, as a Slice; the box keeps all axes.

        Ranges are given by axis, `slice(c=(0, 16), h=slice(2, 5))`, for each axis in order,
        `slice([0, (0, 16)])`, or as text, `slice("c=0:16, h=::2")`. A range is (start, stop),
        (start, stop, step), a slice, a range, or one index; bounds may be text of symbols.
        Raises PleatError when the box leaves the tensor."""
        reply = self._ask("slice", box=_box(box, axes))
        strides = reply.get("strides")
        strides = None if strides is None else tuple(strides)
        return Slice(self._made(reply), reply.get("offset"), strides)

    def reshape(self, *shape):
        """The layout with the same offsets under another logical shape of as many elements.

        Elements correspond in row-major order. The shape is given as arguments or as one sequence;
        symbols are text. Raises PleatError when it is not proved to have as many elements."""
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._made(self._ask("reshape", to=[_axis(n) for n in extents]))

    def is_reshape_of(self, other):
        """Is this layout a reshape of `other`?"""
        return Answer(self._ask("is_reshape", other))

    def direct_sum(self, other):
        """The direct sum: the logical index (x, y) has the physical index (this(x), other(y))."""
        return self._made(self._ask("sum", other), other)

    def product(self, other, kind="blocked", filled=False):
        """Copies of this layout that are arranged as `other`, which has as many logical axes.

        kind: "blocked": index b*n + i of an axis of n elements is index i of copy b; "raked": index
            i*m + b of an axis of m copies is index i of copy b; "logical": the axes of `other`, in
            any number, follow those of this layout.
        filled: the copies fill the gaps that this layout leaves in memory.
        Raises PleatError when there is no such layout, and Undecided when this is not decided."""
        return self._made(self._ask("product", other, kind=kind, filled=filled or None), other)

    def complement(self, size):
        """The layout of the offsets at which copies of this layout fill its gaps, up to the offset
        `size`. Raises PleatError when there is none."""
        return self._made(self._ask("complement", size=int(size)))

    def tile(self, *tilers):
        """Splits axes into tiles: axis i becomes the axes of tilers[i], a Layout of indices along
        it, followed by those of the rest. None leaves an axis as it is. `Layout("(16):(1)")` splits
        an axis into blocks of 16. Raises PleatError when the tiles do not fill the axis exactly."""
        by = [None if tiler is None else tiler._fields for tiler in tilers]
        return self._made(self._ask("tile", by=by))

    def _where(self, *others):
        found = []
        for one in (self, *others):
            found += [c for c in one._fields.get("where", ()) if c not in found]
        return found

    def _on(self, shape, spelling, physical=None, other=None):
        if " in [" in spelling:  # the text has the physical extents
            physical = None
        others = () if other is None else (other,)
        return Layout(spelling, shape, physical=physical, where=self._where(*others))

    def _made(self, reply, other=None):
        self._refuse(reply, "layout")
        return self._on(reply["shape"], reply["answer"], reply.get("physical"), other)

    def _map_reply(self, reply, other=None):
        self._refuse(reply, "map")
        return self._on(reply["shape"], reply["answer"], other=other), reply.get("padding")

    @staticmethod
    def _refuse(reply, what):
        if reply["answer"] == "unknown":
            raise Undecided(reply.get("reason") or "cannot be decided")
        if reply["answer"] == "no":
            raise PleatError(f"there is no such {what}: {_why_not(Answer(reply))}")

    # ---- Numbers ------------------------------------------------------------------------------

    def offset(self, *index):
        """The offset of an element, in elements: row-major over the physical axes."""
        return self._ask("offset", at=list(index))["answer"]

    def offset_map(self):
        """The offset as a map of the logical indices, in text: "i, j -> i*64 + j"."""
        return self._ask("offset")["answer"]

    def logical(self, offset):
        """The logical index at an offset, as a tuple; None for padding."""
        answer = self._value("logical", at=offset)["answer"]
        return answer if answer is None else tuple(answer)

    def padding_count(self):
        """The number of physical indices without an element: an integer, or text with symbols."""
        return self._value("padding")["answer"]

    def padding_runs(self):
        """The offsets without an element, as Runs. Raises PleatError for symbolic extents."""
        return self._runs("padding_runs")

    def strides(self):
        """The constant stride of each logical axis in elements; None for an axis without one."""
        return tuple(self._ask("strides")["answer"])

    def vector_widths(self):
        """For each logical axis, the longest run of elements that is contiguous and aligned."""
        return tuple(self._ask("vector")["answer"])

    def permutation(self):
        """The logical axes in the order of memory, outermost first; None when memory is not
        row-major over whole axes."""
        reply = self._value("permutation")
        return None if reply["answer"] == "no" else tuple(reply["answer"])

    def blocking(self):
        """The blocks of axes over which memory is row-major: a tuple of Block, outermost first;
        None when there are none."""
        reply = self._value("blocking")
        return None if reply["answer"] == "no" else tuple(Block(**b) for b in reply["answer"])

    def loop_order(self):
        """The loop nest that visits memory in sequence, as Loops. PleatError when there is none."""
        reply = self._ask("loop_order")
        self._refuse(reply, "loop nest")
        loops = tuple(Loop(**loop) for loop in reply["answer"])
        return Loops(loops, reply["index"], reply["guard"])

    def refine(self, other):
        """The common refinement of both layouts: the coarsest digits of the axes such that the
        offsets of both layouts are sums over these digits. A tuple of Factor, most significant
        first. Raises PleatError when there is none."""
        reply = self._ask("refine", other)
        self._refuse(reply, "refinement")
        return tuple(Factor(**{**f, "strides": tuple(f["strides"])}) for f in reply["answer"])

    # ---- Memory -------------------------------------------------------------------------------

    def lines(self, box=None, *, line_bytes=64, element_bits=32, base=0, **axes):
        """The cache lines (or pages) of `line_bytes` that the elements of a box touch, as Runs.

        The box is given as to `slice`; without one, it is the whole tensor. base: the address of
        offset 0, in bytes. Raises PleatError for symbolic extents."""
        return self._runs("lines", box=_box(box, axes), line=line_bytes, element_bits=element_bits,
                          base=base or None)

    def bank_conflicts(self, read, *, banks=(32, 4), vector=1, element_bits=32):
        """The bank conflicts of lanes that read at the same time, as Conflicts.

        read: the elements that the lanes read: a box as to `slice`, with the last axis fastest and
            index 0 on axes without a range; or {"map": "t, lane -> ...", "extents": [4, 32]}.
        banks: the number of banks, and the bytes of each. vector: the elements that a lane reads at
        once. Lanes that read one word are served together. Raises Undecided when the result depends
        on symbols."""
        reply = self._value("conflicts", read=_read(read), **_banks(banks, element_bits, vector))
        found = {key: reply[key] for key in ("waves", "words", "bank", "phase")}
        return Conflicts(reply["answer"], lanes=reply.get("witness"), **found)

    def best_swizzle(self, reads, *, banks=(32, 4), vector=1, element_bits=32):
        """The linear swizzle of the offsets with the fewest conflicts for `reads`, as a Swizzle.

        Each read is given as to `bank_conflicts`. Raises PleatError when the offsets are not linear
        over bits."""
        reply = self._ask("swizzle", reads=[_read(read) for read in reads],
                          **_banks(banks, element_bits, vector))
        self._refuse(reply, "swizzle")
        return Swizzle(self._on(self.shape, reply["answer"]), reply["offset_map"],
                       reply["swizzle"], tuple(reply["waves"]), tuple(reply["bound"]),
                       reply["optimal"])

    def copy_plan(self, target, element_bits=32):
        """The copy from this layout to `target`, as a Copy.

        The order of resources, outermost first, is devices, warps, lanes, registers, memory. Raises
        PleatError or Undecided when the layouts are not described by digits and have too many
        elements to enumerate."""
        reply = self._ask("copy", target, element_bits=element_bits)
        self._refuse(reply, "description")
        moves = tuple(Move(m["axis"], m["cut"], m["extent"], m["from"] and Place(**m["from"]),
                           m["to"] and Place(**m["to"]))
                      for m in reply["answer"])
        levels = reply.get("levels")
        if levels is not None:
            levels = tuple(Level(one["resource"], one["in"], one["elements"], one["bytes"])
                           for one in levels)
        return Copy(moves, reply.get("copies"), reply.get("still"), levels)

    def _value(self, op, **fields):
        reply = self._ask(op, **fields)
        if reply["answer"] == "unknown":
            raise Undecided(reply.get("reason") or "cannot be decided")
        return reply

    def _runs(self, op, **fields):
        reply = self._value(op, **fields)
        return Runs(reply["answer"], reply["run_count"], tuple(map(tuple, reply["runs"])))

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
        """Packs `array`, which has the logical shape, into this layout.

        The result has the physical shape, and `fill` in the padding. Raises PleatError when two
        elements have the same physical index."""
        import numpy as np
        array, places = np.asarray(array), self._sizes()[1]
        if array.shape != self.shape:
            raise ValueError(f"the array is {array.shape}, the layout's logical shape {self.shape}")
        injective = self.is_injective()
        if injective.verdict == "no":
            raise PleatError(f"{self!r} has elements with the same physical index: {injective!r}")
        out = np.full(places, fill, array.dtype)
        out[self._offsets()] = array.reshape(-1, 1)
        return out.reshape(self.physical_shape)

    def unpack(self, array):
        """Unpacks `array`, which has the physical shape, to an array of the logical shape."""
        import numpy as np
        array = np.asarray(array)
        if array.shape != self.physical_shape:
            raise ValueError(f"the array is {array.shape}, "
                             f"the layout's physical shape {self.physical_shape}")
        return array.reshape(-1)[self._offsets()[:, 0]].reshape(self.shape)

    # ---- Presentation ----------------------------------------------------------------------

    def spell(self, kind):
        """This layout in another notation: "index-map", "lambda", "named", "tag" (oneDNN's),
        "cute", "xla", "torch", "bases" (Triton's), "shards" (TVM's). In CuTe, a layout with several
        memory axes is a tensor of coordinates. Raises PleatError, with the reason, when the
        notation cannot express the layout."""
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
