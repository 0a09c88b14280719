// SPDX-License-Identifier: Apache-2.0
// Polynomials over symbols, for symbolic extents. A symbol C with C >= min and multiple m enters as
// m·(t + ⌈min/m⌉) with a variable t >= 0, so a polynomial whose coefficients are all nonnegative is
// nonnegative. NULL stands for a polynomial that does not fit; functions pass it on.
#ifndef PLEAT_LAYOUT_POLY_H
#define PLEAT_LAYOUT_POLY_H

#include "layout/core/core.h"

enum { MAX_VARIABLES = 16 };

typedef struct PolyTerm {
  uint64_t monomial; // four bits of exponent for each variable
  int64_t coefficient;
} PolyTerm;

typedef struct Poly {
  int count;
  PolyTerm *terms; // monomials descending, coefficients not 0
} Poly;

typedef struct Polys {
  Context *context;
  Arena *arena; // scratch
  LayoutFacts facts;
  const Poly *small[3]; // -1, 0, 1
  int variable_count;
  struct {
    const LayoutExpr *e; // what the variable comes from: e = multiple · (t + start)
    int64_t multiple, start;
  } variables[MAX_VARIABLES];
} Polys;

Polys layout_polys_new(Context *context, LayoutFacts facts);
const Poly *layout_poly_const(Polys *s, int64_t value);
// a·x + b·y
const Poly *layout_poly_linear(Polys *s, const Poly *x, int64_t a, const Poly *y, int64_t b);
const Poly *layout_poly_times(Polys *s, const Poly *x, int64_t a); // a·x
const Poly *layout_poly_plus(Polys *s, const Poly *x, int64_t value);
const Poly *layout_poly_product(Polys *s, const Poly *x, const Poly *y);
bool layout_poly_same(const Poly *x, const Poly *y);
bool layout_poly_is_const(const Poly *x, int64_t *value);
bool layout_poly_is_zero(const Poly *x);
// Whether it is proved for all values of the symbols; false says nothing.
bool layout_poly_nonnegative(const Poly *x);
bool layout_poly_nonpositive(Polys *s, const Poly *x);
bool layout_poly_positive(Polys *s, const Poly *x);
// min(a, b) or max(a, b), by a variable of its own where they cannot be compared.
const Poly *layout_poly_extreme(Polys *s, LayoutOp op, const Poly *a, const Poly *b);
// x = q·y + r by the leading monomials; r need not lie in [0, y).
void layout_poly_divide(Polys *s, const Poly *x, const Poly *y, const Poly **q, const Poly **r);
// x/y where y divides x, otherwise NULL.
const Poly *layout_poly_exact(Polys *s, const Poly *x, const Poly *y);
// ⌊x/y⌋ for y > 0, with a variable of its own where y does not divide x.
const Poly *layout_poly_floor(Polys *s, const Poly *x, const Poly *y);
// The value of an expression of symbols; NULL where it reads axes.
const Poly *layout_poly_of(Polys *s, const LayoutExpr *e);
const LayoutExpr *layout_poly_expr(Polys *s, const Poly *x); // NULL where it does not fit

#endif
