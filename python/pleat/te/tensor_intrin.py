# SPDX-License-Identifier: Apache-2.0
"""Intrinsics that are declared by tensor expressions: what they compute, and the statements that do it.

    z = te.compute((16,), lambda i: x[i] + y[i])
    vadd = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_packed("vadd", *ins, *outs))
    s[C].tensorize(inner, vadd)

Its call on regions of tensors is a value of te.compute, which is the same with the step made:

    C = te.compute((m, 16), lambda i: vadd(A[i, 0:16], B[i, 0:16]))

The schedule of tensor programs knows such an intrinsic by two functions, as any other one: the program of
the operation is the description, and the statements on the bound buffers are the implementation. First
values of a reduction are stored in loops before the intrinsic, which adds to them."""
from pleat._library import PleatError
from pleat.te.program import create_prim_func, unique
from pleat.te.tensor import (IterVar, Operation, PlaceholderOp, Reduce, Tensor, TensorLoad, TensorSlice,
                             REDUCE, as_extent)
from pleat.tir import nodes, schedule
from pleat.tir.nodes import KINDS, Range
from pleat.tir.stmt_functor import _Rewriter, ir_transform, substitute


class TensorIntrin:
    """An intrinsic: `op` says what it computes, and `body` how, over `buffers` of the inputs and the outputs.

    reduce_init, reduce_update: statements that store the first values of a reduction, and that add to them;
        None where there are none"""

    def __init__(self, name, op, buffers, body, reduce_init=None, reduce_update=None):
        self.name, self.op, self.inputs, self.buffers = name, op, list(op.input_tensors), buffers
        self.body, self.reduce_init, self.reduce_update = body, reduce_init, reduce_update
        self._names = {}  # of the two functions in the table of pleat.tir.TensorIntrin

    def __call__(self, *regions, reduce_axis=None):
        """The value of te.compute for the regions of the inputs, added up over reduce_axis."""
        return IntrinsicValue(self, regions, reduce_axis)

    def __repr__(self):
        return f"TensorIntrin({self.name})"

    def registered(self, has_outer_reduction):
        """The name under which pleat.tir.TensorIntrin has the description and the implementation.
        has_outer_reduction: the intrinsic runs several times for an element, and adds to it"""
        body = self.reduce_update if has_outer_reduction else self.body
        if body is None:
            raise PleatError(f"{self.name}: a loop of the reduction is outside of the intrinsic, which has no "
                             "statements that add: its function returns (body, reduce_init, reduce_update)")
        if has_outer_reduction not in self._names:
            table = schedule.TensorIntrin
            name = unique(self.name, {*table._registered})
            table.register(name, self._description(), self._program(self.buffers, body))
            self._names[has_outer_reduction] = name
        return self._names[has_outer_reduction]

    def _description(self):
        """The program of the operation over buffers without strides, and without first values. Its block has no
        variables of one iteration, as those that are blockized with preserve_unit_iters=False."""
        func = create_prim_func([*self.inputs, *self.op._outputs])
        ours = [nodes.decl_buffer(b.shape, b.dtype, b.name, scope=b.scope()) for b in self.buffers]
        body = ir_transform(func.body.block.body, None, _as_part)
        buffers = dict(zip(func.buffer_map.values(), ours))
        return self._program(ours, _Rewriter(buffers.get, None, with_buffers=True).value(body))

    def _program(self, buffers, body):
        """The program of a block that accesses the whole buffers."""
        from pleat.tir import PrimFunc
        regions = [KINDS["BufferRegion"](b, [Range(0, extent) for extent in b.shape]) for b in buffers]
        block = nodes.Block([], regions, regions[len(self.inputs):], "root", body)
        return PrimFunc(list(buffers), nodes.BlockRealize([], True, block))


class IntrinsicValue:
    """A call of an intrinsic on regions of tensors such as `A[i, 0:16]`, whose last axes are those of its inputs."""

    def __init__(self, intrinsic, regions, reduce_axis):
        self.intrinsic = intrinsic
        axes = reduce_axis if isinstance(reduce_axis, (list, tuple)) else [reduce_axis]
        self.reduce_axis = [a for a in axes if a is not None]
        if len(regions) != len(intrinsic.inputs):
            self._refuse(f"it takes {len(intrinsic.inputs)} regions, {len(regions)} were given")
        if self.reduce_axis and not isinstance(intrinsic.op.body[0], Reduce):
            self._refuse("it is no reduction, and takes no reduce_axis")
        if any(a.iter_type != REDUCE for a in self.reduce_axis):
            self._refuse("reduce_axis takes axes of te.reduce_axis")
        self.regions = [self._region(given, tensor) for given, tensor in zip(regions, intrinsic.inputs)]

    def _refuse(self, why):
        raise PleatError(f"{self.intrinsic.name}: {why}")

    def _region(self, given, tensor):
        """(tensor, where the region begins) of an argument for an input of the intrinsic."""
        if isinstance(given, Tensor):
            given = given[(slice(None),) * given.ndim] if given.ndim else TensorSlice(given, ())
        if not isinstance(given, TensorSlice):
            self._refuse(f"a region of a tensor is an argument for {tensor.op.name}, such as A[i, 0:16]; not {given!r}")
        of, begins, extents = given.tensor, [], []
        for at, extent in enumerate(of.shape):
            index = given.indices[at] if at < len(given.indices) else slice(None)
            if not isinstance(index, slice):
                begins.append(index)
                extents.append(1)
                continue
            if index.step not in (None, 1):
                self._refuse(f"a region of {of.name} has a step")
            begins.append(0 if index.start is None else index.start)
            extents.append(as_extent((extent if index.stop is None else index.stop) - begins[-1]))
        lead = of.ndim - tensor.ndim
        if lead < 0 or any(e != 1 for e in extents[:lead]) or extents[lead:] != list(tensor.shape):
            self._refuse(f"a region of {of.name} has the extents {extents}, but the input {tensor.op.name} has "
                         f"{list(tensor.shape)}")
        return of, begins

    def elements(self, extents, name):
        """The axes of the intrinsic, and the values of its outputs over them."""
        op = self.intrinsic.op
        if extents != list(op.output(0).shape):
            raise ValueError(f"{name}: the last axes have the extents {extents}, and the intrinsic "
                             f"{self.intrinsic.name} gives {list(op.output(0).shape)}")
        inner = [IterVar.make(a.dom, a.name, a.iter_type) for a in [*op.axis, *op.reduce_axis]]
        named = dict(zip([*op.axis, *op.reduce_axis], inner))
        placed = dict(zip(self.intrinsic.inputs, self.regions))

        def element(node):
            if not isinstance(node, TensorLoad) or node.producer not in placed:
                return None
            tensor, begins = placed[node.producer]
            lead = tensor.ndim - node.producer.ndim
            return tensor(*begins[:lead], *(b + i for b, i in zip(begins[lead:], node.indices)))

        def value(expression):
            return substitute(_Rewriter(None, element).value(expression), named)
        if not isinstance(op.body[0], Reduce):
            return inner, [value(b) for b in op.body]
        reduced = op.body[0]
        changed = {"source": [value(s) for s in reduced.source],
                   "axis": [*self.reduce_axis, *inner[len(op.axis):]],
                   "condition": None if reduced.condition is None else value(reduced.condition)}
        return inner, [b.with_fields(**changed) for b in op.body]


def _as_part(node):
    """A block without its init, and without its variables of one iteration."""
    if not isinstance(node, nodes.BlockRealize):
        return None
    block = node.block
    is_kept = [not isinstance(one.dom.extent, nodes.IntImm) or int(one.dom.extent) != 1 for one in block.iter_vars]
    zeros = {one.var: nodes.const(0, one.var.dtype) for one, kept in zip(block.iter_vars, is_kept) if not kept}
    values, iter_vars = ([part for part, kept in zip(parts, is_kept) if kept]
                         for parts in (node.iter_values, block.iter_vars))
    return node.with_fields(iter_values=values, block=block.with_fields(
        iter_vars=iter_vars, body=substitute(block.body, zeros), init=None, reads=[], writes=[]))


def _statement(body):
    return nodes.Evaluate(body) if isinstance(body, nodes.PrimExpr) else body


def decl_tensor_intrin(op, fcompute, name="tensor_intrin", binds=None, scalar_params=None,
                       default_buffer_params=None):
    """An intrinsic for Stage.tensorize, which computes what `op` does.

    op: the operation, whose inputs are te.placeholder
    fcompute: gives, for the buffers of the inputs and of the outputs, a statement or the value of a call; for
        a reduction also (body, reduce_init, reduce_update), of which the last one adds to the output
    binds: the buffers of tensors, which state strides and offsets; for others, compact buffers are made
    default_buffer_params: arguments of tir.decl_buffer for these"""
    if not isinstance(op, Operation):
        raise TypeError(f"expected an operation, such as C.op, not {type(op).__name__}")
    if scalar_params:
        raise PleatError(f"{name}: an intrinsic has no scalar_params here; read them from a buffer")
    for tensor in op.input_tensors:
        if not isinstance(tensor.op, PlaceholderOp):
            raise ValueError(f"{name}: the input {tensor.name} is not a te.placeholder")
    tensors, given = [*op.input_tensors, *op._outputs], dict(binds or {})
    buffers = [given[t] if t in given else
               nodes.decl_buffer(list(t.shape), t.dtype, t.op.name, **(default_buffer_params or {}))
               for t in tensors]
    inputs = len(op.input_tensors)
    made = fcompute(buffers[:inputs], buffers[inputs:])
    parts = [_statement(part) for part in (made if isinstance(made, (list, tuple)) else [made])]
    if not 1 <= len(parts) <= 3 or parts[0] is None:
        raise ValueError(f"{name}: expected a statement, or (body, reduce_init, reduce_update)")
    return TensorIntrin(name, op, buffers, *parts)
