# SPDX-License-Identifier: Apache-2.0
"""The blocks, loops and integers that the steps of a schedule return and get."""


class Reference:
    """A block or a loop of a schedule, by the name of the result in the schedule's steps. `step` is the
    object of the step that returned it, which the schedule and its later copies share. Without arguments: one of no
    schedule, for the instructions of a trace."""

    def __init__(self, text=None, name=None, step=None):
        self._text, self.name, self._step = text, name, step

    def same_as(self, other):
        """Whether both are one reference."""
        return self is other

    def __repr__(self):
        return f"{type(self).__name__}({self.name})"

    def __script__(self):
        return text_of_reference(self)


class BlockRV(Reference):
    """A block of a schedule; `name` is that of the block when it was returned."""


class LoopRV(Reference):
    """A loop of a schedule; `name` is that of its variable when it was returned."""


class ExprRV(int):
    """An integer that a sampling step drew; where it is an argument of a step, the trace names it."""

    def __new__(cls, text=None, name=0, step=None):
        value = super().__new__(cls, name)
        value._text, value._step = text, step
        return value

    def __script__(self):
        return text_of_reference(self)


class Step:
    """A step that was made on a function of a schedule."""

    def __init__(self, function):
        self.function = function


REFERENCES = {"BLOCK": BlockRV, "LOOP": LoopRV, "INT": ExprRV}  # by the result in a step's signature


def text_of_reference(reference):
    """The name of a reference in the text of steps."""
    if reference._text is None:
        raise IndexError("the schedule has removed this reference, or it was made for the instructions of a trace")
    return reference._text


def check_reference(thing):
    """Raises TypeError for what is no block, loop or integer of a schedule."""
    if not isinstance(thing, (Reference, ExprRV)):
        raise TypeError(f"expected a block, a loop or an integer of the schedule, not {thing!r}")


def references_in(value):
    """The references in an argument of a step."""
    if isinstance(value, (Reference, ExprRV)):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from references_in(item)
