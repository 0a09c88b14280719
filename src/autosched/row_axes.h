// SPDX-License-Identifier: Apache-2.0
// Kernels whose blocks run row by row: which axes make the rows, whether vectors hold elements of
// one row or of several rows, and the cost of both.
#ifndef PLEAT_ROW_AXES_H
#define PLEAT_ROW_AXES_H

#include "autosched/nest.h"

// The rows of a kernel's blocks, by the dimensions of its output. A row is what the results of the
// reductions have one element for.
typedef struct RowAxes {
  int64_t cuts[TE_MAX_RANK]; // index // cut is a part of the row's index; 0: one row has all values
  int inner;                 // the dimension along which the output is contiguous; -1: none
  int64_t inner_extent;      // how many of its values are contiguous, padding included
  Map inner_of;              // the data of a buffer -> 1 + its dimension that moves as `inner`
} RowAxes;

// Finds the rows of blocks in order, of which the last writes the output in layout `output`. False
// when a reduction's result is read at an index that is not made of axes of the output.
bool row_axes_find(Context *context, const Block *const *blocks, int count, const Layout *output,
                   RowAxes *out);
// The part of the row's index within a physical dimension of the output: the dimension is divided
// into one of *rows values, which tells rows apart, and one of *within values, of which all belong
// to one row. False when it is no digit of one dimension, or is not divided evenly.
bool row_axes_of_physical(Context *context, const Buffer *buffer, const Layout *layout,
                          const RowAxes *axes, int physical, int64_t *rows, int64_t *within);
bool row_axes_divide(Context *context, const Buffer *buffer, const Layout *layout,
                     const RowAxes *axes); // all of them
// The layout of a result between the blocks that suits their vectors: the dimension that moves as
// the output is contiguous is last, in whole blocks where the output has padding along it. NULL is
// row-major.
const Layout *row_axes_layout(Context *context, const RowAxes *axes, const Buffer *buffer);

// How the blocks are computed in vectors.
typedef struct RowCost {
  double cycles;
  bool across; // vectors hold elements of several rows
} RowCost;
// The cheaper way, without the cost of moving the tensors from and to memory. Entry i of `nests`
// and `layouts` is that of block i; a nest that was not read has no axes.
RowCost row_axes_cost(Context *context, const HostMachine *machine, const Nest *nests,
                      const NestLayouts *layouts, int count, const RowAxes *axes);

#endif
