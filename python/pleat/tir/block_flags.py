# SPDX-License-Identifier: Apache-2.0
"""The properties of a block that TVM's steps ask for before they change it: whether its bindings are affine, whether
earlier blocks write all that it reads, and whether its own blocks run one behind the other."""
import typing

from pleat.tir import stmt_functor
from pleat.tir.nodes import KINDS, Range


class CachedFlags(typing.NamedTuple):
    """Three properties of a block.

    affine_binding: its variables are bound to splits and fusions of its loops.
    region_cover: the blocks around it in the same block write all that it reads of their results, before it.
    stage_pipeline: none of the blocks in it writes what an earlier one reads, and region_cover holds for them."""
    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


def _is_loop(node):
    return hasattr(node, "loop_var")


def is_block(node):
    """Is the node a block?"""
    return hasattr(node, "name_hint") and hasattr(node, "iter_vars")


class _Tree:
    """The loops and blocks around each loop and block of a statement, and the realization of each block."""

    def __init__(self, root):
        self.around, self.realize = {}, {}
        self._add(root, ())

    def _add(self, node, around):
        if _is_loop(node) or is_block(node):
            self.around[id(node)] = around
            around = (*around, node)
        elif hasattr(node, "iter_values"):
            self.realize[id(node.block)] = node
        for part in stmt_functor._children(node):
            self._add(part, around)

    def loops(self, block):
        """The loops around a block inside of the next block around it, from the outermost."""
        loops = []
        for node in reversed(self.around[id(block)]):
            if not _is_loop(node):
                break
            loops.insert(0, node)
        return loops


def _domain(loops):
    return {loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in loops}


def _is_affine(tree, block):
    from pleat import arith
    realize = tree.realize.get(id(block))
    if realize is None or not block.iter_vars:
        return not block.iter_vars
    found = arith.detect_iter_map(realize.iter_values, _domain(tree.loops(block)), realize.predicate)
    return bool(found.indices) and all(not one.args or one.args[0].scale == 1 for one in found.indices)


def _shares(loop, buffer):
    """Do the threads that a loop starts share the memory of the buffer?"""
    tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else ""
    kind = buffer.storage_scope.partition(".")[0]
    return tag.startswith({"global": ("blockIdx", "threadIdx"), "shared": "threadIdx", "warp": "threadIdx.x"}.get(kind, "-"))


def _boxes(tree, block, regions, lca, estimate):
    """(buffer, intervals or None) of the regions of a block while the loops around it run that are inside of `lca`,
    and those outside of it over threads that share the buffer."""
    around = [node for node in tree.around[id(block)] if _is_loop(node) or node is lca]
    outside = [k for k, node in enumerate(around) if node is lca][0] + 1
    realize = tree.realize[id(block)]
    values = dict(zip((v.var for v in block.iter_vars), realize.iter_values))
    for region in regions:
        ranges = [Range.from_min_extent(stmt_functor.substitute(r.min, values), stmt_functor.substitute(r.extent, values))
                  for r in region.region]
        threads = [loop for loop in around[:outside] if _is_loop(loop) and _shares(loop, region.buffer)]
        yield region.buffer, estimate(ranges, _domain(threads + around[outside:]), realize.predicate)


class _Cover:
    """Compares the boxes that blocks of one block write and read; the loops around have their ranges."""

    def __init__(self, tree, outside):
        from pleat import arith
        self.tree, self.arith, self.analyzer = tree, arith, arith.Analyzer()
        for loop in outside:
            self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent))

    def _is_least(self, a, b):
        return self.analyzer.can_prove(a <= b)

    def _is_within(self, box, other):
        return all(self._is_least(b.min_value, a.min_value) and self._is_least(a.max_value, b.max_value)
                   for a, b in zip(box, other))

    def _merged(self, a, b):
        """The box that has all elements of two boxes and no others; None: there is none, or it is not proved."""
        apart = [k for k, (x, y) in enumerate(zip(a, b)) if not (self._is_within([x], [y]) and self._is_within([y], [x]))]
        if len(apart) != 1:
            return a if not apart else None
        (k,) = apart
        first, last = (a[k], b[k]) if self._is_least(a[k].min_value, b[k].min_value) else (b[k], a[k])
        if not self._is_least(first.min_value, last.min_value) or \
                not self._is_least(last.min_value, first.max_value + 1):
            return None
        end = last.max_value if self._is_least(first.max_value, last.max_value) else first.max_value
        return [*a[:k], self.arith.IntervalSet(first.min_value, end), *a[k + 1:]]

    def _union(self, boxes):
        """The boxes with those replaced that are parts of a larger one together."""
        done = []
        for box in boxes:
            for other in list(done):
                merged = self._merged(box, other)
                if merged is not None:
                    done.remove(other)
                    box = merged
            done.append(box)
        return done

    def _clipped(self, box, shape):
        return [self.arith.IntervalSet(self.analyzer.simplify(KINDS["Max"](one.min_value, 0)),
                                       self.analyzer.simplify(KINDS["Min"](one.max_value, extent - 1)))
                for one, extent in zip(box, shape)]

    def holds(self, block, producers, lca):
        """Do these blocks write all that the block reads of their buffers while the loops below `lca` run?"""
        written = {}
        for producer in producers:
            for buffer, box in _boxes(self.tree, producer, producer.writes, lca,
                                      self.arith.estimate_region_lower_bound):
                written.setdefault(id(buffer.data), []).append(box)
        for buffer, box in _boxes(self.tree, block, block.reads, lca,
                                  self.arith.estimate_region_upper_bound):
            made = written.get(id(buffer.data))
            if made is None:
                continue
            box = self._clipped(box, buffer.shape)
            if not any(self._is_within(box, one) for one in self._union([one for one in made if one is not None])):
                return False
        return True


def _innermost_shared(tree, a, b):
    """The innermost loop or block that is around both."""
    shared = [x for x, y in zip(tree.around[id(a)], tree.around[id(b)]) if x is y]
    return shared[-1]


def _is_covered(tree, block, producers):
    by_place = {}
    for producer in producers:
        place = _innermost_shared(tree, block, producer)
        by_place.setdefault(id(place), (place, []))[1].append(producer)
    return all(_Cover(tree, [n for n in (*tree.around[id(place)], place) if _is_loop(n)]).holds(block, made, place)
               for place, made in by_place.values())


def flags_of(root, block, scope_of):
    """The CachedFlags of a block below `root`; scope_of(block) gives the dependences of the blocks inside of one."""
    tree = _Tree(root)

    def covered(inner, scope):
        sources = [d.src.stmt for d in scope.get_deps_by_dst(inner) if d.kind.name == "RAW"]
        return _is_covered(tree, inner.stmt, sources)

    outer = next((node for node in reversed(tree.around[id(block)]) if is_block(node)), None)
    region_cover = True
    if outer is not None:
        scope = scope_of(outer)
        region_cover = next(covered(one, scope) for one in scope.places if one.stmt is block)
    own = scope_of(block)
    stage_pipeline = not own.has_kind("WAR") and all(covered(one, own) for one in own.places)
    return CachedFlags(_is_affine(tree, block), region_cover, stage_pipeline)
