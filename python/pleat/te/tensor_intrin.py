# SPDX-License-Identifier: Apache-2.0
"""Intrinsics that are declared by tensor expressions: what they compute, and the statements that do it.

    z = te.compute((16,), lambda i: x[i] + y[i])
    vadd = te.decl_tensor_intrin(z.op, lambda ins, outs: tir.call_packed("vadd", *ins, *outs))
    s[C].tensorize(inner, vadd)

The schedule of tensor programs knows such an intrinsic by two functions, as any other one: the program of
the operation is the description, and the statements on the bound buffers are the implementation. First
values of a reduction are stored in loops before the intrinsic, which adds to them."""
from pleat._library import PleatError
from pleat.te.program import create_prim_func, unique
from pleat.te.tensor import Operation, PlaceholderOp, Reduce
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

    def __call__(self, *_, **__):
        raise PleatError(f"{self.name}: an intrinsic is no value of te.compute here; write what it computes, "
                         "and then s[C].tensorize(axis, intrin)")

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
