// SPDX-License-Identifier: Apache-2.0
// Tensor expressions, the form in which graph operators are defined (compare TVM's `te`). A stage
// is a pure function from an index to a value of earlier tensors, with or without a reduction.
// `te_prim_func` makes a tensor program of the stages.
#ifndef PLEAT_TE_H
#define PLEAT_TE_H

#include "arith/arith.h"

enum { TE_MAX_RANK = 12 };

// The work of a transform of tiles when the axes that choose its formulas are unrolled.
typedef struct TeTransform {
  double operations; // for each element that it writes
  uint32_t axes;     // the set of axes whose residues choose between formulas
  int streams;       // places in memory that the elements of a tile are read from or written to
} TeTransform;

// One computation of one tensor, which becomes one block. Every tensor is a Buffer: an input, or
// the output of a stage.
typedef struct OpaqueCall OpaqueCall; // graph/opaque.h
typedef struct TeStage {
  Str name;
  Buffer *output;
  int axis_count, reduce_count;
  BlockVar *axes; // one spatial axis for each output axis, then the reduction or update axes
  Expr *init;     // NULL without reduction and updates
  // The value. In a reduction it contains the value so far, which is the output at the axes:
  // load(output, axes) + a[…] * b[…].
  Expr *value;
  Expr **indices; // where it is stored: the axes, or an ordered stage's targets
  bool ordered;   // see te_ordered
  // A stage that runs a whole tensor program, whose parameters are the buffers that it reads and
  // then the output. It is ordered too; its init and value are 0. NULL for other stages.
  PrimFunc *program;
  // A stage for output number `call_output` of a function outside of the graph. It is ordered too;
  // its init and value are 0. That of output 0 reads the inputs of the call; that of another output
  // reads output 0, and is set when that is. NULL for other stages.
  const OpaqueCall *call;
  int call_output;
  Expr *outside; // of a stage that takes a box of a tensor: the value of all elements of that
                 // tensor outside of the box, as the user states it; NULL: not stated
  const TeTransform *transform; // NULL: the stage is no transform of tiles
} TeStage;

typedef struct Te {
  Context *context;
  Array(Buffer *) inputs;
  Array(TeStage *) stages; // in order of computation
  Array(Buffer *) outputs;
  ObjectPool stage_pool, buffer_pool; // of the stages, their outputs, and the inputs
} Te;

Te *te_new(Context *context);
Buffer *te_input(Te *te, const char *name, DType type, Expr *const *shape, int rank);

// To build a stage, te_axes makes its axes, and te_compute or te_reduce gives it a value over them.
typedef struct TeAxes {
  int rank;
  Expr *at[TE_MAX_RANK];
} TeAxes;
TeAxes te_axes(Te *te, Expr *const *shape, int rank);
Buffer *te_compute(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                   Expr *value);
Expr *te_reduce_axis(Te *te, const char *name, Expr *extent);
// Stores init in the output, then combine(output, value) for each point of the reduce axes.
// `combine` is EXPR_ADD, EXPR_MUL, EXPR_MIN or EXPR_MAX, and `init` is its neutral element; without
// axes the output is the value. Sums and products of floats under 32 bits are computed in float32,
// and a further stage rounds them once.
typedef struct TeReduction {
  ExprOp combine;
  Expr *init;
  int count;
  Expr *axes[TE_MAX_RANK], *extents[TE_MAX_RANK];
} TeReduction;
Buffer *te_reduce(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                  const TeReduction *reduction, Expr *value);
Expr *te_at(Te *te, Buffer *tensor, Expr *const *indices);

// A computation that would be too slow as an expression for each element: scattering, running sums,
// greedy choices. First output[axes] = init for all axes; then, for each point of the update axes
// in order (the first axis outermost), output[targets] = value, where the value may read any
// element of the output. A target that is its own axis becomes a loop outside of the updates; every
// other target must be inside its axis.
typedef struct TeUpdates {
  int count;
  Expr *axes[TE_MAX_RANK], *extents[TE_MAX_RANK];
} TeUpdates;
// A stage whose updates te_set_update defines by their targets and value.
TeStage *te_ordered(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                    const TeUpdates *updates, Expr *init);
void te_set_update(Te *te, TeStage *stage, Expr *const *targets, Expr *value);

// A stage with these axes and reduction axes, whose init (NULL without a reduction) and value the
// caller sets: they are stored as they are, in the element type of the output.
TeStage *te_stage(Te *te, const char *name, DType type, Expr *const *shape, const TeAxes *axes,
                  const TeUpdates *reduction);
// A stage of the same name and element type with these axes, and the same reduction axes and init;
// the caller sets the value.
TeStage *te_stage_like(Te *te, const TeStage *stage, Expr *const *shape, const TeAxes *axes);
TeStage *te_with_value(Context *context, const TeStage *stage, Expr *value);
// The expression over the stage's axes at these indices, one for each axis of the output.
Expr *te_expr_at(Context *context, const TeStage *stage, Expr *e, Expr *const *indices);

// The loops and the block of a stage; for an ordered stage two nests, the init and the updates.
Stmt *te_stage_stmt(Context *context, const TeStage *stage);
// The block of a stage that is not ordered, without its regions and its init.
Block *te_stage_block(Context *context, const TeStage *stage);
// The tensor program with one block for each stage. Its parameters are the inputs and then the
// outputs; the root block allocates the other stages' buffers.
PrimFunc *te_prim_func(Te *te, const char *name);

#endif
