# SPDX-License-Identifier: Apache-2.0
"""A graph function of a module as bindings that can be replaced, added and left out. The module is then written
as text, which the library reads and checks.

    text = GraphText(module, "main")
    for block in text.blocks:
        for bound in block.bindings:
            bound.value, bound.var          # nodes of pleat.relax.nodes
    module = text.module()"""
import ast

from pleat._library import PleatError
from pleat.ir._module import IRModule
from pleat.relax.expr import Call, Tuple, Var
from pleat.relax.nodes import (If, InferredTypes, LocalFunction, MatchCast, TupleGetItem, _Reader, _values_in,
                               post_order_visit)
from pleat.script._parse import from_source
from pleat.script._values import Value, free_name, text_of


class Bound:
    """A binding: its variable, its value and the lines of its text, which is made of the value without `lines`.
    is_cast: it is R.match_cast of the value"""

    def __init__(self, var, value, lines=None, is_cast=False):
        self.var, self.value, self.lines, self.is_cast, self._uses = var, value, lines, is_cast, None

    def uses(self):
        """The names of the variables in the value."""
        if self._uses is None or self._uses[0] is not self.value:
            self._uses = self.value, used_by(self.value)
        return self._uses[1]

    def text(self, typed=False):
        """The lines; with `typed`, they state the type if it is known."""
        lines = self.lines or [f"{self.var.name_hint} = {text_of(self.value)}"]
        begin = f"{self.var.name_hint} = "
        if typed and lines[0].startswith(begin) and not self.is_cast:
            info = known_type(self.var)
            if info is not None:
                return [f"{self.var.name_hint}: {text_of(info)} = {lines[0][len(begin):]}", *lines[1:]]
        return lines


class Block:
    """Bindings in their order; `outputs` has the names that a dataflow block gives to the rest, and is None for
    other blocks."""

    def __init__(self, outputs=None):
        self.bindings, self.outputs = [], outputs

    def text(self, typed):
        lines = [line for bound in self.bindings for line in bound.text(typed)]
        if self.outputs is None:
            return lines
        return ["with R.dataflow():", *(f"    {line}" for line in lines or ["pass"]),
                *([f"    R.output({', '.join(self.outputs)})"] if self.outputs else [])]


class _Placed(_Reader):
    """A reader that keeps which statement each binding comes from."""

    def bindings(self, one, make):
        made = super().bindings(one, make)
        for binding in made:
            binding.statement = one
        return made


def known_type(var):
    """The type of a variable, or None."""
    try:
        return var.struct_info
    except PleatError:
        return None


def used_by(expr):
    """The names of the variables in an expression, in their order."""
    found = {}

    def visit(one):
        if isinstance(one, Var):
            found.setdefault(one.name_hint)
        elif type(one) is Value and not text_of(one).startswith("R.const("):
            names = (node.id for node in ast.walk(ast.parse(text_of(one), mode="eval")) if isinstance(node, ast.Name))
            found.update(dict.fromkeys(names))
        elif isinstance(one, Call):
            for value in one.attrs.values():
                for part in _values_in(value):
                    post_order_visit(part, visit)
    post_order_visit(expr, visit)
    return found


class GraphText:
    """The graph function `name` of a module. typed: the types of all variables are stated, if they are known"""

    def __init__(self, module, name, typed=False):
        self.typed = typed
        self.source, self._module = module.script(), module  # which has the contents of constants
        self.lines, self.name = self.source.splitlines(), name
        self.tree = ast.parse(self.source)
        self.class_name, self.node = _definition(self.tree, name)
        self._reader = _Placed({}, InferredTypes(lambda: module, name))
        self.params, self.blocks, self.head, self.result = [], [], [], None
        self._read()
        self.names = {*self._reader.names, *(one.id for one in ast.walk(self.node) if isinstance(one, ast.Name)), "cls"}
        self.added, self._functions = [], None  # the lines of further functions, and the names of all
        self.bound = {}  # the constants of parameters that go

    # ---- Reading

    def _segment(self, node):
        """The lines of a statement, without its indentation."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        lines = self.lines[first - 1:node.end_lineno]
        margin = len(lines[0]) - len(lines[0].lstrip())
        return [line[margin:] if not line[:margin].strip() else line for line in lines]

    def _read(self):
        reader = self._reader
        for one in self.node.args.args:
            reader.names[one.arg] = Var(one.arg, _type_of(one.annotation))
        self.params = [reader.names[one.arg] for one in self.node.args.args]
        for one in self.node.body:
            if isinstance(one, ast.Return):
                self.result = reader.value(one.value)
            elif isinstance(one, ast.With):
                self._read_dataflow(one)
            else:
                self._read_plain(one)
        self.attrs = reader.attrs

    def _read_plain(self, one):
        found = [] if _is_class_name(one) else self._reader.bindings(one, Var)
        if not found:
            self.head.append(one)
            return
        if not self.blocks or self.blocks[-1].outputs is not None:
            self.blocks.append(Block())
        self.blocks[-1].bindings += [self._bound(b, one) for b in found]

    def _read_dataflow(self, one):
        calls = [x.value for x in one.body if isinstance(x, ast.Expr) and isinstance(x.value, ast.Call)]
        outputs = [a.id for call in calls if ast.unparse(call.func) == "R.output" for a in call.args]
        block = Block(outputs)
        block.bindings = [self._bound(b, b.statement) for b in self._reader.dataflow(one)]
        self.blocks.append(block)

    def _bound(self, binding, statement):
        return Bound(binding.var, binding.value, self._segment(statement), isinstance(binding, MatchCast))

    # ---- Changing

    @property
    def bindings(self):
        return [bound for block in self.blocks for bound in block.bindings]

    def values(self):
        """The values of the variables, except those of casts, whose types are not those of their values."""
        return {bound.var: bound.value for bound in self.bindings
                if not bound.is_cast and not isinstance(bound.value, (If, LocalFunction))}

    def free_name(self, hint):
        """A name like the hint that the function does not use."""
        name = free_name(hint, self.names.__contains__)
        self.names.add(name)
        return name

    def emitted(self, expr, named):
        """Bindings for the calls that an expression is made of, and the expression of their variables.
        named: the variables of expressions that are bound already, by their identities, to which the new ones are
        added"""
        made = []

        def visit(one):
            if id(one) in named:
                return named[id(one)]
            if isinstance(one, (tuple, list)):
                return type(one)(map(visit, one))
            if isinstance(one, Tuple):
                return Tuple(map(visit, one.fields))
            if isinstance(one, TupleGetItem):
                return TupleGetItem(visit(one.tuple_value), one.index)
            if not isinstance(one, Call):
                return one
            call = Call(one.op, list(map(visit, one.args)), one.attrs)
            var = Var(self.free_name("lv"))
            made.append(Bound(var, call))
            named[id(one)] = var
            kept.append(one)
            return var
        kept = named.setdefault("kept", [])  # objects whose identities are keys
        if isinstance(expr, Call) and id(expr) not in named:
            return made, Call(expr.op, list(map(visit, expr.args)), expr.attrs)
        return made, visit(expr)

    def sort(self, block):
        """Puts each binding of a dataflow block behind those that it uses, and leaves the order otherwise."""
        own = {bound.var.name_hint: bound for bound in block.bindings}
        done, order = set(), []
        for bound in block.bindings:
            stack = [bound]
            while stack:
                one = stack[-1]
                waiting = [own[name] for name in one.uses() if name in own and name not in done
                           and own[name] is not one]
                if waiting and one.var.name_hint not in done:
                    stack += waiting
                    continue
                stack.pop()
                if one.var.name_hint not in done:
                    done.add(one.var.name_hint)
                    order.append(one)
        block.bindings = order

    # ---- Writing

    def script(self):
        """The text of the module with the function as it is now."""
        first = self.node.body[0]
        head = self.lines[:first.lineno - 1]
        if self.bound:
            head = [*self.lines[:self.node.lineno - 1], *self._header()]
        margin = " " * first.col_offset
        own = [line for one in self.head for line in self._segment(one)]
        uses_class = self.class_name and not any(map(_is_class_name, self.head))
        own += [f"cls = {self.class_name}"] if uses_class else []
        own += [f"{name} = {text_of(constant)}" for name, constant in self.bound.items()]
        blocks = [line for block in self.blocks for line in block.text(self.typed)]
        body = [*own, *blocks, f"return {text_of(self.result)}"]
        outer = " " * self.node.col_offset
        return "\n".join([*head, *(margin + line for line in body), *self.lines[self.node.end_lineno:],
                          *(outer + line for line in self.added)]) + "\n"

    def module(self):
        """The module of the text."""
        made = from_source(self.script())
        return made if isinstance(made, IRModule) else IRModule({self.name: made})

    def bind(self, name, constant):
        """Makes a parameter a constant."""
        self.bound[name] = constant

    def _header(self):
        """The lines of the definition without parameters that are constants, which are variables instead."""
        node = ast.parse(ast.unparse(self.node)).body[0]
        node.args.args = [one for one in node.args.args if one.arg not in self.bound]
        node.decorator_list, node.body = [], [ast.Pass()]
        outer = " " * self.node.col_offset
        return [outer + line for line in ast.unparse(node).splitlines()[:-1]]

    def definition(self, name):
        """The lines of another function of the module."""
        return self._segment(_definition(self.tree, name)[1])

    def add_function(self, name, lines):
        """Adds a function of these lines to the module, and returns the name that it got, which is `name` with a
        number behind it where there is one of that name."""
        if self._functions is None:
            self._functions = {one.name for one in ast.walk(self.tree) if isinstance(one, ast.FunctionDef)}
        free = free_name(name, self._functions.__contains__)
        self._functions.add(free)
        named = {"def NAME(": f"def {free}(", "'global_symbol': 'NAME'": f"'global_symbol': '{free}'"}
        for line in ["", *lines]:
            for old, new in named.items():
                line = line.replace(old, new)
            self.added.append(line)
        return free


def _type_of(node):
    from pleat.relax.nodes import _type
    return _type(node)


def _is_class_name(one):
    return isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "cls"


def _definition(tree, name):
    """The name of the class around the function of this name, or None, and the function."""
    for owner, body in ((None, tree.body), *((one.name, one.body) for one in tree.body
                                             if isinstance(one, ast.ClassDef))):
        for one in body:
            if isinstance(one, ast.FunctionDef) and one.name == name:
                return owner, one
    raise PleatError(f"there is no graph function '{name}'")
