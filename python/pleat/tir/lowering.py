# SPDX-License-Identifier: Apache-2.0
"""Lowers modules of tensor programs by TVM's passes, and runs the passes that a context adds.

PassContext(config={"tir.add_lower_pass": [(phase, pass), …]}) adds passes, as in TVM: those of phase 0
run on the module as it is given, those of phase 1 once it has loops in place of blocks and flat buffers,
and those of later phases at the end. "tir.disable_vectorize" and "tir.disable_storage_rewrite" leave out
these passes."""
from pleat.target import Target
from pleat.tir import transform

DIALECTS = ("tir", "tirx", "s_tir")
DEVICE = ("LowerCrossThreadReduction",)
SIMPLE = ("LowerInitBlock", "PlanAndUpdateBufferAllocationLocation", "ConvertBlocksToOpaque",
          "CompactBufferAllocation", "LowerOpaqueBlock", "Simplify")
FLAT = ("InjectVirtualThread", "InjectDoubleBuffer", "FlattenBuffer")
LOOPS = ("LoopPartition", "UnrollLoop", "VectorizeLoop", "StorageRewrite", "Simplify", "RemoveNoOp",
         "RewriteUnsafeSelect")


def added_passes():
    """The passes that the context adds: pairs of a phase and a pass, by their phases."""
    pairs = [pair for pairs in _configured("add_lower_pass") for pair in pairs]
    return sorted(pairs, key=lambda pair: pair[0])


def _configured(option):
    """The values that the context has for an option, under any dialect."""
    config = transform.PassContext.current().config
    return [config[f"{dialect}.{option}"] for dialect in DIALECTS if f"{dialect}.{option}" in config]


def _run(module, names):
    for name in names:
        if name == "VectorizeLoop":
            module = transform.VectorizeLoop(not any(_configured("disable_vectorize")))(module)
        elif name != "StorageRewrite" or not any(_configured("disable_storage_rewrite")):
            module = getattr(transform, name)()(module)
    return module


def _run_added(module, phases):
    for phase, one in added_passes():
        if phase in phases:
            module = one(module)
    return module


def lower_module(module, simple_mode=False):
    """The module as flat loops, after the passes that TVM runs before it makes code. simple_mode: its loops
    before buffers become flat. Threads reduce together where the target around the call is a device; processors
    run them one after the other."""
    target = Target.current()
    is_for_device = target is not None and target.kind.name in ("cuda", "opencl")
    module = _run(_run_added(module, (0,)), [*(DEVICE if is_for_device else ()), *SIMPLE])
    if simple_mode:
        return module
    module = _run_added(_run(module, FLAT), (1,))
    return _run_added(_run(module, LOOPS), range(2, 100))


def with_added_passes(module):
    """The module after the passes that the context adds; where it adds later ones, the lowered module."""
    added = added_passes()
    if not added:
        return module
    return _run_added(module, (0,)) if added[-1][0] == 0 else lower_module(module)
