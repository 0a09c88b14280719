// SPDX-License-Identifier: Apache-2.0
// Polynomials over symbols, for symbolic extents. A symbol C with C >= min and multiple m enters as
// m·(t + ⌈min/m⌉) with a variable t >= 0, so a polynomial whose coefficients are all nonnegative is
// nonnegative.
#ifndef PLEAT_LAYOUT_POLY_H
#define PLEAT_LAYOUT_POLY_H

#include "layout/core/core.h"

enum { MAX_VARIABLES = 16 };

typedef struct Polys {
  Context *context;
  Arena *arena; // scratch
  LayoutFacts facts;
  int variable_count;
  struct {
    const LayoutExpr *e; // what the variable comes from: e = multiple · (t + start)
    int64_t multiple, start;
  } variables[MAX_VARIABLES];
} Polys;

Polys layout_polys_new(Context *context, LayoutFacts facts);
// a·x + b·y
static inline Poly layout_poly_linear(Polys *s, Poly x, int64_t a, Poly y, int64_t b) {
  return poly_linear(s->arena, x, a, y, b);
}
// a·x
static inline Poly layout_poly_times(Polys *s, Poly x, int64_t a) {
  return poly_linear(s->arena, x, a, x, 0);
}
static inline Poly layout_poly_product(Polys *s, Poly x, Poly y) {
  return poly_product(s->arena, x, y, POLY_DEGREE);
}
// x = q·y + r as in poly_divide.
static inline void layout_poly_divide(Polys *s, Poly x, Poly y, Poly *q, Poly *r) {
  poly_divide(s->arena, x, y, q, r);
}
// min(a, b) or max(a, b), by a variable of its own where they cannot be compared.
Poly layout_poly_extreme(Polys *s, LayoutOp op, Poly a, Poly b);
// x/y where y divides x, otherwise POLY_NONE.
Poly layout_poly_exact(Polys *s, Poly x, Poly y);
// ⌊x/y⌋ for y > 0, with a variable of its own where y does not divide x.
Poly layout_poly_floor(Polys *s, Poly x, Poly y);
// The value of an expression of symbols; POLY_NONE where it reads axes.
Poly layout_poly_of(Polys *s, const LayoutExpr *e);
const LayoutExpr *layout_poly_expr(Polys *s, Poly x); // NULL where it does not fit

#endif
