# SPDX-License-Identifier: Apache-2.0
"""The regions that blocks access, and the loops and blocks that all accesses of a buffer share."""
from pleat.arith import Analyzer
from pleat.arith.int_set import IntervalSet
from pleat.ir._module import PrimFunc
from pleat.tir import nodes, op
from pleat.tir.nodes import KINDS
from pleat.tir.stmt_functor import _children, post_order_visit, substitute

REDUCTION, DATA_PARALLEL = 2, 0  # kinds of variables of blocks


class _Regions:
    """The boxes of the accesses below a statement, over the loops inside of it."""

    def __init__(self, owners):
        self.analyzer, self.loops, self.lets = Analyzer(), {}, {}
        self.reads, self.writes, self.opaque = {}, {}, {}
        self.owners, self.known, self.matches = owners, set(owners.values()), {}

    def add(self, found, buffer, ends):
        if buffer in self.matches:
            source = self.matches[buffer]
            buffer, ends = source.buffer, self.moved(source.region, ends)
        if buffer not in self.known:
            return
        sets = [self.interval(low, high) for low, high in ends]
        if buffer in found:
            sets = [(op.min(a, c), op.max(b, d)) for (a, b), (c, d) in zip(found[buffer], sets)]
        found[buffer] = [(self.analyzer.simplify(low), self.analyzer.simplify(high)) for low, high in sets]

    def moved(self, region, ends):
        """The part of a region that a part of a view of it is; axes that the view lacks have one element."""
        missing = len(region) - len(ends)
        return [(one.min, one.min + one.extent - 1) for one in region[:missing]] + \
            [(one.min + low, one.min + high) for one, (low, high) in zip(region[missing:], ends)]

    def interval(self, low, high):
        from pleat.arith import int_set
        first, last = (self.analyzer.int_set(substitute(one, self.lets), self.loops) for one in (low, high))
        if first.min_value is int_set.neg_inf() or last.max_value is int_set.pos_inf():
            raise ValueError(f"the values of {low!r} to {high!r} have no known bounds")
        return first.min_value, last.max_value

    def access(self, found, buffer, indices):
        ends = []
        for index in indices:
            ramp = isinstance(index, KINDS["Ramp"])
            ends.append((index.base, index.base + index.stride * (index.lanes - 1)) if ramp else (index, index))
        self.add(found, buffer, ends)

    def whole(self, buffer):
        return [(nodes.const(0, extent.dtype), extent - 1) for extent in buffer.shape]

    def visit(self, node):
        if isinstance(node, nodes.Buffer):
            return
        kind = type(node).__name__
        if kind == "BlockRealize":
            self.inner(node)
            return
        if kind in ("Let", "LetStmt") and node.value.dtype != "handle":
            self.visit(node.value)
            self.lets[node.var] = substitute(node.value, self.lets)
            self.visit(node.body)
            return
        if kind == "For":
            last = node.min + node.extent - 1
            self.loops[node.loop_var] = IntervalSet(*self.interval(node.min, last))
        if kind == "BufferLoad":
            self.access(self.reads, node.buffer, node.indices)
        if kind == "BufferStore":
            self.access(self.writes, node.buffer, node.indices)
        if isinstance(node, nodes.Var) and node in self.owners:
            self.add(self.opaque, self.owners[node], self.whole(self.owners[node]))
        children = _children(node)
        if kind == "Call" and node.op == "tir.tvm_access_ptr" and node.args[1] in self.owners:
            buffer, mask = self.owners[node.args[1]], node.args[4]
            for bit, found in ((1, self.reads), (2, self.writes)):
                if int(mask) & bit:
                    self.add(found, buffer, self.whole(buffer))
            children = node.args[2:4]
        for child in children:
            self.visit(child)

    def inner(self, node):
        """A block inside: the regions that it states, for the values of its variables."""
        values = {one.var: value for one, value in zip(node.block.iter_vars, node.iter_values)}
        for found, regions in ((self.reads, node.block.reads), (self.writes, node.block.writes)):
            for region in regions:
                ends = [(substitute(one.min, values), substitute(one.min + one.extent - 1, values))
                        for one in region.region]
                self.add(found, region.buffer, ends)


def _regions_of(found):
    def extent(low, high):
        return Analyzer().simplify(high - low + 1)
    return [KINDS["BufferRegion"](buffer, [nodes.Range.from_min_extent(low, extent(low, high))
                                           for low, high in ends]) for buffer, ends in found.items()]


def get_block_access_region(block, buffer_var_map):
    """The regions that a block reads, writes, and accesses through pointers: three lists of BufferRegion.
    A reduction with an init does not read its result. buffer_var_map: the buffers outside of the block that
    count, by their data variables, or by themselves."""
    buffers = [getattr(one, "buffer", None) or one for one in buffer_var_map.values()]
    found = _Regions({buffer.data: buffer for buffer in buffers})
    found.matches = {one.buffer: one.source for one in block.match_buffers}
    if block.init is not None:
        found.visit(block.init)
    found.visit(block.body)
    if block.init is not None:
        found.reads = {buffer: ends for buffer, ends in found.reads.items() if buffer not in found.writes}
    return [_regions_of(part) for part in (found.reads, found.writes, found.opaque)]


def get_block_read_write_region(block, buffer_var_map):
    """The regions that the body of a block reads and writes; what it accesses through pointers is in both."""
    reads, writes, opaque = get_block_access_region(block, buffer_var_map)
    return [reads + opaque, writes + opaque]


get_sblock_access_region, get_sblock_read_write_region = get_block_access_region, get_block_read_write_region


# ---- The loops and blocks around accesses ----------------------------------------------------------

class _Places:
    """The innermost loop or block around all accesses of each buffer: a path of these from the outside in."""

    def __init__(self, function):
        self.path, self.found, self.blocks = [], {}, []
        self.owners = {buffer.data: buffer for buffer in function.buffer_map.values()}
        self.views = set()

    def note(self, buffer, path):
        if buffer not in self.views:
            known = self.found.get(buffer, path)
            self.found[buffer] = [a for a, b in zip(known, path) if a is b]

    def visit(self, node):
        if isinstance(node, nodes.Buffer):
            return
        kind = type(node).__name__
        if kind in ("BufferLoad", "BufferStore"):
            self.note(node.buffer, self.path)
        if isinstance(node, nodes.Var) and node in self.owners:
            self.note(self.owners[node], self.path)
        if kind == "For":
            self.loop(node)
        elif kind == "BlockRealize":
            self.block(node)
        else:
            thread = node.node.thread_tag if getattr(node, "attr_key", "") == "thread_extent" else ""
            if thread.startswith("blockIdx"):
                self.blocks.append(list(self.path))
            for child in _children(node):
                self.visit(child)

    def loop(self, node):
        self.path.append(node)
        if node.thread_binding is not None and node.thread_binding.thread_tag.startswith("blockIdx"):
            self.blocks.append(list(self.path))
        for part in (node.min, node.extent, node.body):
            self.visit(part)
        self.path.pop()

    def block(self, node):
        block = node.block
        self.owners.update((buffer.data, buffer) for buffer in block.alloc_buffers)
        for value in (*node.iter_values, node.predicate):
            self.visit(value)
        self.carried(node)
        self.path.append(block)
        for match in block.match_buffers:
            self.note(match.source.buffer, self.path)
            self.views.add(match.buffer)
        for part in filter(None, (block.init, block.body)):
            self.visit(part)
        self.path.pop()

    def carried(self, node):
        """Notes accesses of what one iteration hands to the next, which are outside of the loops in between:
        results of reductions, and regions that a variable of another kind than data-parallel is in."""
        block = node.block
        outer = {one.var: (int(one.iter_type), self.outside(value))
                 for one, value in zip(block.iter_vars, node.iter_values)
                 if int(one.iter_type) != DATA_PARALLEL}
        reductions = [path for kind, path in outer.values() if kind == REDUCTION]
        opaque = {var: path for var, (kind, path) in outer.items() if kind != REDUCTION}
        for region in block.writes:
            for path in (*reductions, *opaque.values()):
                self.note(region.buffer, path)
        for region in block.reads:
            used = _variables([one.min for one in region.region] + [one.extent for one in region.region])
            for var in used & opaque.keys():
                self.note(region.buffer, opaque[var])

    def outside(self, value):
        """The path up to the first loop on whose variable a value depends."""
        used = _variables([value])
        for i, place in enumerate(self.path):
            if getattr(place, "loop_var", None) in used:
                return self.path[:i]
        return list(self.path)


def _variables(expressions):
    found = set()
    for one in expressions:
        post_order_visit(one, lambda part: found.add(part) if isinstance(part, nodes.Var) else None)
    return found


def detect_buffer_access_lca(func):
    """For each buffer of a PrimFunc that is accessed, the innermost For or Block that has all its accesses;
    None is the whole function. What iterations hand to one another is outside of their loops, and global
    memory outside of loops over blockIdx."""
    if not isinstance(func, PrimFunc):
        raise TypeError(f"expected a PrimFunc, not {type(func).__name__}")
    places = _Places(func)
    places.visit(func.body)
    for buffer in [one for one in places.found if one.scope() == "global"]:
        for path in places.blocks:
            places.note(buffer, path)
    return _ByBuffer((buffer, path[-1] if path else None) for buffer, path in places.found.items())


class _ByBuffer(dict):
    """By buffers, and by the parameters that stand for them."""

    def __missing__(self, key):
        buffer = getattr(key, "buffer", None)
        if buffer is None or buffer not in self:
            raise KeyError(key)
        return self[buffer]
