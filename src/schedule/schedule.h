// SPDX-License-Identifier: Apache-2.0
// Named, checked schedule steps on tensor programs, and their trace; the steps follow TVM's
// `tir.Schedule`. A step either proves that it is legal, or leaves the schedule unchanged and says
// what could not be proved and what to do instead. The trace has each step that was made, prints as
// Python-like text, and can be replayed.
#ifndef PLEAT_SCHEDULE_H
#define PLEAT_SCHEDULE_H

#include "ir/ir.h"
#include "layout/layout.h"

typedef struct Schedule Schedule;
typedef Str BlockRef;  // a block by its name, unique in the function; NULL: none
typedef Expr *LoopRef; // a loop by its variable; steps on other loops keep it
typedef Array(BlockRef) BlockRefs;
typedef Array(LoopRef) LoopRefs;

// A schedule over an immutable tree: `func` does not change. Blocks that share a name are renamed.
Schedule *schedule_new(Context *context, PrimFunc *func);
Schedule *schedule_copy(const Schedule *schedule); // cheap; independent from then on
PrimFunc *schedule_func(const Schedule *schedule); // with all steps so far
Context *schedule_context(const Schedule *schedule);
Block *schedule_block(const Schedule *schedule, BlockRef block); // NULL when there is none
Stmt *schedule_loop(const Schedule *schedule, LoopRef loop);     // the STMT_FOR, or NULL

// Sets the position at which refusals are reported, in the user's script ({0}: that of the block or
// loop).
void schedule_at(Schedule *schedule, SourcePos pos);
// While quiet is true, a refusal reports no diagnostic, and schedule_refusal has its text. The
// auto-scheduler uses this to try steps.
void schedule_quiet(Schedule *schedule, bool quiet);
const char *schedule_refusal(const Schedule *schedule); // of the last step; NULL when it was made

// Sets the state from which sampling steps draw; schedules with one seed draw the same.
void schedule_seed(Schedule *schedule, uint64_t seed);

// Adds an intrinsic for tensorize: `impl` computes what `desc` describes, on the same parameters.
// Unless `impl` calls other functions, both are run on random inputs. False with a diagnostic when
// they differ. A copy of a schedule has its intrinsics.
bool schedule_add_intrinsic(Schedule *schedule, const char *name, PrimFunc *desc, PrimFunc *impl);
// The module in which tensorize finds the functions NAME_desc and NAME_impl of an intrinsic that
// was not added.
void schedule_use_module(Schedule *schedule, const Module *module);

// ---- Steps. Each is false when refused; out parameters may be NULL ---------------------------

bool schedule_get_block(Schedule *schedule, const char *name, BlockRef *out);
// The loops from the outermost down to the block, without those outside of the enclosing block.
bool schedule_get_loops(Schedule *schedule, BlockRef block, LoopRefs *out);
// The blocks directly below a block or a loop; either `block` or `loop` is given, the other is
// NULL.
bool schedule_get_child_blocks(Schedule *schedule, BlockRef block, LoopRef loop, BlockRefs *out);
bool schedule_get_producers(Schedule *schedule, BlockRef block, BlockRefs *out);
bool schedule_get_consumers(Schedule *schedule, BlockRef block, BlockRefs *out);

// Splits the loop into `count` loops, outermost first in out. At most one factor is 0; it becomes
// what the others leave. When the factors' product is not the extent, the blocks below get a
// predicate.
bool schedule_split(Schedule *schedule, LoopRef loop, const int64_t *factors, int count,
                    LoopRef *out);
// Fuses loops that are given outermost first and are nested with no other statement between them.
bool schedule_fuse(Schedule *schedule, const LoopRef *loops, int count, LoopRef *out);
// Puts loops of one chain into the given order; the chain's other loops stay at their depths.
bool schedule_reorder(Schedule *schedule, const LoopRef *loops, int count);
// Adds a loop of one iteration around a block or a loop (the other is NULL).
bool schedule_add_unit_loop(Schedule *schedule, BlockRef block, LoopRef loop, LoopRef *out);

bool schedule_parallel(Schedule *schedule, LoopRef loop);
// The constant extent is the number of lanes.
bool schedule_vectorize(Schedule *schedule, LoopRef loop);
bool schedule_unroll(Schedule *schedule, LoopRef loop);
// Annotates a block or a loop (the other is NULL). `value` is a constant, a string, or a tuple of
// them.
bool schedule_annotate(Schedule *schedule, BlockRef block, LoopRef loop, const char *key,
                       Expr *value);
// Asks lowering to split the loop where conditions on its variable change ("pleat.partition").
bool schedule_loop_partition(Schedule *schedule, LoopRef loop);

// Inlines the block into its consumers; the block, its loops and its buffer are removed.
bool schedule_compute_inline(Schedule *schedule, BlockRef block);
// Inlines the block into its only producer.
bool schedule_reverse_compute_inline(Schedule *schedule, BlockRef block);
// Moves a producer under a loop of its consumers, before the first of them there. It then computes
// the elements that they read in one iteration. Loops of one iteration are omitted unless
// preserve_unit_loops is true.
bool schedule_compute_at(Schedule *schedule, BlockRef block, LoopRef loop,
                         bool preserve_unit_loops);
// Moves a consumer under a loop of its producers, to the end of its body. It then consumes the
// elements that one iteration completes.
bool schedule_reverse_compute_at(Schedule *schedule, BlockRef block, LoopRef loop,
                                 bool preserve_unit_loops);

// A buffer of a block: the index-th of its reads or writes.
typedef struct BufferSlot {
  bool write;
  int index;
} BufferSlot;
// Makes a copy of a buffer in `scope`, which this block reads instead. *out is the copying block:
// it copies the region that is read and is put before the block's outermost loop.
bool schedule_reindex_cache_read(Schedule *schedule, BlockRef block, int read_index,
                                 const char *scope, const IndexMap *map, BlockRef *out);
bool schedule_cache_read(Schedule *schedule, BlockRef block, int read_index, const char *scope,
                         BlockRef *out);
// Makes the block write a copy in `scope`; *out is the block that copies it to the original.
bool schedule_cache_write(Schedule *schedule, BlockRef block, int write_index, const char *scope,
                          BlockRef *out);
bool schedule_set_scope(Schedule *schedule, BlockRef block, int write_index, const char *scope);
// Prefetches into the cache of `level` (1 to 3), at the start of each iteration of `loop`, the
// cache lines of the buffer that the block reads `ahead` iterations later. The loop is serial,
// unrolled or parallel, and the block is below it. With `spread`, a loop below `loop` and around
// the block, each iteration of that loop prefetches a part of the lines, so that they arrive while
// the iteration of `loop` computes; `spread` may be NULL.
bool schedule_prefetch(Schedule *schedule, BlockRef block, int read_index, LoopRef loop,
                       int64_t ahead, int level, LoopRef spread);

// Moves the init of a reduction into a block of its own before `loop`; *out is that block,
// "<block>_init". The updates keep the block's name.
bool schedule_decompose_reduction(Schedule *schedule, BlockRef block, LoopRef loop, BlockRef *out);
// Splits a reduction in two (TVM's rfactor): the first computes a partial result for each iteration
// of the reduction loop `loop`, in a buffer with that axis at `factor_axis`; *out is its block,
// "<block>_rf". The second reduces the partial results and keeps the block's name.
bool schedule_rfactor(Schedule *schedule, LoopRef loop, int factor_axis, BlockRef *out);

// Stores a block's buffer in the layout `map` (TVM's RFC 39). All accesses of all aliases are
// rewritten, and a parameter gets the physical shape. A block that iterates over exactly the
// buffer's logical axes iterates over the physical axes afterwards, in their order, with a
// predicate that excludes padding. `padding` says what padding contains; NULL: any content.
// Constant content is written by that block; for a parameter that is only read, the caller promises
// it.
bool schedule_transform_layout(Schedule *schedule, BlockRef block, BufferSlot slot,
                               const IndexMap *map, const LayoutPadding *padding);
// Makes the block iterate over map(block variables): new loops in the map's order.
bool schedule_transform_block_layout(Schedule *schedule, BlockRef block, const IndexMap *map);
// Removes the conditions that keep a block out of padding where running there is harmless: reads
// stay in the physical shapes, and writes go to padding that may have any content.
bool schedule_drop_padding_predicate(Schedule *schedule, BlockRef block);
// Turns C += select(cond, a, 0) * b into C += a * b with the predicate cond. The block has no init.
bool schedule_predicate_reduction(Schedule *schedule, BlockRef block);
// Would that leave out terms by their indices alone? Where a condition reads memory, vectors
// compute both values.
bool schedule_skips_by_index(Schedule *schedule, BlockRef block);

// `func` with reductions over threads (tvm_thread_allreduce) where the loops of a reduction are
// bound to threads of a block, which then compute at the same time. It is no step, but a part of
// lowering for devices.
PrimFunc *schedule_reduce_over_threads(Context *context, PrimFunc *func);

// ---- Accesses --------------------------------------------------------------------------------

// How an access of a block steps through memory in a loop: the vectorized loop around the block, or
// else the innermost with several iterations.
typedef struct AccessCost {
  Str block, buffer, loop; // loop: NULL when there is none
  const char *element;     // the element that is accessed, as text
  bool has_stride;         // false: the step is not the same in all iterations, or not known
  int64_t stride;          // in elements
  int lines;               // the cache lines of 64 bytes that the loop touches; 0: not known
  int width;               // elements in the widest contiguous vector; 0: not known
  // Two consecutive iterations whose elements are neither equal in all iterations nor neighbours:
  // these elements and their places in memory, counted in elements, as text. NULL: there are none.
  const char *jump[2], *jump_place[2];
} AccessCost;
typedef Array(AccessCost) AccessCostArray;
// The accesses of the blocks without inner blocks, in order.
AccessCostArray schedule_access_costs(Schedule *schedule);

// ---- Trace -----------------------------------------------------------------------------------

// The steps as text, one line each: `b0 = sch.get_block("conv")`, `l1, l2 = sch.split(l0,
// factors=[None, 4])`.
const char *schedule_trace(const Schedule *schedule);
// The same with changes of layouts written as steps on single axes, or as maps. Where a form gives
// another program, the step stays as it was made; by axis, a comment says why. The last step alone
// has None for the blocks and loops that it got.
typedef enum TraceForm {
  TRACE_AS_MADE,
  TRACE_BY_AXIS,
  TRACE_BY_MAP,
  TRACE_LAST_STEP,
} TraceForm;
const char *schedule_trace_as(const Schedule *schedule, TraceForm form);
int schedule_step_count(const Schedule *schedule);
// A part of a step of the table as text: 0 is its name, 1 its result, and each other one a
// parameter, "loop:LOOP" or "index:INT=-1". NULL beyond the last part or step.
const char *step_signature(int step, int part);
// Reads text in that form and runs its steps; stops at the first step that is refused. The text
// chooses the names of blocks, loops and the schedule (`sch`), and may use those that texts before
// it chose.
bool schedule_replay(Schedule *schedule, const SourceFile *script);
// Runs the steps of statements that were parsed with the file that they are in.
typedef struct PyNode PyNode; // script/python.h
bool schedule_replay_suite(Schedule *schedule, const PyNode *suite);
// Finds the step that made a program wrong: right(env, func) is true after the first `from` steps
// of the schedule of `start`, and false after all. The search is by bisection, which assumes that a
// program stays wrong once it is. Returns the number of the step, from 1, and its text; 0 when the
// program is wrong after `from` steps already, or right after all.
int schedule_find_step(const Schedule *schedule, PrimFunc *start, int from,
                       bool (*right)(void *env, const PrimFunc *func), void *env,
                       const char **text);
// The name of number `i` of the blocks, or of the variables of the loops, that the last step
// returned. NULL when it returned fewer.
const char *schedule_last_result(const Schedule *schedule, int i);

#endif
