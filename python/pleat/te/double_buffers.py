# SPDX-License-Identifier: Apache-2.0
"""The attribute double_buffer_scope around the loops that fill a buffer:

    for i in range(8):
        for j in range(4):
            with T.block("B"):
                T.block_attr({"double_buffer_scope": 0})
                B[j] = A[i, j]
        C[i] = B[0] + B[3]

becomes

    for i in range(8):
        with T.attr(B.data, "double_buffer_scope", 1):
            for j in range(4):
                with T.block("B"):
                    B[j] = A[i, j]
        C[i] = B[0] + B[3]
"""
from pleat._library import PleatError
from pleat.ir.transform import run_passes
from pleat.tir import nodes
from pleat.tir.nodes import const, one_statement
from pleat.tir.stmt_functor import ir_transform, pre_order_visit

KEY = "double_buffer_scope"


def _uses(statement, name):
    """(fills, reads): do blocks write the buffer, and do blocks that do not write it read it?"""
    found = [False, False]

    def visit(node):
        if isinstance(node, nodes.Block) and not _blocks(node.body):
            fills = any(r.buffer.name == name for r in node.writes)
            found[0] |= fills
            found[1] |= not fills and any(r.buffer.name == name for r in node.reads)
    pre_order_visit(statement, visit)
    return found


def _blocks(statement):
    found = []

    def visit(node):
        if isinstance(node, nodes.Block):
            found.append(node)
    pre_order_visit(statement, visit)
    return found


def _wrapped(statement, buffer):
    """The statement with the attribute around the parts that fill the buffer and do not use it."""
    fills, reads = _uses(statement, buffer.name)
    if fills and not reads:
        return nodes.AttrStmt(buffer.data, KEY, const(1), statement)
    if isinstance(statement, nodes.SeqStmt):
        return _wrapped_in_sequence(list(statement.seq), buffer)
    for part in ("block", "body", "then_case"):
        inner = statement.fields.get(part)
        if inner is not None and _uses(inner, buffer.name)[0]:
            return statement.with_fields(**{part: _wrapped(inner, buffer)})
    raise PleatError(f"{buffer.name}: nothing fills it")


def _wrapped_in_sequence(parts, buffer):
    uses = [_uses(part, buffer.name) for part in parts]
    filling = [i for i, (fills, _) in enumerate(uses) if fills]
    first, last = filling[0], filling[-1]
    if len(filling) == 1:
        parts[first] = _wrapped(parts[first], buffer)
    elif any(reads for _, reads in uses[first:last + 1]) or len(filling) <= last - first:
        raise PleatError(f"{buffer.name} is filled in several places between other statements, so "
                         "it cannot be filled ahead of its use")
    else:
        parts[first:last + 1] = [_wrapped(one_statement(parts[first:last + 1]), buffer)]
    return one_statement(parts)


def _without_key(node):
    """A block without the annotation."""
    rest = {key: value for key, value in node.annotations.items() if key != KEY}
    return node.with_fields(annotations=rest) if KEY in node.annotations else None


def with_double_buffers(module):
    """The module with the attribute in place of the annotation of blocks, which has the number of a
    buffer among those that the block writes."""
    for name, func in module.functions.items():
        marked = [b for b in _blocks(func.body) if KEY in b.annotations]
        if not marked:
            continue
        buffers = {}
        for block in marked:
            buffer = block.writes[int(block.annotations[KEY])].buffer
            buffers[buffer.name] = buffer
        body = ir_transform(func.body, None, _without_key, ["tir.Block"])
        for buffer in buffers.values():
            body = _wrapped(body, buffer)
        module[name] = func.with_body(body)
    return module


def filled_ahead(module):
    """The module in which buffers with the attribute are filled one iteration ahead; the module
    itself where there is none."""
    found = []
    for func in module.functions.values():
        pre_order_visit(func.body, lambda node: found.append(node) if (
            isinstance(node, nodes.AttrStmt) and node.attr_key == KEY) else None)
    passes = "convert_blocks,simplify_loops,compact_buffers,inject_double_buffers"
    return run_passes(module, passes) if found else module
