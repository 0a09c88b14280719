// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the strategies of the auto-scheduler.
#ifndef PLEAT_AUTOSCHED_INTERNAL_H
#define PLEAT_AUTOSCHED_INTERNAL_H

#include "autosched/autosched.h"

// The loops over bands of rows around all blocks of a kernel of several parts (bands.c).
typedef struct Bands {
  int count;                    // of these loops; 0: they are not made yet
  Map dimension_of;             // a block's variable -> 1 + the dimension that it runs over
  int64_t extents[TE_MAX_RANK]; // of the dimensions within a band
  Map layouts;                  // the data of a tensor between parts -> its layout
} Bands;

// A kernel, or the part of one that a strategy schedules.
typedef struct AutoSched {
  Context *context;
  const HostMachine *machine;
  Schedule *sch;
  PrimFunc *func;
  const KernelParam *params;
  const Strategies *planned; // NULL: the planner found none
  KernelChoice *choice;
  BlockRef anchor, tail; // the reduction (NULL: none) and the block that writes the output
  const Buffer *output;  // that the tail writes, as the function has it before layouts are applied
  const Layout *output_layout;
  BlockRef staged;  // copies a tile of sums for the tail; NULL: the tail reads the sums
  BlockRef updates; // ordered updates of the elements that the tail sets; NULL: none
  int reductions;   // how many blocks are reductions; the anchor is the last of them
  Nest nest;        // of the anchor, before any layout was changed
  NestLayouts layouts;
  const char *refusal; // why no tile was found, when no step reports it
  BlockRefs own;       // the blocks of the part, in order, while they are in loops of their own
  const Bands *bands;  // NULL: the part is the kernel
  const bool *foreign; // by parameter: another part applies its layout; NULL: none does
  int64_t parts;       // in which the reduction is computed, one after the other; 0: it is whole
} AutoSched;

#define TRY(step)                                                                                  \
  do {                                                                                             \
    if (!(step)) return false;                                                                     \
  } while (0)

// ---- autosched.c

bool autosched_blocks(AutoSched *s, BlockRefs *blocks); // of the function, in order
// Finds the anchor, the tail, the reductions and the output among the part's own blocks, and
// inlines elementwise blocks. A function with several reductions keeps the reductions' blocks and
// the blocks that several blocks read.
bool autosched_find_blocks(AutoSched *s);
// Do the elements of the last block share results of the only reduction?
bool autosched_spreads(const AutoSched *s);
// The loops of a block without those over bands.
bool autosched_loops(const AutoSched *s, BlockRef block, LoopRefs *loops);
bool autosched_reduces(const AutoSched *s, BlockRef block);
// The number of elements in a vector of the widest values that a block loads, stores or computes as
// floats.
int autosched_lanes(const AutoSched *s, BlockRef block);
int64_t autosched_loop_extent(const AutoSched *s, LoopRef loop);
// Does the block store once, and are its variables the loops, in order?
bool autosched_follows_loops(const Block *block, const LoopRefs *loops);
// How far the offset of the access moves with each step of block variable `v` within aligned
// pieces of `size` iterations. False when the steps differ.
bool autosched_step_within(const AutoSched *s, const Block *block, const Buffer *buffer,
                           Expr *const *indices, int v, int64_t size, int64_t *step);
// Splits `loop` by `size`. When `size` is the whole loop, the loop becomes the inner part, and a
// unit loop is added outside.
bool autosched_split(AutoSched *s, LoopRef loop, int64_t size, LoopRef *outer, LoopRef *inner);
// How many pieces of a loop run in parallel, at least: with one for each thread, all would wait for
// the thread that is held up.
int64_t autosched_least_pieces(const HostMachine *machine);
// How many of the first `most` loops give all threads work when they run as one, which should be
// few: their indices are quotients. 0: all of them have one iteration.
int autosched_fewest_loops(const AutoSched *s, const LoopRef *loops, int most);
// Runs the first `fused` of the loops, which stand directly inside one another, as one loop in
// parallel, which is *all unless `all` is NULL. Where it has too few iterations for all threads,
// the loops inside it are parallel too.
bool autosched_run_parallel(AutoSched *s, const LoopRef *loops, int count, int fused, LoopRef *all);

// ---- strategies.c

// The cost of one strategy; negative when the strategy does not apply.
double strategy_cost(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, const Strategy *strategy);

// ---- param_layouts.c

// Finds the layouts in which the anchor's nest is costed, which are those of its parameters.
void autosched_find_layouts(AutoSched *s);
bool autosched_lay_out_params(AutoSched *s);
// Applies the layout of the part's output where that is no parameter.
bool autosched_lay_out_output(AutoSched *s);
// The layout of a parameter, or of a tensor between parts; NULL: row-major.
const Layout *autosched_layout_of(const AutoSched *s, const Buffer *buffer);
bool autosched_is_link(const AutoSched *s, const Buffer *buffer); // is it a tensor between parts?
// The number of the parameter that has this buffer; -1: none has.
int autosched_param_of(const AutoSched *s, const Buffer *buffer);
// The expression (axis d // cut) % radix; a cut of 0 or 1 leaves out the division, a radix of 0 or
// 1 the remainder.
const LayoutExpr *autosched_digit(Context *context, int d, int64_t cut, int64_t radix);

// ---- bands.c

// Sets the physical extents of the anchor's result to those within a band.
void autosched_band_extents(const AutoSched *s, const Layout *layout, int64_t *extents, int rank);

// ---- panels.c

// The position of the loop over panels of the vector axis among the loops outside the tiles: before
// axis `axes[at]`, of which `inside` iterations run for one panel after the other.
typedef struct PanelPlace {
  int count, axes[NEST_MAX_AXES]; // outer spatial axes in order, also of flat rows
  int at;                         // position in `axes`; `count` is after all of them
  int64_t inside;
} PanelPlace;

// The read of the anchor's nest that is a constant in panels which no cache holds until the next
// run, and which several rows use; -1: none is.
int autosched_streamed(const AutoSched *s);
// The cheapest position; of several equally cheap ones, the innermost.
PanelPlace autosched_place_panels(const AutoSched *s);
// In how many parts the reduction takes the fewest cycles; 1: whole.
int64_t autosched_reduction_parts(const AutoSched *s);

// ---- Strategies: each makes all steps of a kernel, or fails when a step is refused

// tile_strategy.c: one reduction, in register tiles. In parts of a kernel, the steps that add
// blocks, those that change layouts, and those that change loops are made for all parts in turn.
bool autosched_tiled(AutoSched *s);
bool autosched_tiled_blocks(AutoSched *s);
bool autosched_tiled_layouts(AutoSched *s);
bool autosched_tiled_loops(AutoSched *s);
// Vectors along memory for an elementwise block (elementwise_strategy.c).
bool autosched_in_vectors(AutoSched *s, BlockRef block);

// The loops of a kernel in tiles.
typedef struct TileLoops {
  LoopRef outer[2 * NEST_MAX_AXES];
  int outer_count;
  int row_loops; // the last of them, which run over blocks of rows that are cut into tiles
  int panel;     // the innermost of them that moves the panel of the vector axis
  bool streams;  // do all iterations up to that one have panels of their own?
  LoopRef steps; // of the reduction, each of a few products of the tile; NULL: none
} TileLoops;

// Makes the loops of autosched_tiled_loops but for the parallel ones.
bool autosched_tile_loops(AutoSched *s, TileLoops *out);
// Prefetches the panels of each iteration of the loop in the iteration before, where they stream.
void autosched_prefetch_panels(AutoSched *s, const TileLoops *loops, LoopRef loop);
// cut_reduction.c: the same for a reduction in parts. False, with everything as it was, where the
// reduction is better whole.
bool autosched_cut_reduction(AutoSched *s);
// row_strategy.c: all blocks of a function row by row, reductions in vectors across their own axes.
typedef struct Rows Rows;
bool autosched_rows(AutoSched *s);
Rows *autosched_rows_blocks(AutoSched *s); // NULL: refused
bool autosched_rows_layouts(Rows *rows);
// Moves the blocks, the last first, into a loop over bands; the last one only when `all` is true.
bool autosched_rows_move(Rows *rows, LoopRef band, bool all);
bool autosched_rows_loops(Rows *rows);
// choice_axes.c: a block whose value is chosen by residues of axes, without reductions.
bool autosched_choice_axes(AutoSched *s);
// transpose_strategy.c: a block that reads tensors along another axis than its output's last.
bool autosched_transposed(AutoSched *s);
// elementwise_strategy.c: blocks in vectors along memory, where that is possible.
bool autosched_elementwise(AutoSched *s);

#endif
