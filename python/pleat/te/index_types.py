# SPDX-License-Identifier: Apache-2.0
"""Another type for the indices of a tensor program: its loops, block variables, extents and sizes get it, and what is
computed of them. Elements keep their types, and so does the arithmetic on them."""
from pleat._library import PleatError
from pleat.tir import nodes
from pleat.tir.nodes import Binary, Buffer, Comparison, IntImm, Node, Var
from pleat.tir.stmt_functor import post_order_visit


def is_integer(dtype):
    return dtype.startswith("int") and "x" not in dtype


def is_arithmetic(e):
    return isinstance(e, Binary) and not isinstance(e, Comparison) and is_integer(e.dtype)


def is_index(e):
    """Is an expression made of integer variables and numbers alone?"""
    return (is_arithmetic(e) and is_index(e.a) and is_index(e.b)
            or isinstance(e, (IntImm, Var)) and is_integer(e.dtype))


class _Widened:
    """Rewrites statements; `variables` has the new ones, and `buffers` those with extents of the new type."""

    def __init__(self, dtype, sizes):
        self.dtype, self.variables, self.buffers = dtype, {}, {}
        for size in sizes:
            self.rename(size)

    def rename(self, var):
        if is_integer(var.dtype) and var.dtype != self.dtype:
            self.variables[var] = Var(var.name, self.dtype)
        return self.variables.get(var, var)

    def index(self, e):
        """An expression of the new type for one that stands for an index or an extent."""
        if isinstance(e, IntImm):
            return nodes.const(e.value, self.dtype)
        if e in self.variables:
            return self.variables[e]
        if is_arithmetic(e):
            return type(e)(self.index(e.a), self.index(e.b))
        value = self.value(e)
        return value if value.dtype == self.dtype else nodes.KINDS["Cast"](self.dtype, value)

    def range(self, r):
        return nodes.Range(min=self.index(r.min), extent=self.index(r.extent))

    def buffer(self, buffer):
        if buffer not in self.buffers:
            made = buffer.with_fields(shape=[self.index(extent) for extent in buffer.shape],
                                      data=Var(buffer.data.name, buffer.data.dtype))
            self.buffers[buffer] = made
            self.variables[buffer.data] = made.data
        return self.buffers[buffer]

    def value(self, value):
        """A statement, or an expression of the type that it has."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):  # annotations
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, Buffer):
            return self.buffer(value)
        if not isinstance(value, Node):
            return value
        special = getattr(self, f"_{type(value).__name__}", None)
        if special is not None:
            return special(value)
        if isinstance(value, Comparison) and is_index(value.a) and is_index(value.b):
            return type(value)(self.index(value.a), self.index(value.b))
        if is_arithmetic(value) and is_index(value):
            return nodes.KINDS["Cast"](value.dtype, self.index(value)) if self.uses(value) else value
        return value.with_fields(**{name: self.value(part) for name, part in value.fields.items()})

    def uses(self, e):
        found = []
        post_order_visit(e, lambda node: found.append(node in self.variables) if isinstance(node, Var) else None)
        return any(found)

    def _Var(self, var):
        made = self.variables.get(var, var)
        return nodes.KINDS["Cast"](var.dtype, made) if is_integer(var.dtype) and made is not var else made

    def _BufferLoad(self, load):
        return nodes.BufferLoad(self.buffer(load.buffer), [self.index(i) for i in load.indices])

    def _BufferStore(self, store):
        return store.with_fields(buffer=self.buffer(store.buffer), value=self.value(store.value),
                                 indices=[self.index(i) for i in store.indices])

    def _BufferRegion(self, region):
        return region.with_fields(buffer=self.buffer(region.buffer), region=[self.range(r) for r in region.region])

    def _For(self, loop):
        return loop.with_fields(loop_var=self.rename(loop.loop_var), min=self.index(loop.min),
                                extent=self.index(loop.extent), body=self.value(loop.body))

    def _BlockRealize(self, realize):
        return realize.with_fields(iter_values=[self.index(v) for v in realize.iter_values],
                                   predicate=self.value(realize.predicate), block=self.value(realize.block))

    def _IterVar(self, one):
        return nodes.IterVar(self.range(one.dom), self.rename(one.var), one.iter_type)


def with_index_type(params, body, dtype):
    """(params, body) of a program whose indices and sizes have the type. Scalar parameters have it where they are
    sizes of buffers."""
    if dtype not in ("int32", "int64"):
        raise PleatError(f"index_dtype_override is 'int32' or 'int64', not {dtype!r}")
    sizes, buffers = {}, [param for param in params if isinstance(param, Buffer)]
    for part in [*buffers, body]:
        post_order_visit(part, lambda node: buffers.append(node.buffer)
                         if isinstance(getattr(node, "buffer", None), Buffer) else None)
    for extent in [extent for buffer in buffers for extent in buffer.shape]:
        post_order_visit(extent, lambda node: sizes.setdefault(node) if isinstance(node, Var) else None)
    widened = _Widened(dtype, sizes)
    params = [widened.buffer(p) if isinstance(p, Buffer) else widened.variables.get(p, p) for p in params]
    return params, widened.value(body)
