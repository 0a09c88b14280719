// SPDX-License-Identifier: Apache-2.0
// Certificates that are equations (equations.c): how they are put together.
#ifndef PLEAT_LAYOUT_EQUATIONS_H
#define PLEAT_LAYOUT_EQUATIONS_H

#include "layout/operations/operations.h"
#include "layout/proofs/goal.h"

typedef struct EqualityGoal {
  Context *context;
  ArenaMark mark;
  Goal *goal; // GOAL_EQUAL
} EqualityGoal;

EqualityGoal equality_begin(Context *context, LayoutFacts facts);
// The certificate; NULL: none was found. What was taken from the scratch arena is given back.
const char *equality_finish(EqualityGoal *e);
const char *equality_drop(EqualityGoal *e);                                   // NULL
const char *certificate_pair(Context *context, const char *a, const char *b); // NULL if one is

const LayoutExpr *equality_number(const EqualityGoal *e, int64_t k);
const LayoutExpr *equality_op(const EqualityGoal *e, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b);
// The value with axis i replaced by axes[i].
const LayoutExpr *equality_at(const EqualityGoal *e, const LayoutExpr *value,
                              const LayoutExpr *const *axes, int count);
// A new axis of the box; all axes of a layout and its copies; then what is short for an expression.
const LayoutExpr *equality_axis(EqualityGoal *e, const char *prefix, const LayoutExpr *extent);
void equality_box(EqualityGoal *e, const Layout *layout, const LayoutExpr **axes);
const LayoutExpr *equality_let(EqualityGoal *e, const LayoutExpr *value);
// a = b everywhere.
void equality_pair(EqualityGoal *e, const char *name, int i, const LayoutExpr *a,
                   const LayoutExpr *b);

// Two copies of the elements of a collision that share a place; x and y have room for the box.
bool layout_colliding_copies(const Layout *a, const LayoutAnswer *answer, int64_t *x, int64_t *y);
// Whether the sets of copies are equal, as layout_equal answered.
const char *layout_copies_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutAnswer *answer);

#endif
