# SPDX-License-Identifier: Apache-2.0
"""The builder of statements that TVM had before TVMScript, with its names:

    ib = pleat.tir.ir_builder.create()
    A = ib.buffer_ptr(buffer)
    with ib.for_range(0, 16, name="i") as i:
        with ib.if_scope(i % 2 == 0):
            A[i] = A[i] + 1
    program = pleat.tir.PrimFunc([buffer], ib.get())

It makes nodes (pleat.tir.nodes). A statement that opens a scope for all behind it, such as an allocation,
ends with the scope in which it stands."""
import contextlib

from pleat.tir import nodes
from pleat.tir.nodes import KINDS, ForKind, IntImm, Var, converted, one_statement
from pleat.tir.op import as_expression, same_type

_LOOPS = {"serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED,
          "unroll": ForKind.UNROLLED}


class BufferVar:
    """A buffer whose elements are read by `x[i]` and stored by `x[i] = value`, a statement of the
    builder. One index into several axes counts the elements in row-major order."""

    def __init__(self, builder, buffer):
        self._builder, self._buffer = builder, buffer

    def asobject(self):
        return self._buffer

    @property
    def dtype(self):
        return self._buffer.dtype

    @property
    def shape(self):
        return self._buffer.shape

    def _indices(self, index):
        indices = list(index) if isinstance(index, (list, tuple)) else [index]
        indices = [getattr(one, "var", one) for one in indices]
        return indices if len(indices) == len(self.shape) or len(indices) > 1 else \
            _unravelled(indices[0], self.shape)

    def __getitem__(self, index):
        return nodes.BufferLoad(self._buffer, self._indices(index))

    def __setitem__(self, index, value):
        is_number = isinstance(value, (bool, int, float))
        value = as_expression(value, self.dtype if is_number else None)
        if nodes.with_lanes(value.dtype, 1) != nodes.with_lanes(self.dtype, 1):
            raise ValueError(f"a value of type {value.dtype} is stored in {self._buffer.name}, whose elements "
                             f"are {self.dtype}: cast it")
        self._builder.emit(KINDS["BufferStore"](self._buffer, value, self._indices(index)))


def _unravelled(index, shape):
    """The indices of an element by its number in row-major order."""
    indices = []
    for extent in reversed(shape[1:]):
        indices.append(as_expression(index) % extent)
        index = as_expression(index) // extent
    return [index, *reversed(indices)] if shape else []


class IRBuilder:
    """Statements under construction: see the text of the module."""

    def __init__(self):
        self._open = [[]]  # the statements of each scope; a function makes one of those behind it
        self._loops = 0

    def emit(self, stmt):
        """Adds a statement, a call, or a function that makes a statement of the one behind it."""
        is_call = isinstance(stmt, nodes.PrimExpr)
        self._open[-1].append(KINDS["Evaluate"](stmt) if is_call else stmt)

    def _closed(self):
        done = []
        for one in reversed(self._open.pop()):
            done = [one, *done] if isinstance(one, nodes.Stmt) else [one(one_statement(done))]
        return one_statement(done)

    @contextlib.contextmanager
    def _scope(self, make, value=None):
        self._open.append([])
        yield value
        self.emit(make(self._closed()))

    def scope_attr(self, node, attr_key, value):
        """An attribute of all statements behind this one; "thread_extent" of the axis of a thread
        starts its threads."""
        value = converted(value)
        if isinstance(node, Var) and getattr(node, "thread_tag", ""):
            node = nodes.IterVar(None, node, nodes.IterVar.ThreadIndex, node.thread_tag)
        node = node.asobject().data if isinstance(node, BufferVar) else converted(node)
        self.emit(lambda body: KINDS["AttrStmt"](node, attr_key, value, body))

    def for_range(self, begin, end, name="i", dtype=None, kind="serial"):
        """A loop from begin to before end, whose variable the `with` gives. The kinds: serial,
        parallel, vectorize, unroll."""
        if kind not in _LOOPS:
            raise ValueError(f"a loop of the kind {kind!r}: expected one of {', '.join(_LOOPS)}")
        if name == "i":
            name = "ijk"[self._loops] if self._loops < 3 else f"i_{self._loops - 3}"
            self._loops += 1
        first, last = same_type(begin, end)
        dtype = dtype or first.dtype
        if not dtype.startswith("int"):
            raise TypeError(f"the loop {name} runs over numbers of type {dtype}, not integers")
        first, last = (nodes.const(one.value, dtype) if isinstance(one, IntImm) else one.astype(dtype)
                       for one in (first, last))
        extent = last if isinstance(first, IntImm) and first.value == 0 else last - first
        variable = Var(name, dtype)
        return self._scope(lambda body: KINDS["For"](variable, first, extent, _LOOPS[kind], body), variable)

    def while_loop(self, condition):
        return self._scope(lambda body: KINDS["While"](as_expression(condition), body))

    def if_scope(self, cond):
        return self._scope(lambda body: KINDS["IfThenElse"](as_expression(cond), body))

    def else_scope(self):
        """The other branch of the if_scope before it."""
        before = self._open[-1].pop() if self._open[-1] else None
        if not isinstance(before, KINDS["IfThenElse"]) or before.else_case is not None:
            raise RuntimeError("else_scope can only follow an if_scope")
        return self._scope(lambda body: before.with_fields(else_case=body))

    def new_scope(self):
        """A scope in which allocations and attributes end."""
        return self._scope(lambda body: body)

    def let(self, var_name, value):
        """A variable with a value for all statements behind this one."""
        value = as_expression(value)
        variable = Var(var_name, value.dtype)
        self.emit(lambda body: KINDS["LetStmt"](variable, value, body))
        return variable

    def allocate(self, dtype, shape, name="buf", axis_separators=None, scope=""):
        """Memory for all statements behind this one, as a BufferVar."""
        buffer = nodes.decl_buffer(shape, dtype, name, scope=scope, axis_separators=axis_separators)
        self.emit(lambda body: KINDS["AllocBuffer"](buffer, None, body))
        return BufferVar(self, buffer)

    def pointer(self, content_type, name="ptr", scope=""):
        """A buffer over a pointer that nothing defines yet; it has one element."""
        return BufferVar(self, nodes.decl_buffer([1], content_type, name, scope=scope))

    def buffer_ptr(self, buf):
        """A buffer as a BufferVar."""
        return BufferVar(self, buf)

    def likely(self, expr):
        """The condition, with the hint that it is mostly true."""
        expr = as_expression(expr)
        return KINDS["Call"](expr.dtype, "tir.likely", [expr])

    def get(self):
        """All statements as one, outside of all scopes."""
        if len(self._open) > 1:
            raise RuntimeError("get is called inside of a scope")
        return self._closed()


def create():
    return IRBuilder()
