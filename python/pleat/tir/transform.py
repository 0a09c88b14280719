# SPDX-License-Identifier: Apache-2.0
"""The passes of lowering. Each has the name that the library gives it in capital letters
(FlattenBuffers for flatten_buffers), and that of TVM's pass with the same effect, if there is one."""
from pleat._library import PleatError, _lib, ffi
from pleat.ir._module import IRModule, transformed
from pleat.ir.transform import Pass, PassContext, Sequential, module_pass, prim_func_pass

__all__ = ["Pass", "PassContext", "Sequential", "module_pass", "passes", "prim_func_pass"]

# TVM's names, and those of the library.
TVM_NAMES = {
    "CommonSubexprElim": "share_subexpressions",
    "CompactBufferAllocation": "compact_buffers",
    "ConvertBlocksToOpaque": "make_blocks_opaque",
    "ConvertSSA": "rename_repeated",
    "FlattenBuffer": "flatten_buffers",
    "HoistIfThenElse": "hoist_branches",
    "InjectDoubleBuffer": "inject_double_buffers",
    "InjectVirtualThread": "inject_virtual_threads",
    "InlinePrivateFunctions": "inline_calls",
    "LoopPartition": "partition_loops",
    "LowerInitBlock": "init_blocks",
    "LowerMatchBuffer": "match_buffers",
    "LowerOpaqueBlock": "convert_blocks",
    "LowerThreadAllreduce": "thread_allreduce",
    "MakePackedAPI": "make_packed",
    "NarrowDataType": "narrow_types",
    "PlanAndUpdateBufferAllocationLocation": "place_allocations",
    "PointerValueTypeRewrite": "vector_buffers",
    "RemoveAssume": "remove_assumptions",
    "RemoveNoOp": "remove_no_ops",
    "RemoveStoreUndef": "remove_undefined",
    "RemoveUndef": "remove_undefined",
    "Simplify": "simplify_loops",
    "StmtSimplify": "simplify_loops",
    "StorageRewrite": "reuse_allocations",
    "UnrollLoop": "unroll_loops",
    "VectorizeLoop": "vectorize_loops",
}


def passes():
    """The names of the library's passes and a sentence about each, in the order of lowering."""
    found, i = {}, 0
    while _lib.pleat_pass_name(i) != ffi.NULL:
        found[ffi.string(_lib.pleat_pass_name(i)).decode()] = \
            ffi.string(_lib.pleat_pass_summary(i)).decode()
        i += 1
    return found


# Arguments of TVM's passes, with the values that say what the library's pass does.
TVM_ARGUMENTS = {
    "CompactBufferAllocation": {"is_strict": True},
    "HoistIfThenElse": {"variant": None},
    "NarrowDataType": {"target_bits": 32},
    "VectorizeLoop": {"enable_vectorize": True},
}


def _check_arguments(shown, positional, keywords):
    known = TVM_ARGUMENTS.get(shown, {})
    if len(positional) > len(known):
        raise TypeError(f"{shown} takes at most {len(known)} arguments")
    given = {**dict(zip(known, positional)), **keywords}
    for key, value in given.items():
        if key not in known:
            raise TypeError(f"{shown} has no argument '{key}'")
        if value != known[key]:
            raise PleatError(f"{shown}: '{key}' is {known[key]!r} here, it cannot be {value!r}")


# Options of TVM's passes in PassContext.config, with the library's pass for a value.
TVM_OPTIONS = {
    "HoistIfThenElse": {"support_block_scope_hoisting": {True: "hoist_thread_branches"}},
}


def _chosen(shown, name, context):
    """The library's pass for the options that the context has for TVM's pass."""
    for dialect in ("tir", "tirx", "s_tir"):
        for key, value in context.config.get(f"{dialect}.{shown}", {}).items():
            name = TVM_OPTIONS.get(shown, {}).get(key, {}).get(value, name)
    return name


def _pass(shown, name):
    def transform(module, context):
        name_here = _chosen(shown, name, context)
        handle = transformed(_lib.pleat_module_run_passes, module._handle, None, name_here)
        return IRModule(handle=handle)
    return Pass(shown, transform)


def _named(shown):
    """The library's name of a pass; None when there is none."""
    if shown in TVM_NAMES:
        return TVM_NAMES[shown]
    return next((name for name in ["lower", *passes()]
                 if name.title().replace("_", "") == shown), None)


def __getattr__(shown):
    name = None if shown.startswith("_") else _named(shown)
    if name is None:
        raise AttributeError(f"module 'pleat.tir.transform' has no pass {shown!r}")

    def make(*positional, **keywords):
        _check_arguments(shown, positional, keywords)
        return _pass(shown, name)
    make.__name__, make.__doc__ = shown, passes().get(name, "all passes, in order")
    return make
