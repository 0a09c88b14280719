# SPDX-License-Identifier: Apache-2.0
"""Tensors, and the operations that give them: inputs, computations over an index, external code."""
import functools
import inspect
import threading

from pleat._library import PleatError
from pleat.data_type import DataType
from pleat.tir import nodes, op as functions
from pleat.tir.nodes import IntImm, PrimExpr, Range, Var, const, prim_type
from pleat.tir.op import as_expression
from pleat.tir.stmt_functor import post_order_visit

DATA_PARALLEL, THREAD, REDUCE, ORDERED = range(4)


class IterVar(Var):
    """An axis: a variable with its domain `dom`, a Range, or None before that is known.

    iter_type: 0 for an axis of data, 1 for threads, whose name is thread_tag, 2 for a reduction; the names of these
        and others are those of TVM"""

    DataPar, ThreadIndex, CommReduce, Ordered, Opaque, Unrolled, Vectorized, Parallelized, Tensorized = range(9)

    @classmethod
    def make(cls, dom, name, iter_type, thread_tag=""):
        dtype = "int32" if dom is None else as_expression(dom.extent).dtype
        if dom is not None:
            begin = const(int(dom.min), dtype) if isinstance(dom.min, IntImm) else dom.min
            dom = Range.from_min_extent(begin, dom.extent)
        axis = cls(name, dtype)
        axis.dom, axis.iter_type, axis.thread_tag = dom, iter_type, thread_tag
        return axis

    @property
    def var(self):
        return self


class TensorLoad(PrimExpr):
    """An element of a tensor, in the definition of another one."""

    ARGUMENTS = ("producer", "indices")
    TYPE = staticmethod(lambda fields: fields["producer"].dtype)


ProducerLoad = TensorLoad  # TVM's name


class Reduce(PrimExpr):
    """A reduction of `source`, a list of expressions, over axes; its value is number value_index of
    the results. `result` combines the variables lhs, the values so far, and rhs, those of an element;
    `identity` has values that change nothing. Where `condition` is false, an element does not count.
    `init` has the first values, or nothing for the identity."""

    ARGUMENTS = ("lhs", "rhs", "result", "identity", "source", "axis", "condition", "value_index",
                 "init")
    TYPE = staticmethod(lambda fields: fields["source"][fields["value_index"]].dtype)

    def _completed(self, fields):
        return {**fields, "dtype": self.TYPE(fields)}


class Tensor:
    """Output number value_index of an operation. Indexing gives elements: `T[i, j]`, or `T[i][j]`,
    or `T(i, j)`. `shape` has Python's numbers, and expressions where a size is free."""

    def __init__(self, op, value_index, shape, dtype):
        self.op, self.value_index, self.dtype = op, value_index, prim_type(dtype)
        self.shape = tuple(shape)

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def name(self):
        several = self.op.num_outputs > 1
        return f"{self.op.name}.v{self.value_index}" if several else self.op.name

    def __call__(self, *indices):
        if len(indices) != self.ndim:
            raise ValueError(f"{self.name} has {self.ndim} axes, {len(indices)} indices were given")
        indices = [as_expression(i) for i in indices]
        for i in indices:
            if "int" not in i.dtype and i.dtype != "bool":
                raise TypeError(f"an index of {self.name} is of type {i.dtype}, not an integer")
        return TensorLoad(self, indices)

    def __getitem__(self, indices):
        return TensorSlice(self, ())[indices]

    __iter__ = None  # elements are expressions, of which there would be no last one

    def as_expression(self):
        """The element of a tensor without axes."""
        if self.ndim:
            raise TypeError(f"{self.name} has {self.ndim} axes: index it to get an element")
        return self()

    def __repr__(self):
        return f"Tensor(shape={list(self.shape)}, op.name={self.op.name})"


class TensorSlice:
    """A tensor with some of its indices: further indices give an element. With slices among the indices it is a
    region, for an intrinsic."""

    def __init__(self, tensor, indices):
        self.tensor, self.indices = tensor, indices

    def __getitem__(self, indices):
        indices = self.indices + (tuple(indices) if isinstance(indices, tuple) else (indices,))
        tensor = self.tensor
        is_part = len(indices) < tensor.ndim or any(isinstance(i, slice) for i in indices)
        return TensorSlice(tensor, indices) if is_part else tensor(*indices)

    __iter__ = None

    def as_expression(self):
        return self.tensor(*self.indices)


def _operator(name, of_tensors):
    """A binary operator: of elements, or the operator of pleat.topi where a side is a tensor with axes."""
    def of(self, other):
        if of_tensors is None or not self.ndim and not getattr(other, "ndim", 0):
            return getattr(self.as_expression(), name)(other)
        from pleat import topi
        sides = (other, self) if name.startswith("__r") else (self, other)
        return getattr(topi, of_tensors)(*sides)
    return of


_OF_TENSORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide"}
for _name, _method in vars(PrimExpr).items():
    if _name.startswith("__r") and _name != "__repr__" or _name in (
            "__add__", "__sub__", "__mul__", "__truediv__", "__lt__", "__le__", "__gt__", "__ge__"):
        setattr(Tensor, _name, _operator(_name, _OF_TENSORS.get(_name.strip("_").removeprefix("r"))))


# ---- Operations -----------------------------------------------------------------------------------

class Operation:
    """A source of tensors: `name`, `tag`, `attrs`, `axis`, `reduce_axis`, and `input_tensors`."""

    def __init__(self, name, tag="", attrs=None):
        self.name, self.tag, self.attrs = name, _tagged(tag), dict(attrs or {})
        self.axis, self.reduce_axis, self.input_tensors = [], [], []

    def _give(self, shapes, dtypes):
        self._outputs = [Tensor(self, i, shape, dtype)
                         for i, (shape, dtype) in enumerate(zip(shapes, dtypes))]

    @property
    def num_outputs(self):
        return len(self._outputs)

    def output(self, index):
        """Output number index as a tensor."""
        return self._outputs[index]

    def __repr__(self):
        return f"{type(self).__name__}({self.name})"


class PlaceholderOp(Operation):
    """An input."""

    def __init__(self, shape, dtype, name):
        super().__init__(name)
        self.shape, self.dtype = tuple(shape), dtype
        self._give([shape], [dtype])


class ComputeOp(Operation):
    """A computation: `body` has one expression over `axis` for each output; all are reductions over
    `reduce_axis`, or none is. Where the value is that of an `intrinsic`, `inner_axes` are its axes."""

    intrinsic, inner_axes = None, ()

    def __init__(self, name, axis, body, shape, tag="", attrs=None):
        super().__init__(name, tag, attrs)
        self.axis, self.body = list(axis), body
        self.reduce_axis = list(body[0].axis) if isinstance(body[0], Reduce) else []
        self.input_tensors = tensors_in(body)
        self._give([shape] * len(body), [b.dtype for b in body])


class ExternOp(Operation):
    """External code: the statement `body` over in_buffers and out_buffers."""

    def __init__(self, name, inputs, in_buffers, out_buffers, body, tag="", attrs=None):
        super().__init__(name, tag, attrs)
        self.input_tensors = list(inputs)
        self.in_buffers, self.out_buffers, self.body = in_buffers, out_buffers, body
        self._give([[as_extent(e) for e in b.shape] for b in out_buffers],
                   [b.dtype for b in out_buffers])


def tensors_in(expressions):
    """The tensors that expressions read, in the order in which they occur."""
    found = {}

    def visit(node):
        if isinstance(node, TensorLoad):
            found.setdefault(id(node.producer), node.producer)
    for expression in expressions:
        post_order_visit(expression, visit)
    return list(found.values())


# ---- Tags -----------------------------------------------------------------------------------------

_CURRENT = threading.local()


class TagScope:
    """Operations made in a `with` statement, or in a function that this decorates, get the tag."""

    def __init__(self, tag):
        self.tag = tag

    def __enter__(self):
        if getattr(_CURRENT, "tag", ""):
            raise ValueError("nested tag is not allowed")
        _CURRENT.tag = self.tag
        return self

    def __exit__(self, *_):
        _CURRENT.tag = ""

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*arguments, **keywords):
            with TagScope(self.tag):
                return function(*arguments, **keywords)
        return inside


def tag_scope(tag):
    """The scope of a tag: see TagScope."""
    return TagScope(tag)


def _tagged(tag):
    current = getattr(_CURRENT, "tag", "")
    if current and tag:
        raise ValueError("nested tag is not allowed")
    return current or tag


# ---- Making ---------------------------------------------------------------------------------------

def as_extent(extent):
    """An extent as a Python number where it is constant, otherwise as an expression."""
    if isinstance(extent, (PrimExpr, int)) and not isinstance(extent, (IntImm, bool)):
        return extent
    if isinstance(extent, float) and not extent.is_integer():
        raise TypeError(f"an extent is an integer, not {extent!r}")
    try:
        return int(extent)
    except (TypeError, ValueError):
        raise TypeError(f"an extent is an integer or an expression, not {extent!r}") from None


def as_shape(shape):
    return [as_extent(e) for e in (shape if isinstance(shape, (list, tuple)) else [shape])]


def var(name="tindex", dtype="int32"):
    """A variable, such as a free size or a scalar parameter."""
    return Var(name, dtype)


def size_var(name="size", dtype="int32"):
    """A variable that is not negative, as all sizes are."""
    return Var(name, dtype)


def placeholder(shape, dtype="float32", name="placeholder"):
    """An input of a shape. An extent is a number, a variable, or an expression of variables."""
    return PlaceholderOp(as_shape(shape), str(DataType(dtype)), name).output(0)


def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis of a reduction from dom[0] to before dom[1]; dom may be a Range."""
    return IterVar.make(_range(dom), name, REDUCE, thread_tag)


def thread_axis(dom=None, tag="", name="", span=None):
    """The axis of threads of a tag such as "threadIdx.x", for Stage.bind."""
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ValueError("expected a tag such as threadIdx.x")
    return IterVar.make(None if dom is None else _range(dom), name or tag, THREAD, tag)


def _range(dom):
    if isinstance(dom, Range):
        return dom
    if not isinstance(dom, (list, tuple)):
        dom = (0, dom)
    begin, end = (as_extent(e) for e in dom)
    return Range(begin, end)


def _axis_names(fcompute, rank, varargs_names):
    """The names of the axes of a function, and how many of them it gets by position."""
    names, many, behind = [], None, []
    for parameter in inspect.signature(fcompute).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError("a function of an index takes no **keywords")
        if parameter.default is not parameter.empty:
            raise TypeError("a function of an index has no default arguments")
        if parameter.kind is parameter.VAR_POSITIONAL:
            many = len(names)
        else:
            (behind if parameter.kind is parameter.KEYWORD_ONLY else names).append(parameter.name)
    if many is None:
        return names + behind, len(names)
    count = rank - len(names) - len(behind)
    if count < 0 or (varargs_names is not None and len(varargs_names) != count):
        raise ValueError(f"the tensor has {rank} axes, the function names "
                         f"{len(names) + len(behind) + len(varargs_names or [])}")
    names += varargs_names or [f"i{k}" for k in range(count)]
    return names + behind, len(names)


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor of a shape whose element at an index is fcompute(*index).

    fcompute takes one argument for each axis, or `*indices`; arguments behind these are the last
    axes. It returns an expression, a number, or a reduction such as te.sum(…), or a list of them:
    then the result is a tuple of tensors. A call of an intrinsic of te.decl_tensor_intrin gives all
    elements of the last axes at once, for which fcompute has no arguments. attrs become annotations
    of the block."""
    shape = as_shape(shape)
    names, count = _axis_names(fcompute, len(shape), varargs_names)
    axis = [IterVar.make(Range(0, extent), one, DATA_PARALLEL)
            for one, extent in zip(names, shape)]
    keywords = dict(zip(names[count:], axis[count:]))
    if len(names) < len(shape):
        return _computed_by_intrinsic(shape, fcompute, axis, name, tag, attrs)
    if len(names) != len(shape):
        raise ValueError(f"the function takes {len(names)} indices, the shape has {len(shape)} axes")
    body = fcompute(*axis[:count], **keywords)
    several = isinstance(body, (list, tuple))
    body = [as_expression(b) for b in (body if several else [body])]
    _check_body(body, name)
    if isinstance(body[0], Reduce):
        body = _with_fixed_ranges(body, axis, name)
    op = ComputeOp(name, axis, body, shape, tag, attrs)
    return op.output(0) if len(body) == 1 else tuple(op._outputs)


def _computed_by_intrinsic(shape, fcompute, axis, name, tag, attrs):
    """The tensors whose elements of the last axes an intrinsic gives for each index of the others."""
    try:
        value = fcompute(*axis)
    except PleatError:
        raise
    except (TypeError, ValueError):  # of a function that means to give an element
        value = None
    if not hasattr(value, "intrinsic"):
        raise ValueError(f"the function takes {len(axis)} indices, the shape has {len(shape)} axes")
    inner, body = value.elements(shape[len(axis):], name)
    op = ComputeOp(name, axis + [a for a in inner if a.iter_type == DATA_PARALLEL], body, shape, tag, attrs)
    op.intrinsic, op.inner_axes = value.intrinsic, tuple(inner)
    return op.output(0) if len(body) == 1 else tuple(op._outputs)


def _is_over(expression, axes):
    """Does an expression depend on axes?"""
    found = []
    post_order_visit(expression, lambda node: found.append(node) if node in axes else None)
    return bool(found)


def _with_fixed_ranges(body, axis, name):
    """A reduction of which the ranges do not depend on the data axes: where one did, the axis gets the largest
    range, and a condition chooses the elements in the former one."""
    from pleat.arith import Analyzer
    conditions = [] if body[0].condition is None else [body[0].condition]
    for one in body[0].axis:
        begin, end = one.dom.min, one.dom.min + one.dom.extent
        if any(_is_over(e, body[0].axis) for e in (begin, end)):
            raise PleatError(f"{name}: the range of {one!r} depends on an axis of the same reduction; reduce over "
                             "a larger range, and give a condition, where=…")
        if any(_is_over(e, axis) for e in (begin, end)):
            one.dom = _largest_range(begin, end, axis, f"{name}: the range of {one!r}")
            conditions += [one >= begin] if _is_over(begin, axis) else []
            conditions += [one < Analyzer().simplify(end)] if _is_over(end, axis) else []
    if len(conditions) > (body[0].condition is not None):
        body = [b.with_fields(condition=functions.all(*conditions)) for b in body]
    return body


def _largest_range(begin, end, axis, what):
    """The range from the least begin to the greatest end for all indices; not empty, so that a reduction of nothing
    has its identity."""
    from pleat.arith import Analyzer
    from pleat.arith.int_set import IntervalSet, neg_inf, pos_inf
    domains = {a: IntervalSet(a.dom.min, a.dom.min + a.dom.extent - 1) for a in axis}
    analyzer, least, most = Analyzer(), neg_inf(), pos_inf()
    if not tensors_in([begin, end]):
        least = analyzer.int_set(begin, domains).min_value
        most = analyzer.int_set(end, domains).max_value
    if least is neg_inf() or most is pos_inf():
        raise PleatError(f"{what} depends on an axis, and has no largest one that is known; reduce over a larger "
                         "range, and give a condition, where=…")
    return Range(analyzer.simplify(least), analyzer.simplify(functions.max(most, least + 1)))


def _check_body(body, name):
    if not body:
        raise ValueError(f"{name}: expected at least one value")
    if any(isinstance(b, Reduce) for b in body):
        same = all(isinstance(b, Reduce) and b.source is body[0].source and b.value_index == i
                   for i, b in enumerate(body))
        if not same or len(body) != len(body[0].source):
            raise PleatError(f"{name}: the outputs are not the results of one reduction")
        return

    def visit(node):
        if isinstance(node, Reduce):
            raise PleatError(f"{name}: a reduction is the whole value of a te.compute; make it a "
                             "tensor of its own, and use its elements here")
    for b in body:
        post_order_visit(b, visit)


def extern(shape, inputs, fcompute, name="extern", dtype=None, in_buffers=None, out_buffers=None,
           tag="", attrs=None):
    """Tensors of external code: fcompute(ins, outs) gives a statement, or the value of a call, over
    buffers of the inputs and of the outputs.

    shape: that of the output, or a list of those of several
    dtype: the element types of the outputs; None: that of the inputs"""
    shapes = shape if isinstance(shape, (list, tuple)) else [shape]
    if not shapes or not isinstance(shapes[0], (list, tuple)):
        shapes = [shapes]
    given = {t.dtype for t in inputs}
    if dtype is None and len(given) != 1:
        raise ValueError("the inputs have several element types, or there are none: give dtype")
    dtypes = [dtype or given.pop()] * len(shapes) if not isinstance(dtype, (list, tuple)) else dtype
    ins = list(in_buffers or [nodes.decl_buffer(t.shape, t.dtype, t.op.name) for t in inputs])
    outs = list(out_buffers or [nodes.decl_buffer(as_shape(s), d, name)
                                for s, d in zip(shapes, dtypes)])
    body = fcompute(ins, outs)
    if isinstance(body, PrimExpr):
        body = nodes.Evaluate(body)
    op = ExternOp(name, inputs, ins, outs, body, tag, attrs)
    return op.output(0) if len(outs) == 1 else op._outputs


# ---- Scans -----------------------------------------------------------------------------------------

class ScanOp(Operation):
    """A recurrence: along `scan_axis`, which is the first axis, `update` gives new elements of the
    states from earlier ones, which it reads through the placeholders `states`; `init` has the first
    elements. `body` has the operations of a step, those whose elements depend on earlier ones."""

    def __init__(self, name, init, update, states, inputs, tag="", attrs=None):
        super().__init__(name, tag, attrs)
        self.init, self.update, self.state_placeholder, self.inputs = init, update, states, inputs
        self.input_tensors = [*init, *update]
        first, whole = init[0].shape[0], update[0].shape[0]
        self.scan_axis = IterVar.make(Range(first, whole), f"{name}.idx", ORDERED)
        self._give([t.shape for t in states], [t.dtype for t in states])
        self._check_tensors()
        self.body = self._body()
        for op in self.body:
            self._check_reads(op)

    def _refuse(self, why):
        raise PleatError(f"{self.name}: {why}")

    def _check_tensors(self):
        first, whole = self.init[0].shape[0], self.update[0].shape[0]
        if not isinstance(first, int) or first < 1:
            self._refuse(f"the first extent of init is a number of steps, not {first!r}")
        if isinstance(whole, int) and whole < first:
            self._refuse(f"init has {first} steps, and update {whole}")
        for init, update, state in zip(self.init, self.update, self.state_placeholder):
            if not isinstance(state.op, PlaceholderOp):
                self._refuse(f"the state {state.name} is not a te.placeholder")
            if repr(state.shape) != repr(update.shape) or state.dtype != update.dtype:
                self._refuse(f"the state {state.name} and its update differ in shape or type")
            if repr(init.shape[1:]) != repr(state.shape[1:]) or init.dtype != state.dtype:
                self._refuse(f"the state {state.name} and its init differ in shape or type")
            if init.shape[0] != first or repr(update.shape[0]) != repr(whole):
                self._refuse("the states have different numbers of steps")
            if not isinstance(update.op, ComputeOp):
                self._refuse(f"the update {update.name} is not a te.compute")

    def _body(self):
        states, inside = {t.op for t in self.state_placeholder}, {}

        def is_inside(op):
            if op not in inside:
                found = any([is_inside(t.op) for t in op.input_tensors])  # all: they come before it
                inside[op] = found or op in states
            return inside[op]
        for tensor in self.update:
            is_inside(tensor.op)
        if any(is_inside(tensor.op) for tensor in self.init):
            self._refuse("init reads a state")
        updates = {t.op for t in self.update}
        return [op for op in inside if (inside[op] or op in updates) and op not in states]

    def _check_reads(self, op):
        if not isinstance(op, ComputeOp) or not op.axis:
            self._refuse(f"{op.name} depends on a state, and is not a te.compute with axes")
        if repr(op.axis[0].dom.extent) != repr(as_expression(self.update[0].shape[0])):
            self._refuse(f"the first axis of {op.name}, which depends on a state, is not the steps")

        def visit(node):
            if isinstance(node, TensorLoad):
                step = node.indices[0] if node.indices else None
                if node.producer in self.state_placeholder:
                    self._check_state(op, node, step)
                elif node.producer.op in self.body and step is not op.axis[0]:
                    self._refuse(f"{op.name} reads {node.producer.name} at another step than its own")
        for expression in op.body:
            post_order_visit(expression, visit)

    def _check_state(self, op, node, step):
        """Is a state read at an earlier step, by a constant number of steps?"""
        first, back = self.init[0].shape[0], 0
        if isinstance(step, nodes.Sub) and step.a is op.axis[0] and isinstance(step.b, IntImm):
            back = int(step.b)
        if isinstance(step, IntImm) and 0 <= int(step) < first:
            return
        if not 1 <= back <= first:
            self._refuse(f"{op.name} reads the state {node.producer.name} at {step!r}; a state is read "
                         f"from 1 to {first} steps before {op.axis[0]!r}, or at a step of init")


def scan(init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None):
    """The tensor of a recurrence, or the list of them for lists of states. Its first axis are steps.

    init: the elements of the first steps
    update: the elements of a step, of the shape of the state, from those of earlier steps
    state_placeholder: te.placeholder through which update reads the tensor itself
    inputs: other tensors that update reads, for TVM's sake: they are found without it"""
    lists = [list(one) if isinstance(one, (list, tuple)) else [one]
             for one in (init, update, state_placeholder)]
    if len({len(one) for one in lists}) != 1 or not lists[0]:
        raise ValueError("init, update and state_placeholder have equal lengths of at least 1")
    inputs = [inputs] if isinstance(inputs, Tensor) else list(inputs or [])
    op = ScanOp(name, *lists, inputs, tag, attrs)
    return op.output(0) if op.num_outputs == 1 else op._outputs


# ---- Reductions -----------------------------------------------------------------------------------

class CommReducer:
    """A combination of two values, or tuples of values, which is associative and commutative."""

    def __init__(self, fcombine, fidentity, name):
        self.fcombine, self.fidentity, self.name = fcombine, fidentity, name

    def combined(self, a, b):
        """The combination of two lists of expressions, as a list."""
        result = self.fcombine(*((a, b) if len(a) > 1 else (a[0], b[0])))
        return [as_expression(r, one.dtype) for r, one in
                zip(result if isinstance(result, (list, tuple)) else [result], a)]

    def identity(self, dtypes):
        """The values that change no other one in a combination."""
        result = self.fidentity(*dtypes)
        return [as_expression(r, dtype) for r, dtype in
                zip(result if isinstance(result, (list, tuple)) else [result], dtypes)]

    def _over_axes(self, expr, axis, where=None, init=None):
        return self.reduce(expr, axis, where, init)

    def reduce(self, source, axis, where, init):
        several = isinstance(source, (list, tuple))
        source = [as_expression(s) for s in (source if several else [source])]
        axis = list(axis) if isinstance(axis, (list, tuple)) else [axis]
        for one in axis:
            if not isinstance(one, IterVar) or one.iter_type != REDUCE:
                raise TypeError(f"{self.name}: the axis {one!r} is no te.reduce_axis")
        init = [] if init is None else init if isinstance(init, (list, tuple)) else [init]
        init = [as_expression(i, s.dtype) for i, s in zip(init, source)]
        where = None if where is None else as_expression(where)
        lhs, rhs = ([Var(f"{side}{i}", s.dtype) for i, s in enumerate(source)] for side in "xy")
        combiner = [lhs, rhs, self.combined(lhs, rhs), self.identity([s.dtype for s in source])]
        made = [Reduce(*combiner, source, axis, where, i, init) for i in range(len(source))]
        return tuple(made) if several else made[0]

    def __call__(self, expr, *others, **named):
        """The reduction of expr, or of a tuple of expressions, over axis, which may be a list of axes, with
        where and init; with other operands instead of axes, their combination."""
        is_axis = others and (isinstance(others[0], (list, tuple)) or
                              isinstance(others[0], IterVar) and others[0].iter_type == REDUCE)
        if named or is_axis:
            return self._over_axes(expr, *others, **named)
        operands = [one for one in (expr, *others) if one is not None]
        result = operands[0]
        for one in operands[1:]:
            result = self.fcombine(result, one)
        return result


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reduction from the function that combines two values, and the one that gives its identity
    for an element type. Of several values at once, fcombine takes two tuples and returns one, and
    fidentity takes as many types. The result is called as te.sum is: reducer(expr, axis=k)."""
    return CommReducer(fcombine, fidentity, name)


sum = comm_reducer(lambda x, y: x + y, lambda t: nodes.const(0, t), name="sum")  # noqa: A001
min = comm_reducer(functions.min, functions.max_value, name="min")  # noqa: A001
max = comm_reducer(functions.max, functions.min_value, name="max")  # noqa: A001
