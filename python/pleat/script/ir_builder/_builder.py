# SPDX-License-Identifier: Apache-2.0
"""The text of a program as calls make it line by line, and the parts of which it consists."""
import re
import threading

from pleat._library import PleatError
from pleat.script._parse import from_source
from pleat.script._values import Value, text_of

_local = threading.local()
INDENT = "    "


def _builders():
    if not hasattr(_local, "builders"):
        _local.builders = []
    return _local.builders


class Named(Value):
    """A variable, buffer or parameter of the program, whose name may change until the text is made.

    declaration: of a variable or a buffer that no line defines, the expression by which a parameter
    of this kind is annotated"""

    __slots__ = ("_name", "_declaration")

    def __init__(self, name, declaration=None):
        super().__init__(self._used_name)
        self._name, self._declaration = name, declaration

    def _used_name(self):
        if not IRBuilder.is_in_scope():
            return self._name
        builder = IRBuilder.current()
        if self._declaration is not None:
            builder._free.setdefault(id(self), self)
        return builder._name_of(self)


class Lines:
    """The lines of a program or of a part of it: functions that give the text, with their depth."""

    def __init__(self):
        self.items, self.depth = [], 0

    def add(self, line):
        self.items.append((self.depth, line))

    def text(self, indent):
        return "".join(f"{INDENT * (indent + depth)}{line()}\n" for depth, line in self.items)


class IRBuilder:
    """Collects what the functions of pleat.script.ir_builder.tir make inside of its `with`."""

    def __init__(self):
        self._lines, self._functions, self._frames = Lines(), None, []
        self._result, self._dialect = None, "tir"
        self._free, self._names, self._taken = {}, {}, set()

    def __enter__(self):
        _builders().append(self)
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._result = self._made()
        finally:
            _builders().pop()

    @staticmethod
    def current():
        """The innermost builder whose `with` is entered."""
        if not _builders():
            raise ValueError("this call belongs into `with IRBuilder():`")
        return _builders()[-1]

    @staticmethod
    def is_in_scope():
        return bool(_builders())

    @staticmethod
    def name(s, v):
        """Gives a variable, a buffer or a block variable the name s; returns it."""
        if isinstance(v, Named):
            v._name = s
        return v

    @staticmethod
    def name_many(s, vs):
        """The same for several."""
        return [IRBuilder.name(name, value) for name, value in zip(s, vs)]

    def get(self):
        """The PrimFunc or IRModule that was built; outside of a function, the statement."""
        if self._result is None:
            raise PleatError("the program is made at the end of `with IRBuilder()`")
        return self._result

    # ---- Making the text ----------------------------------------------------------------------

    def _name_of(self, named):
        """The name of a part of the program, which no other part has."""
        if id(named) not in self._names:
            wanted = re.sub(r"\W", "_", named._name) or "v"
            wanted = wanted if wanted[0].isalpha() or wanted[0] == "_" else f"v{wanted}"
            name, number = wanted, 0
            while name in self._taken or name in ("T", "I"):
                number += 1
                name = f"{wanted}_{number}"
            self._taken.add(name)
            self._names[id(named)] = name, named  # which keeps it alive, so that its id is its own
        return self._names[id(named)][0]

    def _header(self):
        return f"from pleat.script import ir as I, {self._dialect} as T\n\n"

    def _made(self):
        if self._functions is None:
            return self._statement()
        if isinstance(self._functions, str):
            return from_source(self._header() + self._functions)
        body = "".join(self._functions) or f"{INDENT}pass\n"
        return from_source(f"{self._header()}@I.ir_module\nclass Module:\n{body}")

    def _statement(self):
        """The lines outside of a function, as the body of one whose parameters are the variables
        and buffers that nothing defines."""
        from pleat.tir import nodes
        if not self._lines.items:
            return None
        text = self._lines.text(1)
        parameters = ", ".join(f"{self._name_of(one)}: {one._declaration()}"
                               for one in self._free.values())
        function = from_source(f"{self._header()}@T.prim_func\ndef main({parameters}):\n{text}")
        body = function.body
        is_root = isinstance(body, nodes.BlockRealize) and body.block.name_hint == "root"
        return body.block.body if is_root else body


class Frame:
    """A `with` of the builder: a line, and those inside of it below.

    line: a function that gives the text; None for no line; value: what `as` names"""

    def __init__(self, line, value=None):
        self.line, self.value = line, value

    def __enter__(self):
        builder = IRBuilder.current()
        if self.line is not None:
            builder._lines.add(self.line)
            builder._lines.depth += 1
        self.begin = len(builder._lines.items)
        builder._frames.append(self)
        return self.value

    def __exit__(self, *_):
        builder = IRBuilder.current()
        if len(builder._lines.items) == self.begin and self.line is not None:
            builder._lines.add(lambda: "pass")
        if self.line is not None:
            builder._lines.depth -= 1
        builder._frames.pop()


class Branch(Frame):
    """`with T.If(condition)`, which holds `with T.Then()` and `with T.Else()`."""

    def __init__(self, condition):
        super().__init__(None)
        self.condition = condition


class Function(Frame):
    """`with T.prim_func()`."""

    def __init__(self, options, dialect):
        super().__init__(None)
        self.options, self.dialect = options, dialect
        self.name, self.parameters, self.attributes, self.result = None, [], {}, None

    def __enter__(self):
        builder = IRBuilder.current()
        self.outer, builder._lines = builder._lines, Lines()
        self.free, builder._free = builder._free, {}
        self.taken, builder._taken = builder._taken, set()
        self.names, builder._names = builder._names, {}
        builder._dialect = self.dialect
        super().__enter__()

    def __exit__(self, kind, *rest):
        builder = IRBuilder.current()
        super().__exit__(kind, *rest)
        text = self._text(builder) if kind is None else ""
        builder._lines, builder._free = self.outer, self.free
        builder._taken, builder._names = self.taken, self.names
        if isinstance(builder._functions, list):
            builder._functions.append(text)
        elif builder._functions is None:
            builder._functions = text
        else:
            raise PleatError("a second T.prim_func stands outside of `with I.ir_module()`")

    def _text(self, builder):
        indent = int(isinstance(builder._functions, list))
        for one, _ in self.parameters:
            builder._name_of(one)
        annotations = [f"{one._used_name()}: {declaration()}" for one, declaration in self.parameters]
        builder._free.clear()
        given = {id(one) for one, _ in self.parameters}
        body = builder._lines.text(indent + 1)
        head = [f"@T.prim_func({self.options})",
                f"def {self.name or 'main'}({', '.join(annotations)})"
                + (f" -> {self.result}:" if self.result else ":")]
        if self.attributes:
            head.append(f"{INDENT}T.func_attr({text_of(self.attributes)})")
        head += [f"{INDENT}{builder._name_of(one)} = {one._declaration()}()"
                 for one in builder._free.values() if id(one) not in given]
        lines = "".join(f"{INDENT * indent}{line}\n" for line in head)
        return lines + (body or f"{INDENT * (indent + 1)}pass\n") + "\n"


def innermost(kind, what):
    """The innermost frame of a kind, such as the function."""
    for frame in reversed(IRBuilder.current()._frames):
        if isinstance(frame, kind):
            return frame
    raise PleatError(f"{what} stands outside of {kind.__doc__.splitlines()[0].rstrip('.,')}")
