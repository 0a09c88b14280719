// SPDX-License-Identifier: Apache-2.0
// Polynomials over symbols, for symbolic extents. A symbol C with C >= min and multiple m enters as
// m·(t + ⌈min/m⌉) with a variable t >= 0, so a polynomial whose coefficients are all nonnegative is
// nonnegative. NULL stands for a polynomial that does not fit; functions pass it on.
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
static inline const Poly *layout_poly_const(Polys *s, int64_t value) {
  return poly_const(s->arena, value);
}
// a·x + b·y
static inline const Poly *layout_poly_linear(Polys *s, const Poly *x, int64_t a, const Poly *y,
                                             int64_t b) {
  return poly_linear(s->arena, x, a, y, b);
}
// a·x
static inline const Poly *layout_poly_times(Polys *s, const Poly *x, int64_t a) {
  return poly_linear(s->arena, x, a, x, 0);
}
static inline const Poly *layout_poly_plus(Polys *s, const Poly *x, int64_t value) {
  return poly_linear(s->arena, x, 1, poly_const(s->arena, 1), value);
}
static inline const Poly *layout_poly_product(Polys *s, const Poly *x, const Poly *y) {
  return poly_product(s->arena, x, y, POLY_DEGREE);
}
// x = q·y + r as in poly_divide.
static inline void layout_poly_divide(Polys *s, const Poly *x, const Poly *y, const Poly **q,
                                      const Poly **r) {
  poly_divide(s->arena, x, y, q, r);
}
// Whether it is proved for all values of the symbols, as by poly_nonnegative; false says nothing.
bool layout_poly_nonpositive(Polys *s, const Poly *x);
bool layout_poly_positive(Polys *s, const Poly *x);
// min(a, b) or max(a, b), by a variable of its own where they cannot be compared.
const Poly *layout_poly_extreme(Polys *s, LayoutOp op, const Poly *a, const Poly *b);
// x/y where y divides x, otherwise NULL.
const Poly *layout_poly_exact(Polys *s, const Poly *x, const Poly *y);
// ⌊x/y⌋ for y > 0, with a variable of its own where y does not divide x.
const Poly *layout_poly_floor(Polys *s, const Poly *x, const Poly *y);
// The value of an expression of symbols; NULL where it reads axes.
const Poly *layout_poly_of(Polys *s, const LayoutExpr *e);
const LayoutExpr *layout_poly_expr(Polys *s, const Poly *x); // NULL where it does not fit

#endif
