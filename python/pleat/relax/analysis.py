# SPDX-License-Identifier: Apache-2.0
"""Analyses of programs that graphs call, with TVM's names."""
import json

from pleat._library import _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.tir.index_map import IndexMap

__all__ = ["all_vars", "bound_vars", "free_vars", "get_var2val", "name_to_binding", "post_order_visit",
           "suggest_layout_transforms", "well_formed"]


def post_order_visit(expr, fvisit):
    """Calls fvisit with an expression, or function, and all in it, each once and after its parts."""
    from pleat.relax.nodes import post_order_visit as visit
    visit(expr, fvisit)


def _variables(expr):
    from pleat.relax.expr import Var
    found = {}
    post_order_visit(expr, lambda one: found.setdefault(one) if isinstance(one, Var) else None)
    return list(found)


def all_vars(expr):
    """The variables in an expression or a function."""
    return _variables(expr)


def bound_vars(expr):
    """The parameters and the variables of bindings of a function."""
    return [*expr.params, *get_var2val(expr)]


def free_vars(expr):
    """The variables in an expression that nothing in it defines; a function has none."""
    from pleat.script._values import Value
    own = set() if isinstance(expr, Value) else {one.name_hint for one in bound_vars(expr)}
    return [one for one in _variables(expr) if one.name_hint not in own]


def name_to_binding(func):
    """The bindings of a function by the names of their variables, as lists."""
    found = {}
    for block in func.body.blocks:
        for one in block.bindings:
            found.setdefault(one.var.name_hint, []).append(one)
    return found


def well_formed(obj, check_ty=True):
    """True: modules and functions that are not well formed are refused when they are made."""
    return True


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
