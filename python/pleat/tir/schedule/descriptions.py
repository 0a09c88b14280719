# SPDX-License-Identifier: Apache-2.0
"""The documentation of the steps of a schedule, one sentence or two a step."""
import inspect

from pleat.tir.trace import REQUIRED

DESCRIPTIONS = {
    "get_loops": "The loops around a block, the outermost one first.",
    "get_child_blocks": "The outermost blocks inside of a block or a loop.",
    "get_output_blocks": "The blocks inside of `scope_block` that write parameters of the function.",
    "get_producers": "The blocks of the same scope that write what the block reads.",
    "get_consumers": "The blocks of the same scope that read what the block writes.",
    "split": "Splits a loop into nested ones with these extents, of which one may be None. Where their product "
             "exceeds the extent, the block gets a predicate.",
    "fuse": "Makes one loop of loops that are directly nested.",
    "merge": "Makes one loop of loops of different nests, outside of which the nests have the same loops.",
    "reorder": "Puts loops around one block into this order. Loops that are not named stay in their places.",
    "reorder_block_iter_var": "Puts the variables of a block into this order.",
    "add_unit_loop": "Puts a loop with one iteration around a block or loop.",
    "parallel": "Lets threads of a processor share the iterations of a loop.",
    "vectorize": "Makes the iterations of a loop the lanes of vectors.",
    "unroll": "Writes the iterations of a loop one after the other.",
    "bind": "Lets the threads of a device take the iterations of a loop, such as \"threadIdx.x\".",
    "annotate": "Attaches a value to a block or a loop under a key.",
    "unannotate": "Removes what `annotate` attached.",
    "loop_partition": "Cuts a loop into loops that run one after the other, with these extents, of which one may be "
                      "None. Without `factors`, lowering cuts the loop where conditions change.",
    "compute_inline": "Removes a block that computes elements: each reader computes what it reads.",
    "reverse_compute_inline": "Removes a block that reads the result of one other block, which then computes and "
                              "stores what the removed one did.",
    "fuse_reduction_epilogue": "Removes a block that follows a reduction by applying it to the reduction's first "
                               "value.",
    "compute_at": "Moves a block that computes what other blocks read into a loop around these. `index` is the "
                  "place among the statements of the loop: -1 is the last possible one, -2 the first.",
    "reverse_compute_at": "Moves a block that reads what other blocks compute into a loop around these. `index` is "
                          "as in `compute_at`.",
    "cache_read": "Copies a buffer that the block reads to memory of this scope, which the block, or "
                  "`consumer_blocks`, then read. Returns the block that copies.",
    "cache_write": "Lets a block write memory of this scope, and copies that to the buffer. Returns the block that "
                   "copies.",
    "cache_inplace": "Copies a buffer that the block reads and writes to memory of this scope, and back afterwards.",
    "cache_index": "Stores what a block computes to find its elements, once for each place.",
    "read_at": "Copies, in the loop, what the block reads of a buffer there.",
    "write_at": "Lets the block write memory of this scope in the loop, and copies that to the buffer there.",
    "reindex_cache_read": "Copies a buffer as `cache_read`, to a layout that a map of the variables of the block "
                          "gives.",
    "reindex_cache_write": "Copies a buffer as `cache_write`, from a layout that a map of the variables of the block "
                           "gives.",
    "prefetch": "Asks for the elements that a block reads some iterations of the loop later.",
    "set_scope": "Puts a buffer into memory of this scope, such as \"shared\".",
    "unsafe_set_dtype": "Stores a buffer as another type: values are cast where they are stored and loaded.",
    "storage_align": "Pads the rows of a buffer: the stride of the axis modulo `factor` becomes `offset`.",
    "unsafe_hide_buffer_access": "Removes what a block states of buffers that it does not access.",
    "rolling_buffer": "Keeps of a buffer only what the next iterations of a loop read again.",
    "blockize": "Makes one block of a loop and what is inside, or of several blocks.",
    "tensorize": "Replaces a block, or a loop with what is inside, by an intrinsic that computes the same.",
    "decompose_reduction": "Stores the first values of a reduction in a block of its own, before the loop.",
    "decompose_padding": "Splits a block that stores elements or padding: one block stores padding, before the "
                         "loop, and one the elements.",
    "pad_einsum": "Pads the extents of a product, and copies what it reads and writes, so that each variable of "
                  "the block has a multiple of its number in `padding` as extent.",
    "rfactor": "Computes a reduction in parts, one for each iteration of a loop, and then combines them. "
               "`factor_axis` is the place of the new axis.",
    "transform_block_layout": "Replaces the variables and loops of a block by those that a map gives.",
    "split_axis": "Makes several axes of one axis of a buffer, of these extents, of which one may be None.",
    "fuse_axes": "Makes one axis of axes of a buffer that follow one another.",
    "reorder_axes": "Puts the axes of a buffer into this order.",
    "pad_axis": "Pads an axis of a buffer to a multiple.",
    "swizzle_axes": "Replaces the index of an axis by its XOR with that of another axis.",
    "swizzle_banks": "Stores a buffer of shared memory in the layout in which the threads of a warp wait least "
                     "for one another.",
    "separate_axis": "Lets another physical axis begin at an axis of a buffer, which gives a 2-d buffer.",
    "pad_value": "States what the padding of a buffer holds, and stores it.",
    "drop_padding_predicate": "Lets a block compute in padding that may hold anything.",
    "predicate_reduction": "Puts the predicate of a reduction into the values that it reduces.",
    "sample_categorical": "Draws one of the candidates.",
    "sample_perfect_tile": "Draws `n` factors of the extent of a loop.",
    "sample_partitioned_tile": "Draws `n` factors of the extent of a loop, of which those from `partition_pos` on "
                               "have a product that is a multiple of `innerpart_factor`.",
    "sample_compute_location": "Draws a loop at which the block can be computed.",
    "enter_postproc": "Marks the steps after it in the trace as those of a postprocessor.",
}


def signature_of(parameters):
    """The signature of a step as Python's, with `self`."""
    kinds, many = inspect.Parameter, False
    made = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)]
    for parameter in parameters:
        starred = parameter.name.startswith("*")
        kind = (kinds.VAR_POSITIONAL if starred else
                kinds.KEYWORD_ONLY if many else kinds.POSITIONAL_OR_KEYWORD)
        default = kinds.empty if starred or parameter.default is REQUIRED else parameter.default
        made.append(kinds(parameter.name.lstrip("*"), kind, default=default))
        many = many or starred
    return inspect.Signature(made)
