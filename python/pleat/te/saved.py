# SPDX-License-Identifier: Apache-2.0
"""Tensors, operations, schedules of tensor expressions and nodes as JSON, for pleat.ir.save_json.

The text is a table of objects, each with the name of its class and its attributes; an attribute that is an object is
its number. Only the classes below are read, and no code is run."""
import json
import math

from pleat._library import PleatError
from pleat.te import schedule, tensor
from pleat.tir import nodes

_CLASSES = {name: one for module in (nodes, tensor, schedule) for name, one in vars(module).items()
            if isinstance(one, type) and one.__name__ == name and one.__module__ == module.__name__
            and not issubclass(one, (str, tuple, Exception))}
_KEY = "objects"


def is_saved(text):
    """Is this a text of `save`?"""
    return text.startswith('{"%s"' % _KEY)


def can_save(thing):
    """Does `save` take a thing of this class?"""
    return isinstance(thing, (list, tuple, dict)) or _CLASSES.get(type(thing).__name__) is type(thing)


class _Writer:
    def __init__(self):
        self.numbers, self.objects, self.written = {}, [], []

    def value(self, thing):
        if thing is None or isinstance(thing, (bool, int)) and type(thing) in (bool, int):
            return thing
        if isinstance(thing, nodes.PointerType):
            return {"pointer": [self.value(thing.element_type), thing.storage_scope]}
        if isinstance(thing, str):
            return thing if type(thing) is str else {"type": str(thing)}
        if isinstance(thing, float):
            return thing if math.isfinite(thing) else {"float": repr(thing)}
        if isinstance(thing, (list, tuple)) and type(thing) in (list, tuple):
            return {type(thing).__name__: [self.value(one) for one in thing]}
        if type(thing) is dict:
            return {"dict": [[self.value(key), self.value(one)] for key, one in thing.items()]}
        return {"object": self.number(thing)}

    def number(self, thing):
        if _CLASSES.get(type(thing).__name__) is not type(thing):
            raise TypeError(f"save_json: {thing!r} of type {type(thing).__name__} cannot be saved")
        if id(thing) not in self.numbers:
            self.numbers[id(thing)] = len(self.objects)
            self.objects.append(thing)
        return self.numbers[id(thing)]

    def table(self):
        """The objects that were named, and all that these name."""
        while len(self.written) < len(self.objects):  # new ones come behind
            thing = self.objects[len(self.written)]
            self.written.append([type(thing).__name__, self.value(dict(vars(thing)))])
        return self.written


def save(thing):
    """The text of a thing for which can_save is true. TypeError where it holds another kind of object, such as a
    function."""
    writer = _Writer()
    root = writer.value(thing)
    return json.dumps({_KEY: writer.table(), "root": root})


_TAGGED = {
    "object": lambda value, objects: objects[value],
    "list": lambda value, objects: [_read(one, objects) for one in value],
    "tuple": lambda value, objects: tuple(_read(one, objects) for one in value),
    "dict": lambda value, objects: {_read(key, objects): _read(one, objects) for key, one in value},
    "type": lambda value, objects: nodes.prim_type(value),
    "float": lambda value, objects: float(value),
    "pointer": lambda value, objects: nodes.PointerType(_read(value[0], objects), value[1])}


def _read(value, objects):
    if not isinstance(value, dict):
        return value
    (tag, content), = value.items()
    return _TAGGED[tag](content, objects)


def load(text):
    """The thing of a text of `save`."""
    try:
        table = json.loads(text)
        objects = [_CLASSES[name].__new__(_CLASSES[name]) for name, _ in table[_KEY]]
        for thing, (_, attributes) in zip(objects, table[_KEY]):
            thing.__dict__.update(_read(attributes, objects))
        return _read(table["root"], objects)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise PleatError(f"load_json: the text is not one that save_json wrote: {error!r}") from None
