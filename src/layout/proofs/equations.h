// SPDX-License-Identifier: Apache-2.0
// Certificates that are equations (equations.c): how they are put together.
#ifndef PLEAT_LAYOUT_EQUATIONS_H
#define PLEAT_LAYOUT_EQUATIONS_H

#include "layout/operations/banks.h"
#include "layout/proofs/goal.h"

typedef struct Equation {
  Context *context;
  ArenaMark mark;
  Claim *claim; // CLAIM_EQUAL
} Equation;

Equation equation_begin(Context *context, LayoutFacts facts);
// The certificate; NULL: none was found. What was taken from the scratch arena is given back.
const char *equation_finish(Equation *e);
const char *equation_drop(Equation *e);                                      // NULL
const char *equation_joined(Context *context, const char *a, const char *b); // NULL if one is

const LayoutExpr *equation_number(const Equation *e, int64_t k);
const LayoutExpr *equation_op(const Equation *e, LayoutOp op, const LayoutExpr *a,
                              const LayoutExpr *b);
// The value with axis i replaced by axes[i].
const LayoutExpr *equation_at(const Equation *e, const LayoutExpr *value,
                              const LayoutExpr *const *axes, int count);
// A new axis of the box; all axes of a layout and its copies; then what is short for an expression.
const LayoutExpr *equation_axis(Equation *e, const char *prefix, const LayoutExpr *extent);
void equation_box(Equation *e, const Layout *layout, const LayoutExpr **axes);
const LayoutExpr *equation_let(Equation *e, const LayoutExpr *value);
// a = b everywhere.
void equation_pair(Equation *e, const char *name, int i, const LayoutExpr *a, const LayoutExpr *b);

// Two copies of the elements of a collision that share a place; x and y have room for the box.
bool layout_colliding_copies(const Layout *a, const LayoutAnswer *answer, int64_t *x, int64_t *y);
// Whether the sets of copies are equal, as layout_equal answered.
const char *layout_copies_certificate(Context *context, const Layout *a, const Layout *b,
                                      const LayoutAnswer *answer);

#endif
