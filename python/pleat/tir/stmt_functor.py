# SPDX-License-Identifier: Apache-2.0
"""Walks over the nodes of tensor programs, and rewrites of them."""
from pleat.tir.functor import (StmtExprMutator, StmtExprVisitor, StmtFunctor,  # noqa: F401
                               StmtMutator, StmtVisitor)
from pleat.tir.nodes import Buffer, Node, Var

# Parts that describe a node, and are no expressions or statements of the program.
_NOT_WALKED = {"annotations", "attrs", "buffer_map", "params", "thread_binding"}


def _parts(value):
    if isinstance(value, Node):
        if not isinstance(value, Buffer):
            yield value
    elif isinstance(value, list):
        for item in value:
            yield from _parts(item)


def _children(node):
    """The expressions and statements that a node consists of."""
    for name, value in node.fields.items():
        if name not in _NOT_WALKED:
            yield from _parts(value)


def _start(thing):
    start = thing if isinstance(thing, Node) else getattr(thing, "body", None)
    if start is None:
        raise TypeError(f"expected a statement, an expression or a PrimFunc, not {type(thing).__name__}")
    return start


def post_ordered(roots, parts):
    """The roots and all below them, each once and behind its own parts, which parts(one) gives."""
    seen, stack = set(), [(root, False) for root in reversed(roots)]
    while stack:
        one, is_done = stack.pop()
        if is_done:
            yield one
        elif id(one) not in seen:
            seen.add(id(one))
            stack.append((one, True))
            stack.extend((part, False) for part in reversed(list(parts(one))))


def post_order_visit(stmt, fvisit):
    """Calls fvisit with each node of a statement, an expression or a PrimFunc once, the parts of a
    node before it."""
    for node in post_ordered([_start(stmt)], _children):
        fvisit(node)


def pre_order_visit(stmt, fvisit):
    """Calls fvisit with each node once, before its parts, which are left out when it returns
    False."""
    seen, stack = set(), [_start(stmt)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if fvisit(node) is not False:
            stack.extend(reversed(list(_children(node))))


# ---- Rewriting ------------------------------------------------------------------------------------

class _Rewriter:
    """Rebuilds a node from its parts up; what does not change stays the same object. Buffers are
    parts only where with_buffers is true."""

    def __init__(self, preorder, postorder, kinds=None, with_buffers=False):
        self.preorder, self.postorder, self.kinds = preorder, postorder, kinds
        self.with_buffers, self.done = with_buffers, {}

    def _call(self, function, node):
        is_meant = self.kinds is None or type(node).__name__ in self.kinds
        return function(node) if function and is_meant else None

    def value(self, value):
        if isinstance(value, Buffer) and not self.with_buffers:
            return value
        if isinstance(value, Node):
            if id(value) not in self.done:
                self.done[id(value)] = self.node(value), value  # keeps the node, and so its id
            return self.done[id(value)][0]
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            return items if any(a is not b for a, b in zip(items, value)) else value
        return value

    def node(self, node):
        result = self._call(self.preorder, node)
        if result is not None:
            return result
        changes = {}
        for name, value in node.fields.items():
            new = self.value(value)
            if new is not value:
                changes[name] = new
        node = node.with_fields(**changes) if changes else node
        result = self._call(self.postorder, node)
        return node if result is None else result


def ir_transform(stmt, preorder, postorder, only_enable=None):
    """Rewrites a statement or expression. preorder(node) is called before the parts of a node, and
    postorder(node) with the node of rewritten parts; None keeps the node, another result replaces it,
    and that of preorder is not rewritten further. Either may be None.

    only_enable: the kinds for which they are called, such as ["tir.For"]"""
    kinds = None if only_enable is None else {name.rpartition(".")[2].replace("SBlock", "Block")
                                              for name in only_enable}
    return _Rewriter(preorder, postorder, kinds).value(stmt)


def replaced(stmt, old, new):
    """The statement with another one in the place of a part of it, and the new node of each node around that by the
    id of the old one."""
    rewriter = _Rewriter(lambda node: new if node is old else None, None)
    return rewriter.value(stmt), {key: made for key, (made, _) in rewriter.done.items()}


def substitute(node, vmap):
    """Replaces variables by expressions: vmap is a dictionary, or a function of a variable that
    gives an expression or None."""
    find = vmap.get if isinstance(vmap, dict) else vmap
    return _Rewriter(lambda one: find(one) if isinstance(one, Var) else None, None,
                     with_buffers=True).value(node)


def renew_defs(func):
    """The same PrimFunc, with other objects for all its parameters, variables and buffers."""
    return type(func)(func._handle)
