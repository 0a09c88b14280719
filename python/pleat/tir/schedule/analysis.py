# SPDX-License-Identifier: Apache-2.0
"""Questions about blocks and layouts with TVM's names: how the loops of a block correspond to those of an intrinsic's
description, and which layout suits an access.

Two blocks are compared by their accesses: the stored element first, then the elements that the value loads, in their
order. A correspondence of loops is no proof; the step tensorize proves that the block is the description."""
import dataclasses
import itertools

from pleat._expression import var
from pleat.arith import Analyzer, detect_iter_map
from pleat.tir import nodes, stmt_functor
from pleat.tir.index_map import IndexMap


@dataclasses.dataclass
class TensorizeInfo:
    """The loops of a block by those of a description: {place of a loop: loop of the description}. Where extents are
    no multiples and may be padded, block_iter_paddings has for each variable of the block the number of which its
    extent must become a multiple."""
    loop_map: dict
    desc_loop_indexer: dict
    block_iter_paddings: list | None


@dataclasses.dataclass
class AutoTensorizeMappingInfo:
    """Maps of the variables of a block to axes that correspond to those of a description."""
    mappings: list
    lhs_iters: list
    rhs_iters: list


def _visited(node, kind):
    found = []
    stmt_functor.pre_order_visit(node, lambda one: (isinstance(one, kind) and found.append(one), True)[1])
    return found


def _innermost_block(description):
    """The realization of the block of a description that has no other block inside, and the loops around it."""
    loops, realize = [], description.body
    while (inner := _visited(realize.block.body, nodes.KINDS["BlockRealize"])):
        loops += _visited(realize.block.body, nodes.KINDS["For"])
        realize = inner[0]
    return realize, loops


def _accesses(block):
    """The indices of the stored element and of the loaded ones, in order of the text, as simple as the domains of the
    block's variables allow; those of the stored element stand once."""
    store, analyzer = block.body, Analyzer()
    if not isinstance(store, nodes.KINDS["BufferStore"]):
        return None
    for iter_var in block.iter_vars:
        if _extent(iter_var) != 1:  # a variable that is always 0 still belongs to an axis
            analyzer.bind(iter_var.var, iter_var.dom)
    loads = [load.indices for load in _visited(store.value, nodes.BufferLoad) if load.buffer is not store.buffer]
    return [[analyzer.simplify(index) for index in indices] for indices in (store.indices, *loads)]


def _used(indices, variables):
    """The numbers of the variables that occur in an access."""
    found = [one for index in indices for one in _visited(index, nodes.Var)]
    return {k for k, own in enumerate(variables) if any(own is one for one in found)}


def _signatures(block):
    """For each variable of a block: its kind, and for each access whether it occurs there. None where the block
    does not store one value."""
    accesses = _accesses(block)
    if accesses is None:
        return None
    uses = [_used(indices, [iter_var.var for iter_var in block.iter_vars]) for indices in accesses]
    return [(int(iter_var.iter_type), tuple(k in used for used in uses))
            for k, iter_var in enumerate(block.iter_vars)]


def _extent(iter_var):
    return iter_var.dom.extent.value if isinstance(iter_var.dom.extent, nodes.KINDS["IntImm"]) else None


def _corresponding(block, desc, may_pad):
    """For each variable of the description the number of one of the block, found from the last ones on; None where
    there is none."""
    theirs, own = _signatures(block), _signatures(desc)
    if theirs is None or own is None:
        return None
    found, taken = {}, set()
    for k in reversed(range(len(own))):
        extent = _extent(desc.iter_vars[k])
        fits = [j for j in reversed(range(len(theirs))) if j not in taken and theirs[j] == own[k] and
                (may_pad or (_extent(block.iter_vars[j]) or 1) % extent == 0)]
        if not fits or _extent(block.iter_vars[fits[0]]) is None:
            return None
        found[k] = fits[0]
        taken.add(fits[0])
    return [found[k] for k in range(len(own))]


def _loops_by_variable(sch, block_rv, realize):
    """The loop whose variable each variable of the block is; None for another binding."""
    loops = [sch.get_sref(loop) for loop in sch.get_loops(block_rv)]
    return [next((place for place in loops if place.stmt.loop_var is value), None) for value in realize]


def _bindings(sch, block_rv):
    block = sch.get(block_rv)
    realizes = _visited(sch.mod[sch.func_working_on].body, nodes.KINDS["BlockRealize"])
    return next(one.iter_values for one in realizes if one.block is block or one.block.same_as(block))


def get_tensorize_loop_mapping(sch, block, desc_func, allow_padding=False):
    """Finds the loops of a block that correspond to the loops of a description, or gives None."""
    target, (desc_realize, desc_loops) = sch.get(block), _innermost_block(desc_func)
    desc = desc_realize.block
    found = _corresponding(target, desc, allow_padding)
    if found is None:
        return None
    loops = _loops_by_variable(sch, block, _bindings(sch, block))
    own = [next((loop for loop in desc_loops if loop.loop_var is value), None) for value in desc_realize.iter_values]
    if None in own or any(loops[j] is None for j in found):
        return None
    paddings = [1] * len(target.iter_vars)
    for k, j in enumerate(found):
        extent = _extent(desc.iter_vars[k])
        if _extent(target.iter_vars[j]) % extent:
            paddings[j] = extent
    return TensorizeInfo({loops[j]: own[k] for k, j in enumerate(found)},
                         {loop: k for k, loop in enumerate(desc_loops)}, paddings if max(paddings) > 1 else None)


def get_auto_tensorize_mapping_info(sch, block, desc_func):
    """Finds a map of the variables of a block after which it has the axes of a description, or gives None: variables
    that occur in the same accesses become one axis, and those that occur in all accesses come first."""
    target, (desc_realize, _) = sch.get(block), _innermost_block(desc_func)
    desc = desc_realize.block
    theirs, own = _signatures(target), _signatures(desc)
    if theirs is None or own is None or len(set(own)) < len(own) or len(theirs[0][1]) != len(own[0][1]):
        return None
    rest = [signature for signature in theirs if signature not in own]
    if not set(own) <= set(theirs) or any(not all(uses) for _, uses in rest):
        return None
    names = [nodes.Var(iter_var.var.name, "int32") for iter_var in target.iter_vars]
    axes = [name for name, signature in zip(names, theirs) if signature in rest]
    for signature in own:
        fused = 0
        for name, iter_var, one in zip(names, target.iter_vars, theirs):
            if one == signature:
                fused = fused * _extent(iter_var) + name
        axes.append(fused)
    mapped = IndexMap([name.name for name in names], [axis.index_expression() for axis in axes])
    return AutoTensorizeMappingInfo([mapped], [one.var for one in target.iter_vars], [one.var for one in desc.iter_vars])


def suggest_index_map(buffer, indices, loops, predicate=True):
    """A layout that stores the elements of an access in the order of the loops around it: each axis of the buffer is
    divided into the digits that its index consists of. None where an index is no sum of digits of the loops."""
    domains = {loop.loop_var: nodes.Range.from_min_extent(0, loop.extent) for loop in loops}
    order = {id(loop.loop_var): k for k, loop in enumerate(loops)}
    digits = []
    for axis, index in enumerate(indices):
        sums = detect_iter_map([index], domains, predicate, check_level="NoCheck").indices
        if not sums:
            return None
        for split in _flat_splits(sums[0]):
            loop = order.get(id(split.source.source))
            if loop is None:
                return None
            digits.append((loop, -split.lower_factor.value, axis, split.scale.value, split.extent.value))
    digits.sort(key=lambda digit: digit[:2])
    names = [f"i{k}" for k in range(len(buffer.shape))]
    axes = [var(name) for name in names]
    found = []
    for _, _, axis, scale, extent in digits:
        last = scale * extent >= buffer.shape[axis].value
        digit = axes[axis] // scale if scale > 1 else axes[axis]
        found.append(digit if last else digit % extent)
    covered = all(_covers([(scale, extent) for _, _, own, scale, extent in digits if own == axis], size.value)
                  for axis, size in enumerate(buffer.shape))
    return IndexMap(names, found) if covered else None


def _flat_splits(total):
    """The digits of a sum, with scales that count elements; those of a sum inside are multiplied by its own scale."""
    for split in total.args:
        inner = split.source.source
        if not hasattr(inner, "args"):
            yield split
            continue
        for one in _flat_splits(inner):
            yield type(one)(one.source, one.lower_factor, one.extent, nodes.const(
                one.scale.value * split.scale.value, one.scale.dtype))


def _covers(digits, size):
    """Do the digits, pairs of scale and extent, take each number below the size exactly once?"""
    below = 1
    for scale, extent in sorted(digits):
        if scale != below:
            return False
        below *= extent
    return below >= size


def has_block(sch, block_name):
    """Has the function a block of this name?"""
    return any(block.name_hint == block_name for block in
               _visited(sch.mod[sch.func_working_on].body, nodes.KINDS["Block"]))


def is_output_block(sch, block):
    """Does the block write a buffer of the caller?"""
    function = sch.mod[sch.func_working_on]
    buffers = list(function.buffer_map.values())
    return any(region.buffer is one or region.buffer.data is one.data
               for region, one in itertools.product(sch.get(block).writes, buffers))
