# SPDX-License-Identifier: Apache-2.0
"""Combinations of steps with TVM's names."""
from pleat.tir.schedule import TensorIntrin
from pleat.tir.schedule.analysis import get_tensorize_loop_mapping


def tile_with_tensor_intrin(sch, block, intrin_name, allow_padding=False):
    """Splits the loops of a block that correspond to those of an intrinsic by its extents, and makes the inner ones
    the innermost loops. Returns the outermost of these, or None where no loops correspond."""
    info = get_tensorize_loop_mapping(sch, block, TensorIntrin.get(intrin_name).desc, allow_padding)
    if info is None:
        return None
    if info.block_iter_paddings:
        sch.pad_einsum(block, info.block_iter_paddings)
        info = get_tensorize_loop_mapping(sch, block, TensorIntrin.get(intrin_name).desc)
    own_loops = {sch.get(place).loop_var.name: own for place, own in info.loop_map.items()}
    named = [(sch.get(loop).loop_var.name, loop) for loop in sch.get_loops(block)]
    inner = {info.desc_loop_indexer[own_loops[name]]: sch.split(loop, [None, own_loops[name].extent])[1]
             for name, loop in named if name in own_loops}
    ordered = [inner[k] for k in sorted(inner)]
    rest = sch.get_loops(block)
    is_inner = [any(sch.get(loop) is sch.get(one) for one in ordered) for loop in rest]
    sch.reorder(*(loop for loop, inside in list(zip(rest, is_inner))[is_inner.index(True):] if not inside), *ordered)
    return ordered[0]
