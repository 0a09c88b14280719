// SPDX-License-Identifier: Apache-2.0
// Shared by the files that make the model's steps.
#ifndef PLEAT_AUTOSCHED_INTERNAL_H
#define PLEAT_AUTOSCHED_INTERNAL_H

#include "autosched/auto_schedule.h"

typedef struct Model {
  Context *context;
  const HostMachine *machine;
  Schedule *sch;
  PrimFunc *func;
  const KernelParam *params;
  KernelChoice *choice;
  BlockRef anchor, tail; // the reduction (NULL without) and the block that writes the output
  BlockRef updates;      // of elements that the tail sets, in order; NULL without
  int reductions;        // blocks that are; the anchor is the last
  Nest nest;             // of the anchor before any layout was changed
  NestLayouts layouts;
  Tile tile;           // the cheapest
  const char *refusal; // of the tile, where no step says it
} Model;

#define TRY(step)                                                                                  \
  do {                                                                                             \
    if (!(step)) return false;                                                                     \
  } while (0)

bool model_blocks(Model *m, BlockRefs *blocks); // of the function, in order
bool model_reduces(const Model *m, BlockRef block);
bool model_lay_out_params(Model *m);
int64_t model_loop_extent(const Model *m, LoopRef loop);
// Splits `loop` by `size`; a whole loop becomes the inner part, with a unit loop outside.
bool model_split(Model *m, LoopRef loop, int64_t size, LoopRef *outer, LoopRef *inner);

// Where the panels of the vector axis stand among the loops outside the tiles: before axis `axis`,
// of which `inside` iterations are walked for one panel after the other.
typedef struct PanelPlace {
  int count, axes[NEST_MAX_AXES]; // outer spatial axes in order; of flat rows the outer one too
  int at;                         // position in `axes`; count: after all
  int64_t inside;
} PanelPlace;

// panels.c: the cheapest place; of equals the innermost.
PanelPlace model_place_panels(const Model *m);

// rows.c: all blocks of a function row by row, reductions in vectors across their own axes.
bool model_rows(Model *m);

#endif
