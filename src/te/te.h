// SPDX-License-Identifier: Apache-2.0
// Tensor expressions: stages, each a pure function from an index to a value of earlier tensors,
// with or without a reduction. Operators are defined with these; `te_prim_func` makes the tensor
// program.
#ifndef PLEAT_TE_H
#define PLEAT_TE_H

#include "arith/arith.h"

enum { TE_MAX_RANK = 12 };

// A tensor is a Buffer that some stage writes, or an input.
typedef struct TeStage {
  Str name;
  Buffer *output;
  int axis_count, reduce_count;
  BlockVar *axes; // spatial, one per axis of the output, then the reductions or updates
  Expr *init;     // NULL without a reduction and without updates
  // The value; in a reduction, the update expression, in which the output at the axes is the value
  // so far: load(output, axes) + a[…] * b[…].
  Expr *value;
  Expr **indices; // where it is written: the axes as they are, but for an ordered stage's updates
  bool ordered;   // every element is init; then updates one after the other (te_ordered)
} TeStage;

typedef struct Te {
  Context *context;
  Array(Buffer *) inputs;
  Array(TeStage *) stages; // in order of computation
  Array(Buffer *) outputs;
} Te;

Te *te_new(Context *context);
Buffer *te_input(Te *te, const char *name, DType type, Expr *const *shape, int rank);

// Building a stage: te_begin gives the axes; set a value (te_compute) or a reduction.
typedef struct TeAxes {
  int rank;
  Expr *at[TE_MAX_RANK];
} TeAxes;
TeAxes te_axes(Te *te, Expr *const *shape, int rank);
Buffer *te_compute(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                   Expr *value);
Expr *te_reduce_axis(Te *te, const char *name, Expr *extent);
// output = init, then output = combine(output, value) over all reduce axes. `combine` is EXPR_ADD,
// EXPR_MUL, EXPR_MIN, EXPR_MAX, and `init` its neutral element: over no axes it is the value. Sums
// and products of floats under 32 bits are taken in float32 and rounded once, by a further stage.
typedef struct TeReduction {
  ExprOp combine;
  Expr *init;
  int count;
  Expr *axes[TE_MAX_RANK], *extents[TE_MAX_RANK];
} TeReduction;
Buffer *te_reduce(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                  const TeReduction *reduction, Expr *value);
Expr *te_at(Te *te, Buffer *tensor, Expr *const *indices);

// What no expression of one element says in reasonable time: scattering, running sums, greedy
// choices. output[axes] = init everywhere, then, for each point of the update axes, the first
// outermost, output[targets] = value, where the value may read the output anywhere. A target that
// is its axis itself is gone through outside of the updates; every other must lie within it.
typedef struct TeUpdates {
  int count;
  Expr *axes[TE_MAX_RANK], *extents[TE_MAX_RANK];
} TeUpdates;
// The stage and its output; te_set_update gives it targets and value.
TeStage *te_ordered(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                    const TeUpdates *updates, Expr *init);
void te_set_update(Te *te, TeStage *stage, Expr *const *targets, Expr *value);

// The loops and the block of one stage; of an ordered one, those of its init, then its updates.
Stmt *te_stage_stmt(Context *context, const TeStage *stage);
// The tensor program: one block a stage, parameters are the inputs, then the outputs; stages that
// are not outputs become allocations of the root block.
PrimFunc *te_prim_func(Te *te, const char *name);

#endif
