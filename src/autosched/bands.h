// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files that schedule a kernel of several parts in bands.
#ifndef PLEAT_BANDS_H
#define PLEAT_BANDS_H

#include "autosched/internal.h"

enum { MOST_PARTS = 8 };

// The dimensions are those of the output of the last block. A dimension is cut into bands when each
// block computes its results for one index of the dimension from those of other blocks at the same
// index.
typedef struct Banding {
  Context *context;
  const HostMachine *machine;
  PrimFunc *func;
  const KernelParam *params;
  const KernelPart *planned; // by part
  Schedule *sch;
  KernelChoice *choice; // of the whole
  int count;            // of parts
  AutoSched parts[MOST_PARTS];
  KernelChoice choices[MOST_PARTS];
  Rows *rows[MOST_PARTS]; // NULL: the part runs in tiles
  Nest nests[MOST_PARTS]; // of the anchors of parts in tiles, over whole dimensions
  int rank;               // how many dimensions there are
  bool cut[TE_MAX_RANK];  // may the dimension be cut?
  int64_t whole[TE_MAX_RANK], units[TE_MAX_RANK]; // extents, and the blocks that stay whole
  Map dims; // the data of a tensor between blocks -> TensorDims
  Bands bands;
} Banding;

// Which dimension each index of a tensor between blocks runs over; -1: none.
typedef struct TensorDims {
  const Buffer *buffer;
  signed char of[TE_MAX_RANK];
} TensorDims;

// ---- band_sizes.c

// Finds which dimensions may be cut, and their units. False where there is none.
bool bands_find_dimensions(Banding *banding);
// Sets the extents of the dimensions within a band to those of the cheapest bands. Returns the
// cycles that they are predicted to save; 0 or less: none.
double bands_choose(Banding *banding);
// The nest of a part's anchor within a band.
Nest bands_nest(const Banding *banding, int part);

#endif
