// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the strategies of the auto-scheduler.
#ifndef PLEAT_AUTOSCHED_INTERNAL_H
#define PLEAT_AUTOSCHED_INTERNAL_H

#include "autosched/autosched.h"

typedef struct AutoSched {
  Context *context;
  const HostMachine *machine;
  Schedule *sch;
  PrimFunc *func;
  const KernelParam *params;
  const Strategies *planned; // NULL: the planner found none
  KernelChoice *choice;
  BlockRef anchor, tail; // the reduction (NULL: none) and the block that writes the output
  int output;            // the parameter that the tail writes; -1: none
  BlockRef updates;      // ordered updates of the elements that the tail sets; NULL: none
  int reductions;        // how many blocks are reductions; the anchor is the last of them
  Nest nest;             // of the anchor, before any layout was changed
  NestLayouts layouts;
  const char *refusal; // why no tile was found, when no step reports it
} AutoSched;

#define TRY(step)                                                                                  \
  do {                                                                                             \
    if (!(step)) return false;                                                                     \
  } while (0)

// ---- autosched.c

bool autosched_blocks(AutoSched *s, BlockRefs *blocks); // of the function, in order
bool autosched_reduces(const AutoSched *s, BlockRef block);
// The number of elements in a vector of the widest values that a block loads, stores or computes as
// floats.
int autosched_lanes(const AutoSched *s, BlockRef block);
int64_t autosched_loop_extent(const AutoSched *s, LoopRef loop);
// Splits `loop` by `size`. When `size` is the whole loop, the loop becomes the inner part, and a
// unit loop is added outside.
bool autosched_split(AutoSched *s, LoopRef loop, int64_t size, LoopRef *outer, LoopRef *inner);

// ---- strategies.c

// The cost of one strategy; negative when the strategy does not apply.
double strategy_cost(Context *context, const HostMachine *machine, const Nest *nest,
                     const NestLayouts *layouts, const Strategy *strategy);

// ---- param_layouts.c

// Finds the layouts in which the anchor's nest is costed, which are those of its parameters.
void autosched_find_layouts(AutoSched *s);
bool autosched_lay_out_params(AutoSched *s);
// The expression (axis d // cut) % radix; a cut of 0 or 1 leaves out the division, a radix of 0 or
// 1 the remainder.
const LayoutExpr *autosched_digit(Context *context, int d, int64_t cut, int64_t radix);

// ---- panels.c

// The position of the loop over panels of the vector axis among the loops outside the tiles: before
// axis `axes[at]`, of which `inside` iterations run for one panel after the other.
typedef struct PanelPlace {
  int count, axes[NEST_MAX_AXES]; // outer spatial axes in order, also of flat rows
  int at;                         // position in `axes`; `count` is after all of them
  int64_t inside;
} PanelPlace;

// The cheapest position; of several equally cheap ones, the innermost.
PanelPlace autosched_place_panels(const AutoSched *s);

// ---- Strategies: each makes all steps of a kernel, or fails when a step is refused

// tile_strategy.c: one reduction, in register tiles.
bool autosched_tiled(AutoSched *s);
// row_strategy.c: all blocks of a function row by row, reductions in vectors across their own axes.
bool autosched_rows(AutoSched *s);
// choice_axes.c: a block whose value is chosen by residues of axes, without reductions.
bool autosched_choice_axes(AutoSched *s);
// transpose_strategy.c: a block that reads tensors along another axis than its output's last.
bool autosched_transposed(AutoSched *s);
// elementwise_strategy.c: blocks in vectors along memory, where that is possible.
bool autosched_elementwise(AutoSched *s);

#endif
