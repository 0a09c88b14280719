# SPDX-License-Identifier: Apache-2.0
"""Tensor programs of tensor expressions: one block for each computation, which reads earlier tensors.

The names are those that TVM gives: a block is called as its operation, a loop as its axis, and the
variable of a block `v_` and the name of its loop."""
from pleat._library import PleatError
from pleat.te.index_types import with_index_type
from pleat.te.tensor import ExternOp, IterVar, PlaceholderOp, ScanOp, Tensor, TensorLoad
from pleat.tir import nodes
from pleat.tir.block_analysis import get_block_access_region
from pleat.tir.nodes import Range, Var, const, one_statement
from pleat.tir.op import if_then_else
from pleat.tir.stmt_functor import _Rewriter, post_ordered, substitute

FREE = "layout_free_placeholders"  # the attribute of tensors whose layout may be chosen
SERIAL = nodes.ForKind.SERIAL
SPATIAL_VAR, REDUCTION_VAR = nodes.IterVar.DataPar, nodes.IterVar.CommReduce
ORDERED_VAR = nodes.IterVar.Opaque


def operations_of(tensors):
    """The operations that tensors depend on, each behind those whose tensors it reads."""
    return list(post_ordered([t.op for t in tensors], lambda op: [t.op for t in op.input_tensors]))


def unique(name, taken):
    """A name that is not taken: name, or name_1, name_2, …"""
    made, number = name, 0
    while made in taken:
        number += 1
        made = f"{name}_{number}"
    taken.add(made)
    return made


def named_buffer(buffer):
    """A buffer in the annotation of a block."""
    first = nodes.BufferLoad(buffer, [0] * len(buffer.shape))
    return nodes.Call("handle", "T.region", [nodes.Call("handle", "tir.address_of", [first])])


def output_name(op, index):
    return f"{op.name}_v{index}" if op.num_outputs > 1 else op.name


class _Maker:
    """Makes the statements of operations over buffers of their tensors; `blocks` has the names of
    the blocks of each operation, by the operation's id."""

    def __init__(self, args, inlined):
        self.buffers, self.blocks, self.names, self.inlined = {}, {}, {"root"}, inlined
        self.args = [a for a in args if isinstance(a, Tensor)]
        self.allocated, self.buffer_names = [], {a.name for a in args if isinstance(a, Var)}
        self.params = [self.buffer(a) if isinstance(a, Tensor) else a for a in args]
        self.scans = {}  # the scans of the operations of their steps
        self.used = set()  # the ids of the arguments and of the tensors that operations read

    def buffer(self, tensor):
        if tensor not in self.buffers:
            name = unique(output_name(tensor.op, tensor.value_index), self.buffer_names)
            self.buffers[tensor] = nodes.decl_buffer(list(tensor.shape), tensor.dtype, name)
        return self.buffers[tensor]

    def share(self, scan):
        """Lets the tensors of each state of a scan share the buffer of the result."""
        for op in scan.body:
            self.scans[op] = scan
        for result, *parts in zip(scan._outputs, scan.init, scan.update, scan.state_placeholder):
            for tensor in parts:
                if tensor in self.buffers:
                    raise PleatError(f"{tensor.name} is an argument, or part of another scan, but the "
                                     f"memory of {scan.name} has its elements")
                self.buffers[tensor] = self.buffer(result)

    def statement(self, op):
        """The statement of an operation; None for an input, and for a part of a scan."""
        if isinstance(op, ScanOp):
            return self.recurrence(op)
        if op in self.scans or isinstance(op, PlaceholderOp) and op.output(0) in self.buffers and (
                op.output(0) not in self.args):
            return None
        if isinstance(op, PlaceholderOp):
            if op.output(0) not in self.args:
                raise PleatError(f"the placeholder {op.name} is not among the arguments")
            return None
        stored = self.stored(op) if op in self.inlined else []
        self.allocate(op)
        return one_statement([*stored, self.extern(op) if isinstance(op, ExternOp) else self.nest(op)])

    def allocate(self, op):
        known = {id(b) for b in [*self.params, *self.allocated]}
        self.allocated += [b for b in map(self.buffer, op._outputs[:self.count_used(op)]) if id(b) not in known]

    def count_used(self, op):
        """The number of the outputs of a computation, without those at the end that nothing uses where each has a
        block of its own."""
        used = [i for i, t in enumerate(op._outputs) if id(t) in self.used]
        if isinstance(op, (ExternOp, ScanOp)) or op.reduce_axis or not used:
            return op.num_outputs
        return used[-1] + 1

    def is_replaced(self, op):
        """Is an operation a part of a scan whose value takes the place of its elements? A step on the blocks would
        have to prove that no state changes between the two, which is so by the definition of a scan."""
        return (op in self.scans and not self.inlined.get(op, True) and not op.reduce_axis
                and not any(t in self.args for t in op._outputs))

    def recurrence(self, scan):
        """A loop over the steps of a scan, around those of its operations."""
        step = Var(scan.scan_axis.name, scan.scan_axis.dtype)
        stored = [op for op in scan.body if not self.is_replaced(op)]
        for op in [scan, *stored]:
            self.allocate(op)
        body = one_statement([self.nest(op, step) for op in stored])
        extent = scan.scan_axis.dom.extent
        return nodes.For(step, const(0, step.dtype), extent, SERIAL, body)

    def stored(self, op):
        """The computation of the arguments among the outputs, which are stored for the caller. The
        readers get elements of other buffers, so that these can be computed where they are read."""
        arguments = [t for t in op._outputs if t in self.args]
        if not arguments or isinstance(op, ExternOp):
            return []
        nest = self.nest(op)
        del self.blocks[id(op)]
        for tensor in op._outputs:
            del self.buffers[tensor]
        return [nest]

    def extern(self, op):
        named = {**dict(zip(op.in_buffers, map(self.buffer, op.input_tensors))),
                 **dict(zip(op.out_buffers, map(self.buffer, op._outputs)))}
        named.update({ours.data: theirs.data for ours, theirs in list(named.items())})
        body = _Rewriter(named.get, None, with_buffers=True).value(op.body)
        return self.block(op, op.name, [], body, [], None, *self.regions(op, body))

    def regions(self, op, body):
        """The regions that a block of external code reads and writes, where it passes pointers: it may read all of
        such inputs, and writes all of such outputs. Two empty lists where it passes none: the block is completed."""
        buffers = [*map(self.buffer, op.input_tensors), *map(self.buffer, op._outputs)]
        reads, writes, opaque = get_block_access_region(nodes.Block([], [], [], op.name, body),
                                                        {b.data: b for b in buffers})
        passed = {region.buffer for region in opaque}
        inputs = set(buffers[:len(op.input_tensors)])
        return [[*(r for r in stated if opaque and r.buffer not in passed),
                 *(r for r in opaque if (r.buffer in inputs) == is_input)]
                for stated, is_input in ((reads, True), (writes, False))]

    def block(self, op, name, iter_vars, body, values, init=None, reads=(), writes=()):
        name = unique(name, self.names)
        self.blocks.setdefault(id(op), []).append(name)
        annotations = {key: value for key, value in op.attrs.items() if key != FREE}
        free = [named_buffer(self.buffer(t)) for t in op.attrs.get(FREE, ()) if t not in self.args]
        if free:  # those of arguments are an attribute of the program
            annotations[FREE] = free
        block = nodes.Block(iter_vars, [*reads], [*writes], name, body, init, annotations=annotations)
        return nodes.BlockRealize(values, True, block)

    def nest(self, op, step=None):
        """Loops around the blocks of a computation. The loop of the first axis of an operation of a
        scan is `step`, which is around this."""
        axes = op.axis + op.reduce_axis
        loops = [Var(a.name, a.dtype) for a in axes]
        if step is not None:
            loops[0] = step
        if op.reduce_axis:
            body = _ReductionBlock(self, op, loops).statement()
        else:
            body = one_statement([_Block(self, op, loops).element(i) for i in range(self.count_used(op))])
        for axis, loop in reversed(list(zip(axes, loops))):
            if loop is step:
                break
            body = nodes.For(loop, axis.dom.min, axis.dom.extent, SERIAL, body)
        return body


class _Block:
    """A block of a computation, with variables for its axes."""

    def __init__(self, maker, op, loops):
        self.maker, self.op, self.loops = maker, op, loops
        axes = op.axis + op.reduce_axis
        self.vars = [Var(f"v_{a.name}", a.dtype) for a in axes]
        self.named = dict(zip(axes, self.vars))
        self.index = self.vars[:len(op.axis)]
        self.rewriter = _Rewriter(self._before, self._behind)

    def _before(self, node):
        return self.named.get(node) if isinstance(node, IterVar) else None

    def _behind(self, node):
        if not isinstance(node, TensorLoad):
            return None
        op = node.producer.op
        if self.maker.is_replaced(op):
            element = op.body[node.producer.value_index]
            return self.value(substitute(element, dict(zip(op.axis, node.indices))))
        return nodes.BufferLoad(self.maker.buffer(node.producer), node.indices)

    def value(self, expression):
        """An expression of tensors over the axes as one of buffers over the block's variables."""
        return self.rewriter.value(expression)

    def realized(self, name, body, init=None):
        axes = self.op.axis + self.op.reduce_axis
        kinds = [SPATIAL_VAR] * len(self.op.axis) + [REDUCTION_VAR] * len(self.op.reduce_axis)
        domains, values = [a.dom for a in axes], list(self.loops)
        scan = self.maker.scans.get(self.op)
        if scan is not None:  # the loop over the steps begins at 0
            domains[0], values[0] = scan.scan_axis.dom, self.loops[0] + scan.scan_axis.dom.min
            if self.op in [t.op for t in scan.update]:
                kinds[0] = ORDERED_VAR
        iter_vars = [nodes.IterVar(d, v, kind) for d, v, kind in zip(domains, self.vars, kinds)]
        if not axes:  # a block has a variable, as in TVM
            iter_vars, values = [nodes.IterVar(Range(0, 1), Var("vi"), SPATIAL_VAR)], [const(0)]
        return self.maker.block(self.op, name, iter_vars, body, values, init)

    def element(self, i):
        """The block of output number i, which is no reduction."""
        buffer = self.maker.buffer(self.op.output(i))
        store = nodes.BufferStore(buffer, self.value(self.op.body[i]), self.index)
        return self.realized(output_name(self.op, i), store)


class _ReductionBlock(_Block):
    """The block of a reduction to one or several tensors."""

    def statement(self):
        reduction = self.op.body[0]
        buffers = [self.maker.buffer(t) for t in self.op._outputs]
        identity = [self.value(i) for i in reduction.identity]
        first = [self.value(i) for i in reduction.init] or identity
        source = [self.value(s) for s in reduction.source]
        if reduction.condition is not None:
            condition = self.value(reduction.condition)
            source = [if_then_else(condition, s, i) for s, i in zip(source, identity)]
        loads = [nodes.BufferLoad(b, self.index) for b in buffers]
        operands = dict(zip(reduction.lhs + reduction.rhs, loads + source))
        values = [substitute(self.value(r), operands) for r in reduction.result]
        return self.realized(self.op.name, self.stores(buffers, values),
                             one_statement([self.store(b, v) for b, v in zip(buffers, first)]))

    def store(self, buffer, value):
        return nodes.BufferStore(buffer, value, self.index)

    def stores(self, buffers, values):
        """Stores the results; of several, all are computed before the first is stored."""
        if len(buffers) == 1:
            return self.store(buffers[0], values[0])
        found = [Var(f"v_{b.name}", b.dtype) for b in buffers]
        body = one_statement([self.store(b, v) for b, v in zip(buffers, found)])
        for variable, value in reversed(list(zip(found, values))):
            body = nodes.LetStmt(variable, value, body)
        return body


def made_program(args, outputs=(), name="main", inlined=None, index_type=None):
    """(PrimFunc, maker): the program of arguments, and what made it: maker.blocks has the names of the
    blocks of each operation by its id, and maker.buffers the buffers by their tensors. The operations
    are those of the arguments and of further outputs. Elements of the operations `inlined` are read
    from buffers of their own where a tensor of them is an argument, and those that are parts of a scan are
    replaced by their values, unless the dictionary says that steps copy them. Indices have the type `index_type`, or
    that of the extents."""
    args = list(args) if isinstance(args, (list, tuple)) else [args]
    for arg in args:
        if not isinstance(arg, (Tensor, Var)):
            raise TypeError(f"an argument is a tensor or a variable, not {type(arg).__name__}")
    maker = _Maker(args, inlined or {})
    tensors = maker.args + [t for t in outputs if t not in maker.args]
    operations = operations_of(tensors)
    maker.used = {id(t) for t in [*maker.args, *(t for op in operations for t in op.input_tensors)]}
    for op in operations:
        if isinstance(op, ScanOp):
            maker.share(op)
    body = one_statement([s for s in map(maker.statement, operations) if s is not None])
    root = nodes.Block([], [], [], "root", body, alloc_buffers=maker.allocated)
    attrs = {"global_symbol": name, "tir.noalias": True}
    free = [t for op in operations for t in op.attrs.get(FREE, ())]
    if any(t in args for t in free):
        attrs["layout_free_buffers"] = [i for i, arg in enumerate(args) if arg in free]
    from pleat.tir import PrimFunc
    params, body = maker.params, nodes.BlockRealize([], True, root)
    if index_type is not None:
        params, body = with_index_type(params, body, index_type)
    return PrimFunc(params, body, attrs=attrs), maker


def create_prim_func(ops, index_dtype_override=None):
    """The tensor program of tensors and scalar variables, which are its parameters in this order:
    inputs, and outputs, which it computes with all that they depend on. Tensors between them become
    buffers of the program. index_dtype_override: the type of loops, indices, extents and sizes, "int64" or "int32";
    elements keep their types."""
    return made_program(ops, index_type=index_dtype_override)[0]
