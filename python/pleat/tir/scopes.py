# SPDX-License-Identifier: Apache-2.0
"""The two forms of statements that define something: with a body, as in classic TVM, and followed in a SeqStmt
by the statements that may use it, as since 2026.

    LetStmt(x, 1, Evaluate(x))     SeqStmt([Bind(x, 1), Evaluate(x)])"""
from pleat.tir.nodes import AllocBuffer, DeclBuffer, LetStmt, Node, SeqStmt, Stmt, is_open
from pleat.tir.stmt_functor import post_ordered

_SCOPES = (AllocBuffer, DeclBuffer, LetStmt)


def parts_of(value):
    """The nodes directly in the value of a field."""
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from parts_of(item)
    elif isinstance(value, dict):
        for item in value.items():
            yield from parts_of(item)


def _parts(node):
    """The nodes that may hold statements: an expression holds none."""
    return [part for part in parts_of(node.fields) if _holds_statements(part)]


def _holds_statements(node):
    return isinstance(node, Stmt) or type(node).__name__ == "PrimFuncNode"


def _like(node, changes):
    """A node of the same kind, with some fields replaced."""
    made = type(node).__new__(type(node))
    made._set({**node.fields, **changes})
    return made


def _with_parts(node, done):
    """The node with its statements in their new form."""
    def new(value):
        if isinstance(value, list):
            return [new(item) for item in value]
        return done.get(id(value), value)
    changes = {name: new(value) for name, value in node.fields.items()}
    is_same = all(a is b or (isinstance(a, list) and len(a) == len(b) and all(x is y for x, y in zip(a, b)))
                  for a, b in zip(changes.values(), node.fields.values()))
    return node if is_same else _like(node, changes)


def _statements(roots):
    """The roots that hold statements and all statements below them, each behind its parts."""
    return list(post_ordered([root for root in roots if _holds_statements(root)], _parts))


def _rewritten(order, change):
    """The new forms of statements by the ids of the old ones: change(node) gets a node of new parts."""
    done = {}
    for node in order:
        done[id(node)] = change(_with_parts(node, done))
    return done


def _ended(scope, rest):
    """A scope with the statements behind it as its body."""
    done = scope.with_rest(rest)
    return done.spelled_out() if isinstance(done, DeclBuffer) else done


def _with_body(node):
    """A scope that is the whole body of a statement ends there."""
    for name, value in node.fields.items():
        if isinstance(value, Stmt) and is_open(value) and not isinstance(node, AllocBuffer):
            node = _like(node, {name: _ended(value, [])})
    return node


def _is_unfinished(node):
    return is_open(node) or (isinstance(node, DeclBuffer) and "data" in node.fields)


def _closed(node):
    if isinstance(node, DeclBuffer) and not is_open(node):
        return _with_body(node).spelled_out()
    if not isinstance(node, SeqStmt):
        return _with_body(node)
    done = []
    for one in reversed(node.seq):
        done = [_ended(one, done)] if is_open(one) else [one, *done]
    return done[0] if len(done) == 1 else SeqStmt.read({"seq": done})


def closed_forms(roots):
    """The statements among the roots with a body for each scope, by the ids of the old ones."""
    order = _statements(roots)
    return _rewritten(order, _closed) if any(map(_is_unfinished, order)) else {}


def closed(thing):
    """A node with a body for each scope."""
    done = closed_forms([thing]).get(id(thing), thing)
    return _ended(done, []) if is_open(done) else done


def _flat(node):
    if isinstance(node, SeqStmt):
        return SeqStmt(node.seq)
    if isinstance(node, AllocBuffer) and isinstance(node.body, SeqStmt):  # its declaration is flat already
        declaration, *rest = node.body.seq
        return SeqStmt([_like(node, {"body": declaration}), *rest])
    if not isinstance(node, _SCOPES) or is_open(node):
        return node
    return SeqStmt([_like(node, {"body": None}), node.body])


def flat(thing):
    """A statement in which each scope is followed by the statements that may use it."""
    return _rewritten(_statements([thing]), _flat).get(id(thing), thing)
