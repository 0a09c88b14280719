# SPDX-License-Identifier: Apache-2.0
"""IndexMap: a function from logical to physical indices, with TVM's names and meaning
(https://tvm.apache.org/docs/reference/api/python/tir/tir.html)."""
import inspect

from pleat import _expression
from pleat._expression import AXIS_SEPARATOR, Expr, to_expr, var
from pleat._library import PleatError
from pleat.layout import Layout, parse_condition


def _parameters(function, ndim):
    """(names, many, count): the names of a mapping function's arguments.

    `*indices` become `count` names from position `many` on, so that there are ndim names."""
    names, many = [], None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            many = len(names)
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.KEYWORD_ONLY:
            names.append(parameter.name)
        else:
            raise TypeError("a mapping function takes no **keywords")
    if many is None:
        if ndim is not None and ndim != len(names):
            raise TypeError(f"the function takes {len(names)} indices, ndim is {ndim}")
        return names, len(names), 0
    if ndim is None:
        raise TypeError("say ndim for a function of *indices")
    if ndim < len(names):
        raise TypeError(f"the function names {len(names)} indices, ndim is {ndim}")
    count = ndim - len(names)
    return names[:many] + [f"i{k}" for k in range(count)] + names[many:], many, count


def _call(function, names, many, count):
    arguments = [var(name) for name in names]
    keywords = {}
    positional = arguments[:many + count]
    for name, argument in zip(names[many + count:], arguments[many + count:]):
        keywords[name] = argument
    result = function(*positional, **keywords)
    return list(result) if isinstance(result, (list, tuple)) else [result]


class IndexMap:
    """The map from initial_indices to final_indices, which are lists of expressions.

    axis_separators: the positions of the final indices that follow a separator."""

    AXIS_SEPARATOR = AXIS_SEPARATOR

    def __init__(self, initial_indices, final_indices, inverse_index_map=None, axis_separators=()):
        self.initial_indices = [i if isinstance(i, Expr) else var(i) for i in initial_indices]
        self.final_indices = [to_expr(e) for e in final_indices]
        self.axis_separators = list(axis_separators)
        self.inverse_index_map = inverse_index_map

    # ---- Making -------------------------------------------------------------------------------

    @staticmethod
    def from_func(mapping_function, ndim=None, inverse_index_map=None, *, index_dtype="int64"):
        """The map of a function of indices that returns a list of physical indices.

        ndim: how many indices a function of `*indices` gets.
        inverse_index_map: the inverse as a function or an IndexMap; `inverse` returns it after
            proving that it is the inverse.
        index_dtype: accepted for compatibility; indices have 64 bits.
        """
        made, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype)
        if separators:
            raise ValueError("the function returns axis separators; use from_func_with_separators")
        return made

    @staticmethod
    def from_func_with_separators(mapping_function, ndim=None, inverse_index_map=None, *,
                                  index_dtype="int64"):
        """(map, axis_separators): as from_func, for lists that may contain AXIS_SEPARATOR."""
        names, many, count = _parameters(mapping_function, ndim)
        finals, separators = [], []
        for item in _call(mapping_function, names, many, count):
            if item is AXIS_SEPARATOR:
                separators.append(len(finals))
            else:
                finals.append(to_expr(item))
        if inverse_index_map is not None and not isinstance(inverse_index_map, IndexMap):
            inverse_index_map = IndexMap.from_func(inverse_index_map, ndim=len(finals))
        return IndexMap(names, finals, inverse_index_map, separators), separators

    @staticmethod
    def parse(text):
        """The map of a text such as `i, j -> i // 4, j, i % 4`, which str() of a map returns."""
        before, arrow, after = text.partition("->")
        if not arrow:
            raise ValueError(f"no `->` in {text!r}")
        names = [name.strip() for name in before.split(",") if name.strip()]
        finals, separators = [], []
        for number, group in enumerate(_split(after, "|")):
            if number:
                separators.append(len(finals))
            finals += [_expression.parse(part) for part in _split(group, ",") if part.strip()]
        return IndexMap(names, finals, None, separators)

    def __str__(self):
        groups, begin = [], 0
        for end in self.axis_separators + [len(self.final_indices)]:
            parts = self.final_indices[begin:end]
            groups.append(", ".join(f"({e})" if e.op == "|" else str(e) for e in parts))
            begin = end
        return f"{', '.join(map(str, self.initial_indices))} -> {' | '.join(groups)}"

    def __repr__(self):
        return f"IndexMap({str(self)!r})"

    def __script__(self):
        if self.axis_separators:
            raise ValueError("a map with axis separators has no value in a script")
        return (f"T.index_map(lambda {', '.join(map(str, self.initial_indices))}: "
                f"[{', '.join(map(str, self.final_indices))}])")

    def layout(self, shape, **options):
        """This map on a shape, as a pleat.layout.Layout."""
        if len(shape) != len(self.initial_indices):
            raise ValueError(f"{len(self.initial_indices)} indices, a shape of {len(shape)} axes")
        return Layout(str(self), shape, **options)

    # ---- Using --------------------------------------------------------------------------------

    def map_indices(self, indices):
        """The physical indices of logical indices: integers for integers, else expressions."""
        if len(indices) != len(self.initial_indices):
            raise ValueError(f"{len(self.initial_indices)} indices, {len(indices)} given")
        values = {i.args[0]: v for i, v in zip(self.initial_indices, indices)}
        mapped = [e.substitute(values) for e in self.final_indices]
        return [int(e) if e.op == "const" else e for e in mapped]

    def map_shape(self, shape, *, where=()):
        """The physical extents of a shape, whose symbols satisfy `where`."""
        return list(self.layout(shape, where=where).physical_shape)

    def map_ndarray(self, array):
        """The array of the physical shape that holds `array`, with zeros in the padding."""
        return self.layout(array.shape).pack(array)

    def is_equivalent_to(self, other_map):
        """Are both maps equal as functions on every shape, whatever the names of the indices?

        Raises Undecided when neither can be proved."""
        if (len(self.initial_indices) != len(other_map.initial_indices) or
                len(self.final_indices) != len(other_map.final_indices) or
                self.axis_separators != other_map.axis_separators):
            return False
        # Final indices may be negative here, which a layout refuses. The layouts compared therefore
        # have one physical index, which is 1 where both maps agree.
        shape = [f"extent{k}" for k in range(len(self.initial_indices))]
        one = IndexMap(self.initial_indices, [1]).layout(shape)
        agree = [_expression.make("==", a, b) for a, b in
                 zip(self.final_indices, other_map.map_indices(self.initial_indices))]
        answers = [IndexMap(self.initial_indices, [e]).layout(shape).same_map(one) for e in agree]
        return all(a.verdict != "no" for a in answers) and all(answers)

    def inverse(self, shape, *, where=()):
        """The inverse of a map that is bijective on a shape for all symbols that satisfy `where`.

        The shape has extents, or objects with an `extent`. Raises PleatError, with an index that
        refutes it, when the map is not bijective."""
        if self.inverse_index_map is not None:
            return self._checked_inverse(_extents_of(shape), where)
        made, padding = self.non_surjective_inverse(shape, where=where)
        if padding != _expression.const(0):
            raise PleatError(f"on {list(shape)} not every physical index holds an element: padding "
                             f"where {padding}; use non_surjective_inverse")
        return made

    def _checked_inverse(self, extents, where):
        there = self.layout(extents, where=where)
        if not there.is_onto():
            raise PleatError(f"on {list(extents)} not every physical index holds an element; use "
                             "non_surjective_inverse")
        wrong = f"`{self.inverse_index_map}` is not the inverse of `{self}` on {list(extents)}"
        try:
            back = self.inverse_index_map.layout(there.physical_shape, physical=extents,
                                                 where=where)
        except PleatError as error:
            raise PleatError(f"{wrong}: {error}") from None
        if not back.compose(there).is_identity():
            raise PleatError(wrong)
        return self.inverse_index_map

    def non_surjective_inverse(self, shape, *, where=()):
        """(inverse, predicate): the predicate is an expression over the inverse's initial indices
        that is true when a physical index is padding."""
        extents = _extents_of(shape)
        back, padding = self.layout(extents, where=where).inverse()
        return IndexMap.parse(back.spelling.partition(" in [")[0]), parse_condition(padding)


def _extents_of(shape):
    """The extents of a list of extents or of ranges that begin at 0.

    A range is Python's, or an object with TVM's members `min` and `extent`."""
    extents = []
    for n in shape:
        if isinstance(n, range) and (n.start, n.step) == (0, 1):
            n = n.stop
        if isinstance(n, range) or (hasattr(n, "extent") and int(getattr(n, "min", 0)) != 0):
            raise ValueError(f"a range of indices begins at 0, {n!r} does not")
        extents.append(getattr(n, "extent", n))
    return extents


def _split(text, separator):
    """The parts of a text between separators outside parentheses."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return parts + [text[begin:]]
