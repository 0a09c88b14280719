# SPDX-License-Identifier: Apache-2.0
"""The state of a schedule with TVM's names: where its blocks and loops stand, and on which others blocks depend."""
import enum

from pleat.tir import stmt_functor
from pleat.tir.block_flags import CachedFlags, flags_of, is_block  # noqa: F401 (TVM has the name here)
from pleat.tir.nodes import Node


class DepKind(enum.IntEnum):
    """How a block depends on an earlier one: it reads or writes again what that writes, or writes what that reads."""
    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


class ScheduleDebugMask(enum.IntFlag):
    """The checks that TVM makes after each step. Pleat proves each step and verifies its result whatever the mask
    says."""
    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class Dependency:
    """A block `dst` that depends on an earlier one, `src`; both are places."""

    def __init__(self, src, dst, kind):
        self.src, self.dst, self.kind = src, dst, kind

    def __repr__(self):
        return f"Dependency({self.src!r}, {self.dst!r}, {self.kind.name})"


class StmtSRef:
    """A block or a loop as a place in a program: `stmt` is the node that stands there now."""

    def __init__(self, state, node_of):
        self._state, self._node_of = state, node_of

    @property
    def stmt(self):
        """The node of the block or loop as it is now; None once ScheduleState.replace has removed it."""
        return self._node_of()

    @property
    def parent(self):
        """The place of the innermost block or loop around this one; None for the outermost."""
        nodes, stmt = self._state._nodes(), self.stmt
        start = next(i for i, node in enumerate(nodes) if node is stmt)
        around = next((node for node in nodes[start + 1:] if any(n is stmt for n in parts_of(node))), None)
        return None if around is None else self._state.get_sref(around)

    def same_as(self, other):
        """Whether both are one block or loop of one schedule."""
        return self._state.owner is other._state.owner and self.stmt is other.stmt

    def __repr__(self):
        stmt = self.stmt
        return f"StmtSRef({getattr(stmt, 'name_hint', None) or stmt.loop_var.name})"


class BlockScope:
    """The blocks of a block that are in no other one inside of it, and their dependences by the buffers that they
    state to read and write."""

    def __init__(self, places):
        self.places = places
        self._dependencies, readers, writers = [], [], []
        for place in places:
            block = place.stmt
            reads, writes = ({region.buffer.data for region in regions} for regions in (block.reads, block.writes))
            for kind, used, before in ((DepKind.RAW, reads, writers), (DepKind.WAW, writes, writers),
                                       (DepKind.WAR, writes, readers)):
                self._dependencies += [Dependency(src, place, kind) for src, buffers in before if used & buffers]
            readers.append((place, reads))
            writers.append((place, writes))

    def get_deps_by_src(self, block):
        """The dependences of later blocks on one."""
        return [d for d in self._dependencies if d.src.same_as(block)]

    def get_deps_by_dst(self, block):
        """The dependences of a block on earlier ones."""
        return [d for d in self._dependencies if d.dst.same_as(block)]

    def has_kind(self, name):
        """Is a dependence of this kind among them?"""
        return any(d.kind.name == name for d in self._dependencies)


class ScheduleState:
    """A program, or that of a schedule as it is now, by its blocks and loops. The steps of a schedule change it, and
    `replace` does."""

    def __init__(self, mod, *, debug_mask="none", enable_check=True):
        from pleat.tir.schedule import Schedule
        self.debug_mask, self.enable_check = debug_mask, enable_check
        self.owner = mod if isinstance(mod, Schedule) else Schedule(mod)

    @property
    def mod(self):
        """The module as it is scheduled so far."""
        return self.owner.mod

    def _nodes(self):
        return self.owner._current_nodes(self.owner._name)

    def get_sref(self, stmt):
        """The place of a block or loop, a node of the program as it is now."""
        if not any(stmt is node for node in self._nodes()):
            raise IndexError("the statement is no block or loop of the program as it is now; "
                             "Schedule.get gives the node of one")
        return StmtSRef(self, lambda: self.owner._moved(stmt))

    def replace(self, src_sref, tgt_stmt, block_sref_reuse=None):
        """Replaces a block by another one, or a loop by a loop or a block. Not proved is that the new statement
        computes the same: the program is verified as a new one is, and the trace begins with it, so that blocks and
        loops which steps returned before cannot be used any more. The places of loops and blocks that stay in the
        program remain, and so do those of a loop with the same variable and of the blocks in `block_sref_reuse`, a
        dictionary from old to new ones. PleatError for a program that is not well formed, which changes nothing."""
        old = self.get_sref(src_sref.stmt).stmt
        kinds = ("Block",) if is_block(old) else ("For", "BlockRealize")
        if not isinstance(tgt_stmt, Node) or tgt_stmt.kind_name not in kinds:
            raise TypeError(f"a {type(old).__name__} is replaced by a {' or a '.join(kinds)}, not by {tgt_stmt!r}")
        function = self.owner.func
        body, new_of = stmt_functor.replaced(function.body, old, tgt_stmt)
        new_of.pop(id(old))
        nodes = parts_of(body)
        variables = {node.loop_var: node for node in nodes if hasattr(node, "loop_var")}
        reused = {id(before): after for before, after in (block_sref_reuse or {}).items()}
        stays = {id(node) for node in nodes}

        def counterpart(node):
            made = reused.get(id(node)) or new_of.get(id(node)) or node
            return made if id(made) in stays else variables.get(getattr(node, "loop_var", None))
        places = {id(node): (node, counterpart(node)) for node in self._nodes()}
        self.owner._restart(function.with_body(body), places, body)

    def get_sblock_scope(self, block_sref):
        """The blocks directly inside of a block, and how they depend on one another."""
        return BlockScope([self.get_sref(node) for node in blocks_inside(block_sref.stmt)])

    get_block_scope = get_sblock_scope

    def _get_cached_flags(self, block_sref):
        """The properties that TVM keeps of a block, computed for the program as it is now."""
        nodes = self._nodes()
        return flags_of(nodes[-1], block_sref.stmt, lambda block: self.get_sblock_scope(self.get_sref(block)))

    def __getattr__(self, name):
        raise AttributeError(f"a schedule has no state '{name}': each step proves what it needs from the program")


def parts_of(node):
    """The nodes inside of a statement and itself."""
    parts = []
    stmt_functor.post_order_visit(node, parts.append)
    return parts


def blocks_inside(block):
    """The blocks inside of a block that are in no other block there, in their order."""
    blocks = [node for part in (block.init, block.body) if part is not None
              for node in parts_of(part) if is_block(node)]
    inner = {id(node) for outer in blocks for node in parts_of(outer.body) if node is not outer}
    return [node for node in blocks if id(node) not in inner]
