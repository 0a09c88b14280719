// SPDX-License-Identifier: Apache-2.0
// Relations between the layouts of two tensors: a stage computes o[i] from t[R(i)], and a layout L
// of t is stored in the order in which the stage walks o when L ∘ R is the layout of o. Layouts are
// compared as walks, which are the digits of the indices in the order of memory.
#ifndef PLEAT_PLAN_RELATIONS_H
#define PLEAT_PLAN_RELATIONS_H

#include "graph/stages.h"
#include "ir/index_map.h"

// How a stage reads a tensor: both indices as maps of one domain, the part of the stage's domain in
// which the tensor is read, moved to the origin. Axes of reductions are 0 in it.
typedef struct ReadRelation {
  int rank;                     // of the domain, which is that of the tensor that is written
  int64_t box[TE_MAX_RANK];     // its extents
  const IndexMap *read, *write; // the index of the tensor that is read, and of the one written
  int read_rank;
  int64_t read_shape[TE_MAX_RANK], write_shape[TE_MAX_RANK];
  uint32_t loose; // the set of axes that a dimension of the tensor follows, but not one to one (a
                  // window, an index that is rounded): no layout may cut them
  bool same;      // the tensor is read in place: both indices are equal
  bool whole;     // each element of the tensor that is read is met exactly once
  bool bijective; // and so is each element of the tensor that is written
} ReadRelation;

// The relation of a stage to a tensor that it reads; NULL when there is none: extents are not
// known, an index depends on data, or several axes move one dimension in no order. In the scratch
// arena.
ReadRelation *relation_of(Context *context, const Stage *stage, const StageTensor *tensor);

// A box of a stage's output in which the stage computes one expression without a condition, such as
// an operand of a concatenation.
typedef struct StagePiece {
  Expr *value;               // over the axes of the stage
  const StageTensor *tensor; // when the value is one load of this tensor; NULL: it is none
  ReadRelation *relation;    // of the load; NULL: there is none
  bool computes;             // the value is no load, and reads tensors
  int64_t low[TE_MAX_RANK], box[TE_MAX_RANK]; // the first index of the box, and its extents
  // Set by planner_find_pieces: whether the tensor may be written in place; the stage that computes
  // the piece by itself, and the relation of its output.
  bool placeable;
  Stage *copy;
  ReadRelation *copy_relation;
} StagePiece;
typedef Array(StagePiece) StagePieces;
// Cuts the output of a stage at its outermost conditions, into an array that may have had other
// pieces. False when the conditions do not cut it into boxes of which no two meet, or cut it into
// too many.
bool stage_pieces(Context *context, const Stage *stage, StagePieces *out);

// The digits (axis // cut) % extent of a domain in the order in which memory has them, without
// digits that are always 0. Digits that follow one another in memory as on their axis are one
// digit.
typedef struct WalkDigit {
  int axis;
  int64_t cut, extent; // of the topmost digit of an axis with its padding
} WalkDigit;
enum { WALK_MAX_DIGITS = 32 };
typedef struct LayoutWalk {
  int count;
  WalkDigit digits[WALK_MAX_DIGITS];
} LayoutWalk;
bool walk_equal(const LayoutWalk *a, const LayoutWalk *b);
// The innermost digit, which a row runs along; NULL: the walk has one element.
const WalkDigit *walk_row(const LayoutWalk *walk);
// A copy that has only the digits that there are, and so cannot be assigned.
const LayoutWalk *walk_keep(Context *context, const LayoutWalk *walk);

// Is the layout an array in plain memory, with static extents and each element once?
bool layout_is_array(const Layout *layout);
// The walk of a layout (NULL: row-major) on its own shape. False when its memory is not the
// row-major array of digits of its axes.
bool layout_walk(Context *context, const Layout *layout, const int64_t *shape, int rank,
                 LayoutWalk *out);
// The walks of both tensors over the domain in these layouts. Axes that do not move the tensor that
// is read are left out of the other walk. False when a layout has no walk there, for example
// because the domain begins within a block.
bool relation_read_walk(Context *context, const ReadRelation *relation, const Layout *layout,
                        LayoutWalk *out);
bool relation_write_walk(Context *context, const ReadRelation *relation, const Layout *layout,
                         LayoutWalk *out);

// The index of the tensor that is read (`forward`) in terms of the index of the one that is
// written, or the reverse, into index[rank of the tensor that has the layout]; axes that the other
// tensor does not have are 0. False unless the layout has a walk over the domain, so that it cuts
// no axis that the other tensor follows loosely.
bool relation_indices(Context *context, const ReadRelation *relation, bool forward,
                      const Layout *layout, const LayoutExpr **index);
// The walk over the tensor that is written (`forward`) for a layout of the tensor that is read, or
// the reverse, with which both are walked alike. False when there is none.
bool relation_transfer(Context *context, const ReadRelation *relation, bool forward,
                       const Layout *layout, LayoutWalk *out);
// The outputs of a layout's map with this walk; axes that have no digit are put after the axis
// before them. Returns their number; 0 when the digits do not tell all elements apart.
int walk_outputs(Context *context, const LayoutWalk *walk, const int64_t *shape, int rank,
                 const LayoutExpr **outputs);

#endif
