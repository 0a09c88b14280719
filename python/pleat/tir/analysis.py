# SPDX-License-Identifier: Apache-2.0
"""Questions about tensor programs, with TVM's names."""
import json

from pleat._library import PleatError, _lib, _owned_text, ffi
from pleat._request import check_status
from pleat.ir._module import IRModule, PrimFunc, _as_handle
from pleat.tir.nodes import (BlockRealize, Buffer, For, IterVar, Let, LetStmt, Var,
                             nodes_equal)
from pleat.tir.stmt_functor import post_order_visit

__all__ = ["OOBChecker", "accesses", "aliases", "assert_pure_function", "calculate_allocated_bytes",
           "detect_buffer_access_lca", "estimate_tir_flops", "expr_deep_equal", "find_anchor_block",
           "get_block_access_region", "get_block_read_write_region", "get_sblock_access_region",
           "get_sblock_read_write_region", "is_pure_function", "undefined_vars", "verify_gpu_code",
           "verify_memory", "verify_ssa", "verify_well_formed"]

_OF_BLOCKS = ("detect_buffer_access_lca", "get_block_access_region", "get_block_read_write_region",
              "get_sblock_access_region", "get_sblock_read_write_region")
GPU_KINDS = ("cuda", "hexagon", "metal", "opencl", "rocm", "vulkan", "webgpu")  # targets with memory of their own


def __getattr__(name):
    if name in _OF_BLOCKS:
        from pleat.tir import block_analysis
        return getattr(block_analysis, name)
    raise AttributeError(f"module 'pleat.tir.analysis' has no attribute {name!r}")


def _function(thing):
    """The argument, which must be a PrimFunc."""
    if isinstance(thing, PrimFunc):
        return thing
    hint = "; take one of its functions, such as mod['main']" if isinstance(thing, IRModule) else ""
    raise TypeError(f"expected a PrimFunc, not {type(thing).__name__}{hint}")


def _programs(thing):
    """The tensor programs of a module, or the one that is given, by their names."""
    if isinstance(thing, IRModule):
        return {name: one for name, one in thing.items() if isinstance(one, PrimFunc)}
    if not isinstance(thing, PrimFunc):
        raise TypeError(f"expected an IRModule or a PrimFunc, not {type(thing).__name__}")
    return {thing.__name__: thing}


def verify_well_formed(thing, assert_mode=True):
    """Is a function or module well formed? With assert_mode a PleatError with each fault is raised
    where it is not."""
    messages = ffi.new("PleatMessages **")
    status = _lib.pleat_module_verify(_as_handle(thing), messages)
    try:
        check_status(status, messages)
    except PleatError:
        if assert_mode:
            raise
        return False
    return True


def estimate_tir_flops(stmt_or_mod):
    """The number of floating-point operations of a function, or of all functions of a module. A
    division or function counts as 1, and so does an extent that is not a number. A function's attribute
    "estimated_flops" is its number."""
    total, count = 0.0, ffi.new("double *")
    for function in _programs(stmt_or_mod).values():
        stated = function.attrs.get("estimated_flops") if "estimated_flops" in function.script() else None
        if stated is not None:
            total += stated
            continue
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
    check_status(query(_as_handle(function), ffi.NULL, text, messages), messages)
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


# ---- Whole functions --------------------------------------------------------------------------------

def _definitions(node):
    """The variables that a node defines."""
    kind = type(node).__name__
    if kind == "For":
        return [node.loop_var]
    if kind in ("Let", "LetStmt", "IterVar"):
        return [node.var]
    if kind == "Block":
        return [buffer.data for buffer in node.alloc_buffers] + [one.buffer.data for one in node.match_buffers]
    return [node.buffer_var] if kind in ("Allocate", "AllocBuffer", "AllocateConst") else []


def verify_ssa(func):
    """Is each variable of a PrimFunc defined once?"""
    seen = list(_function(func).params)
    post_order_visit(func.body, lambda node: seen.extend(_definitions(node)))
    return len(seen) == len(set(seen))


def OOBChecker():
    """A pass that raises ScheduleError where an access is out of bounds for some iteration."""
    from pleat.ir.transform import Pass
    from pleat.tir.schedule import ScheduleError

    def transform(module, _):
        for function in _programs(module).values():
            try:
                accesses(function)
            except PleatError as error:
                raise ScheduleError(str(error), error.messages) from None
        return module
    return Pass("OOBChecker", transform)


def _is_thread_scope(node):
    """Does the node bind its body to threads of a device?"""
    kind = type(node).__name__
    if kind == "For":
        return node.thread_binding is not None
    return kind == "AttrStmt" and node.attr_key in ("thread_extent", "pipeline_exec_scope", "device_scope")


def verify_memory(func):
    """Are the parameters of a program for a device, which its attribute "target" names, accessed inside of
    loops over its threads alone? True for programs for processors."""
    from pleat.tir.stmt_functor import pre_order_visit
    target = _function(func).attrs.get("target")
    if target is None:
        raise ValueError(f"{func.__name__} has no attribute 'target', which says where its memory is")
    kind = target.kind.name if hasattr(target, "kind") else str(target)
    if kind not in GPU_KINDS:
        return True
    own = {buffer.data for buffer in func.buffer_map.values()}
    outside = []

    def visit(node):
        if _is_thread_scope(node):
            return False
        if type(node).__name__ in ("BufferLoad", "BufferStore") and node.buffer.data in own:
            outside.append(node)
        return True
    pre_order_visit(func.body, visit)
    return not outside


def calculate_allocated_bytes(func_or_mod):
    """The bytes of all allocations: for each program of a module, by its name, a dictionary by scopes. A single
    program is called "main". Extents are numbers."""
    if isinstance(func_or_mod, PrimFunc):
        return {"main": _bytes_by_scope(func_or_mod)}
    return {name: _bytes_by_scope(one) for name, one in _programs(func_or_mod).items()}


def _bytes_by_scope(func):
    found = {}
    for scope, dtype, shape in _allocations(func):
        found[scope] = found.get(scope, 0) + _bytes_of(dtype, shape)
    return found


def _allocations(func):
    found = []

    def visit(node):
        if type(node).__name__ in ("Allocate", "AllocBuffer"):
            scope = getattr(node.buffer_var.dtype, "storage_scope", None) or \
                getattr(node.buffer_var, "storage_scope", "global")
            declared = getattr(node.body, "buffer", None)
            if declared is not None and declared.data is node.buffer_var:
                scope = declared.scope()
            found.append((scope, node.dtype, node.extents))
        for buffer in getattr(node, "alloc_buffers", ()):
            found.append((buffer.scope(), buffer.dtype, buffer.shape))
    post_order_visit(func.body, visit)
    return found


def _bytes_of(dtype, shape):
    from pleat.model import dtype_of
    count = 1
    for extent in shape:
        if not hasattr(extent, "value"):
            raise ValueError(f"the size of an allocation, {extent!r}, is no number")
        count *= extent.value
    return count * dtype_of(dtype).itemsize


def is_pure_function(func, assert_on_error=False):
    """Has a program no effect, other than on memory that it allocates? With assert_on_error an effect
    raises AssertionError."""
    own, effects = set(), []
    _function(func)

    def visit(node):
        kind = type(node).__name__
        own.update(_definitions(node))
        if kind == "DeclBuffer" and node.buffer.data not in own and not _outside(func, node.buffer.data):
            own.add(node.buffer.data)
        if kind == "BufferStore":
            effects.append((node.buffer.data, f"stores to {node.buffer.name}"))
        if kind == "Call" and not _is_pure_call(node):
            effects.append((None, f"calls {node.op}"))
    post_order_visit(func.body, visit)
    wrong = next((text for data, text in effects if data not in own), None)
    if wrong and assert_on_error:
        raise AssertionError(f"{func.__name__} is not pure: it {wrong}")
    return wrong is None


def _outside(func, data):
    return any(buffer.data is data for buffer in func.buffer_map.values()) or data in func.params


def _is_pure_call(node):
    """Is it one of the functions of expressions, or a call of a function that is said to be pure?"""
    from pleat.tir import op
    dialect, _, name = str(node.op).partition(".")
    impure = {"call_extern", "call_intrin", "call_packed"}
    return dialect == "tir" and (name == "ret" or name in set(op.__all__) - impure)


def assert_pure_function(func):
    """True for a program without effects; others raise AssertionError."""
    return is_pure_function(func, True)


def find_anchor_block(mod):
    """The Block of a reduction that computes most, or None where the module has no reduction."""
    best, most = None, -1

    def walk(node, times):
        nonlocal best, most
        kind = type(node).__name__
        if kind == "For":
            times *= getattr(node.extent, "value", 1)
        if kind == "BlockRealize":
            block = node.block
            if block.init is not None and times > most:
                best, most = block, times
            walk(block.body, times)
            return
        from pleat.tir.stmt_functor import _children
        for child in _children(node):
            walk(child, times)
    for function in _programs(mod).values():
        walk(function.body, 1)
    return best


find_anchor_sblock = find_anchor_block

_GPU_LIMITS = {"max_threads_per_block", "max_thread_x", "max_thread_y", "max_thread_z", "max_vthread",
               "max_shared_memory_per_block", "max_local_memory_per_block"}


def verify_gpu_code(func, constraints):
    """Does a program keep within limits of a device: max_threads_per_block, max_thread_x (y, z), max_vthread,
    max_shared_memory_per_block and max_local_memory_per_block (bytes)?"""
    unknown = set(constraints) - _GPU_LIMITS
    if unknown:
        raise ValueError(f"verify_gpu_code has no limit '{sorted(unknown)[0]}'; it has "
                         f"{', '.join(sorted(_GPU_LIMITS))}")
    extents = {}
    _function(func)

    def visit(node):
        thread = None
        if type(node).__name__ == "For" and node.thread_binding is not None:
            thread = node.thread_binding.thread_tag, node.extent
        elif type(node).__name__ == "AttrStmt" and node.attr_key in ("thread_extent", "virtual_thread"):
            thread = node.node.thread_tag, node.value
        if thread and hasattr(thread[1], "value"):
            extents[thread[0]] = max(extents.get(thread[0], 1), thread[1].value)
    post_order_visit(func.body, visit)
    found, used = _bytes_by_scope(func), {}
    for axis in "xyz":
        used[f"max_thread_{axis}"] = extents.get(f"threadIdx.{axis}", 1)
    used["max_threads_per_block"] = used["max_thread_x"] * used["max_thread_y"] * used["max_thread_z"]
    used["max_vthread"] = max([n for tag, n in extents.items() if tag.startswith("vthread")], default=1)
    for scope in ("shared", "local"):
        used[f"max_{scope}_memory_per_block"] = sum(n for one, n in found.items() if one.partition(".")[0] == scope)
    return all(used[name] <= int(limit) for name, limit in constraints.items())
