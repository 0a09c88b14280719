// SPDX-License-Identifier: Apache-2.0
// Named, checked schedule steps on tensor programs, and their trace. A step proves itself legal or
// leaves the schedule as it was and says what could not be proved and what to do instead. Each
// step that was made is in the trace, which prints as Python-like text and replays.
#ifndef PLEAT_SCHEDULE_H
#define PLEAT_SCHEDULE_H

#include "ir/ir.h"
#include "layout/layout.h"

typedef struct Schedule Schedule;
typedef Str BlockRef;  // a block by its name, which is unique in the function; NULL: none
typedef Expr *LoopRef; // a loop by its variable, which steps on other loops leave alone
typedef Array(BlockRef) BlockRefs;
typedef Array(LoopRef) LoopRefs;

// Over an immutable tree: `func` is not changed. Blocks that share a name get names of their own.
Schedule *schedule_new(Context *context, PrimFunc *func);
Schedule *schedule_copy(const Schedule *schedule); // cheap; goes its own way from here
PrimFunc *schedule_func(const Schedule *schedule); // as the steps so far have made it
Context *schedule_context(const Schedule *schedule);
Block *schedule_block(const Schedule *schedule, BlockRef block); // NULL when there is none
Stmt *schedule_loop(const Schedule *schedule, LoopRef loop);     // its STMT_FOR, NULL likewise

// Where refusals are reported: a position of the user's script ({0}: at the block or loop).
void schedule_at(Schedule *schedule, SourcePos pos);
// On: a refusal is no diagnostic; schedule_refusal gives its text. For models that try steps.
void schedule_quiet(Schedule *schedule, bool quiet);
const char *schedule_refusal(const Schedule *schedule); // of the last step; NULL when it was made

// ---- Steps: false when refused. Out parameters may be NULL ------------------------------------

bool schedule_get_block(Schedule *schedule, const char *name, BlockRef *out);
// Outermost first, up to the enclosing block.
bool schedule_get_loops(Schedule *schedule, BlockRef block, LoopRefs *out);
// The blocks directly below a block or a loop: give one of them, the other is NULL.
bool schedule_get_child_blocks(Schedule *schedule, BlockRef block, LoopRef loop, BlockRefs *out);
bool schedule_get_producers(Schedule *schedule, BlockRef block, BlockRefs *out);
bool schedule_get_consumers(Schedule *schedule, BlockRef block, BlockRefs *out);

// At most one factor is 0: what is left. Where the factors' product is not the extent, the blocks
// below get a predicate. out[count], outermost first.
bool schedule_split(Schedule *schedule, LoopRef loop, const int64_t *factors, int count,
                    LoopRef *out);
// Neighbours, outermost first, with nothing between them.
bool schedule_fuse(Schedule *schedule, const LoopRef *loops, int count, LoopRef *out);
// Loops of one chain, in the new order; others of the chain keep their places.
bool schedule_reorder(Schedule *schedule, const LoopRef *loops, int count);
// A loop of one iteration around a block or a loop (the other is NULL).
bool schedule_add_unit_loop(Schedule *schedule, BlockRef block, LoopRef loop, LoopRef *out);

bool schedule_parallel(Schedule *schedule, LoopRef loop);
bool schedule_vectorize(Schedule *schedule, LoopRef loop); // lanes: a constant extent
bool schedule_unroll(Schedule *schedule, LoopRef loop);
// On a block or a loop (the other is NULL). `value` is a constant, a string or a tuple of such.
bool schedule_annotate(Schedule *schedule, BlockRef block, LoopRef loop, const char *key,
                       Expr *value);
// Asks lowering to cut the loop where conditions on its variable change ("pleat.partition").
bool schedule_loop_partition(Schedule *schedule, LoopRef loop);

// The block into its consumers; the block, its loops and its buffer go.
bool schedule_compute_inline(Schedule *schedule, BlockRef block);
// The block into its only producer.
bool schedule_reverse_compute_inline(Schedule *schedule, BlockRef block);
// Moves a producer under a loop of its consumers, before the first of them: computes what they read
// in one iteration. Loops of one iteration are left out unless preserve_unit_loops.
bool schedule_compute_at(Schedule *schedule, BlockRef block, LoopRef loop,
                         bool preserve_unit_loops);
// Moves a consumer under a loop of its producers, after the last of them: what becomes complete in
// one iteration is consumed there.
bool schedule_reverse_compute_at(Schedule *schedule, BlockRef block, LoopRef loop,
                                 bool preserve_unit_loops);

// A buffer of a block: the index-th of its reads or writes.
typedef struct BufferSlot {
  bool write;
  int index;
} BufferSlot;
// A copy of the buffer in `scope`, read by this block in place of the original; *out is the copying
// block (over the region that is read, placed before the block's outermost loop).
bool schedule_cache_read(Schedule *schedule, BlockRef block, int read_index, const char *scope,
                         BlockRef *out);
// The block writes a copy in `scope`; *out copies it to the original.
bool schedule_cache_write(Schedule *schedule, BlockRef block, int write_index, const char *scope,
                          BlockRef *out);
bool schedule_set_scope(Schedule *schedule, BlockRef block, int write_index, const char *scope);

// The init of a reduction as a block of its own before `loop`; *out is "<block>_init", and the
// block keeps its name and updates only.
bool schedule_decompose_reduction(Schedule *schedule, BlockRef block, LoopRef loop, BlockRef *out);
// The reduction in two: partial results, one for each iteration of the reduction loop `loop`, in a
// buffer with that axis at `factor_axis`; then their reduction, which keeps the block's name.
// *out is "<block>_rf".
bool schedule_rfactor(Schedule *schedule, LoopRef loop, int factor_axis, BlockRef *out);

// The storage of a block's buffer is laid out by `map`: all accesses of all its aliases are
// rewritten; a parameter's shape becomes physical. A block that iterates the buffer's logical axes
// trivially iterates the physical axes afterwards, in their order, predicated where that is
// padding. `padding` NULL: any content. Constant padding is written by that block; for a parameter
// that is only read it is what the caller promises.
bool schedule_transform_layout(Schedule *schedule, BlockRef block, BufferSlot slot,
                               const IndexMap *map, const LayoutPadding *padding);
// The block's iteration re-made over map(block variables): new loops, in the map's order.
bool schedule_transform_block_layout(Schedule *schedule, BlockRef block, const IndexMap *map);
// Removes conditions that keep a block out of padding where running there is harmless: reads stay
// in the physical shapes, writes land in padding that may hold anything.
bool schedule_drop_padding_predicate(Schedule *schedule, BlockRef block);
// C += select(cond, a, 0) * b: cond becomes the block's predicate. The block has no init.
bool schedule_predicate_reduction(Schedule *schedule, BlockRef block);

// ---- Trace -----------------------------------------------------------------------------------

// One line a step: `b0 = sch.get_block("conv")`, `l1, l2 = sch.split(l0, factors=[None, 4])`.
const char *schedule_trace(const Schedule *schedule);
int schedule_step_count(const Schedule *schedule);
// Reads such text and makes its steps. Stops at the first that is refused. Names of loops and
// blocks are the text's own; `sch` may have any name.
bool schedule_replay(Schedule *schedule, const SourceFile *script);

#endif
