# SPDX-License-Identifier: Apache-2.0
"""Classes of visitors and mutators of nodes, with a method for each kind of node:

    class Doubled(StmtExprMutator):
        def visit_int_imm_(self, op):
            return IntImm(op.dtype, op.value * 2)

    Doubled()(func.body)

The method of a base class visits the parts of its node, and that of a mutator makes the node of new parts; a node
without changes stays the same object. StmtVisitor and StmtMutator leave expressions as they are, except in
`visit_expr`, which does nothing. Variables and buffers that a node defines are no parts of it."""
from pleat.tir.nodes import Node, PrimExpr, Stmt

# The method of each kind of statement, of which some have another name in other versions of TVM.
_STMTS = {"LetStmt": "bind let_stmt", "AttrStmt": "attr attr_stmt", "IfThenElse": "if_then_else", "For": "for",
          "While": "while", "Allocate": "allocate", "AllocBuffer": "alloc_buffer allocate",
          "AllocateConst": "allocate_const", "DeclBuffer": "decl_buffer", "BufferStore": "buffer_store",
          "AssertStmt": "assert assert_stmt", "SeqStmt": "seqstmt seq_stmt", "Evaluate": "evaluate",
          "Block": "block sblock", "BlockRealize": "block_realize sblock_realize"}
_EXPRS = {"Var": "var", "BufferLoad": "buffer_load", "Let": "let", "Call": "call", "FloorDiv": "floordiv floor_div",
          "FloorMod": "floormod floor_mod", "IntImm": "int_imm", "FloatImm": "float_imm", "StringImm": "string_imm",
          **{name: name.lower() for name in "Add Sub Mul Div Mod Min Max And Or Not EQ NE LT LE GT GE Cast Select "
             "Ramp Broadcast Shuffle".split()}}
_PARTS = {"BufferRegion": "buffer_region"}
# The parts of a node in the order in which they are visited, where these are not all of its fields.
_VISITED = {"For": ("min", "extent", "body"), "LetStmt": ("value", "body"), "Let": ("value", "body"),
            "AttrStmt": ("value", "body"), "Allocate": ("extents", "condition", "body"),
            "AllocBuffer": ("extents", "body"), "AllocateConst": ("extents", "body"), "DeclBuffer": ("body",),
            "BufferStore": ("value", "indices"), "AssertStmt": ("condition", "message", "body"),
            "Block": ("iter_vars", "reads", "writes", "match_buffers", "init", "body"), "IterVar": ("dom",),
            "MatchBufferRegion": ("source",)}


def _methods(names):
    return [f"visit_{name}_" for name in names.split()]


class _Functor:
    """The choice of the method for a node, and the visit of its parts."""

    KINDS = {}
    is_mutator = False

    def _method(self, node):
        """The method for a node: the one that the class of the user has, of several names."""
        names = self.KINDS.get(next((kind.__name__ for kind in type(node).__mro__ if kind.__name__ in self.KINDS), None))
        if names is None:
            return self._visit_parts
        methods = _methods(names)
        own = [name for name in methods if not getattr(getattr(type(self), name), "is_default", False)]
        return getattr(self, (own or methods)[0])

    def _part(self, value):
        if isinstance(value, Stmt):
            return self.visit_stmt(value)
        if isinstance(value, PrimExpr):
            return self.visit_expr(value)
        if isinstance(value, (list, tuple)):
            items = [self._part(item) for item in value]
            return items if any(a is not b for a, b in zip(items, value)) else value
        if type(value).__name__ == "BufferRegion" and isinstance(self, StmtFunctor):
            return self.visit_buffer_region_(value)
        if isinstance(value, Node) and type(value).__name__ in ("Range", "IterVar", "MatchBufferRegion", "BufferRegion"):
            return self._visit_parts(value)
        return value

    def _visit_parts(self, node):
        """Visits the parts of a node; a mutator gives the node of the results."""
        names = _VISITED.get(type(node).__name__, node.fields)
        given = {name: node.fields[name] for name in names if name in node.fields}
        new = {name: self._part(value) for name, value in given.items()}
        if not self.is_mutator:
            return None
        changes = {name: value for name, value in new.items() if value is not given[name]}
        return node.with_fields(**changes) if changes else node

    def visit_stmt(self, stmt):
        """Visits a statement."""
        return stmt if self.is_mutator else None

    def visit_expr(self, expr):
        """Visits an expression."""
        return expr if self.is_mutator else None

    def __call__(self, node):
        return self.visit_stmt(node) if isinstance(node, Stmt) else self.visit_expr(node)


def _default(name):
    def visit(self, op):
        return self._visit_parts(op)
    visit.__name__, visit.is_default = name, True
    visit.__doc__ = "Visits the parts of a node of this kind."
    return visit


def _refused(name):
    def visit(self, op):
        raise NotImplementedError(f"{type(self).__name__} has no method {name}")
    visit.__name__, visit.is_default = name, True
    return visit


class StmtFunctor(_Functor):
    """Calls the method of a statement's kind."""

    KINDS = {**_STMTS, **_PARTS}

    def visit_stmt(self, stmt):
        return self._method(stmt)(stmt)


class ExprFunctor(_Functor):
    """Calls the method of an expression's kind."""

    KINDS = _EXPRS

    def visit_expr(self, expr):
        return self._method(expr)(expr)


class StmtVisitor(StmtFunctor):
    """Visits statements."""


class StmtMutator(StmtFunctor):
    """Rewrites statements."""
    is_mutator = True


class ExprVisitor(ExprFunctor):
    """Visits expressions."""


class ExprMutator(ExprFunctor):
    """Rewrites expressions."""
    is_mutator = True


for _classes, _make in (((StmtFunctor, ExprFunctor), _refused), ((StmtVisitor, StmtMutator, ExprVisitor, ExprMutator), _default)):
    for _class in _classes:
        for _name in _methods(" ".join(_class.KINDS.values())):
            setattr(_class, _name, _make(_name))


class StmtExprVisitor(StmtVisitor, ExprVisitor):
    """Visits statements and the expressions in them."""
    KINDS = {**StmtVisitor.KINDS, **ExprVisitor.KINDS}
    visit_expr = ExprFunctor.visit_expr


class StmtExprMutator(StmtMutator, ExprMutator):
    """Rewrites statements and the expressions in them."""
    KINDS = {**StmtMutator.KINDS, **ExprMutator.KINDS}
    visit_expr = ExprFunctor.visit_expr


PyStmtExprVisitor, PyStmtExprMutator = StmtExprVisitor, StmtExprMutator


def visitor(cls):
    """A decorator of visitors, which TVM needs; here it gives the class."""
    return cls


mutator = visitor
