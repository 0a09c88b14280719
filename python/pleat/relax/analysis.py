# SPDX-License-Identifier: Apache-2.0
"""Analyses of programs that graphs call, with TVM's names."""
import json

from pleat._library import _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.tir.index_map import IndexMap

__all__ = ["get_var2val", "suggest_layout_transforms"]


def get_var2val(func):
    """The values of the variables of a graph function."""
    return {one.var: one.value for block in func.body.blocks for one in block.bindings}


def _suggested(func, write_buffer_transforms):
    """The answer of the library (pleat_module_suggest_layouts) as a dictionary."""
    maps = [one if isinstance(one, IndexMap) else IndexMap.from_func(one)
            for one in write_buffer_transforms]
    texts = [ffi.new("char[]", str(one).encode()) for one in maps]
    json_text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
    status = _lib.pleat_module_suggest_layouts(func._handle, ffi.NULL, ffi.new("char *[]", texts),
                                               len(texts), json_text, messages)
    check_status(status, messages)
    return json.loads(_owned_text(json_text[0]))


def suggest_layout_transforms(func, write_buffer_transforms):
    """The index maps of blocks and buffers of a tensor program when its last parameters have the
    layouts write_buffer_transforms (functions or IndexMaps): {name of a block: (IndexMap of its
    variables, {name of a buffer that it reads or writes: IndexMap})}. They follow from the access
    relations of the blocks; buffers that do not follow, or stay as they are, have no entry, and a
    block that stays has None. TVM's keys are the blocks and buffers themselves."""
    from pleat.tir.nodes import BlockRealize
    from pleat.tir.stmt_functor import post_order_visit
    found, blocks = _suggested(func, write_buffer_transforms), []
    post_order_visit(func.body, lambda node: blocks.append(node.block)
                     if isinstance(node, BlockRealize) else None)
    result = {}
    for block in blocks:
        name = block.name_hint
        maps = {region.buffer.name: _from_lambda(found["buffers"][region.buffer.name])
                for region in [*block.reads, *block.writes]
                if region.buffer.name in found["buffers"]}
        if maps:
            own = found["blocks"].get(name)
            result[name] = own and _from_lambda(own), maps
    return result


def _from_lambda(text):
    """The IndexMap of the text `lambda i, j: [j, i]`."""
    names, _, outputs = text.removeprefix("lambda ").partition(":")
    return IndexMap.parse(f"{names} -> {outputs.strip()[1:-1]}")
