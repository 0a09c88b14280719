# SPDX-License-Identifier: Apache-2.0
"""Questions about tensor programs, with TVM's names."""
import json

from pleat._library import PleatError, _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.ir._module import PrimFunc
from pleat.tir.nodes import (BlockRealize, Buffer, For, IterVar, Let, LetStmt, Var,
                             nodes_equal)
from pleat.tir.stmt_functor import post_order_visit

__all__ = ["accesses", "aliases", "estimate_tir_flops", "expr_deep_equal", "undefined_vars",
           "verify_well_formed"]


def verify_well_formed(thing, assert_mode=True):
    """Is a function or module well formed? With assert_mode a PleatError with each fault is raised
    where it is not."""
    messages = ffi.new("PleatMessages **")
    status = _lib.pleat_module_verify(thing._handle, messages)
    try:
        check_status(status, messages)
    except PleatError:
        if assert_mode:
            raise
        return False
    return True


def estimate_tir_flops(stmt_or_mod):
    """The number of floating-point operations of a function, or of all functions of a module. A
    division or function counts as 1, and so does an extent that is not a number."""
    total, count = 0.0, ffi.new("double *")
    functions = [stmt_or_mod] if isinstance(stmt_or_mod, PrimFunc) else \
        [one for _, one in stmt_or_mod.items() if isinstance(one, PrimFunc)]
    for function in functions:
        messages = ffi.new("PleatMessages **")
        status = _lib.pleat_module_operations(function._handle, ffi.NULL, count, messages)
        check_status(status, messages)
        total += count[0]
    return total


def aliases(function):
    """Which buffers of a PrimFunc share memory: a list with a dictionary for the memory of each
    parameter and allocation, as pleat_module_aliases of pleat/tir.h describes it.

        >>> aliases(reshaped)[0]["pairs"][0]["elements"]
        'flat[i] is A[i // 6, i % 6]'
    """
    return _report(_lib.pleat_module_aliases, function)


def accesses(function):
    """Check the accesses of a PrimFunc: a dictionary as pleat_module_accesses of pleat/tir.h
    describes it. A PleatError with each access that is out of bounds or that its block does not
    state, and each pair of iterations of a parallel loop that share an element, is raised.

        >>> accesses(function)["loops"][0]["races"]
        'none'
    """
    return _report(_lib.pleat_module_accesses, function)


def _report(query, function):
    text, messages = ffi.new("char **"), ffi.new("PleatMessages **")
    check_status(query(function._handle, ffi.NULL, text, messages), messages)
    return json.loads(_owned_text(text[0]))


def expr_deep_equal(lhs, rhs):
    """Are two expressions the same, with the same variables?"""
    return nodes_equal(lhs, rhs, map_free_vars=False)


def undefined_vars(node, defs=()):
    """The variables that a statement or expression uses and does not define, in order."""
    defined, used = set(defs), []

    def visit(part):
        if isinstance(part, Var) and part not in used:
            used.append(part)
        if isinstance(part, For):
            defined.add(part.loop_var)
        if isinstance(part, (Let, LetStmt, IterVar)):
            defined.add(part.var)
        if isinstance(part, BlockRealize):
            defined.update(buffer.data for buffer in part.block.alloc_buffers)
        buffer = part.fields.get("buffer")
        if isinstance(buffer, Buffer) and buffer.data not in used:
            used.append(buffer.data)
    post_order_visit(node, visit)
    return [variable for variable in used if variable not in defined]
