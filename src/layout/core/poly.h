// SPDX-License-Identifier: Apache-2.0
// Polynomials with 64-bit coefficients over numbered variables, for symbolic extents and for the
// proofs of certificates. The caller knows what the variables are. NULL is a polynomial that
// does not fit; functions pass it on. A polynomial is never changed and may be shared.
#ifndef PLEAT_LAYOUT_CORE_POLY_H
#define PLEAT_LAYOUT_CORE_POLY_H

#include "layout/layout.h"

enum { POLY_DEGREE = 16 };

typedef struct PolyTerm {
  int64_t coefficient;
  uint16_t v[POLY_DEGREE]; // the monomial: variables + 1, descending, then zeros
} PolyTerm;

typedef struct Poly {
  int count;
  PolyTerm *terms; // monomials descending, first by their greatest variables; no coefficient is 0
} Poly;

const Poly *poly_const(Arena *arena, int64_t value);
const Poly *poly_of_term(Arena *arena, PolyTerm term);
const Poly *poly_variable(Arena *arena, int variable);
// a·x + b·y
const Poly *poly_linear(Arena *arena, const Poly *x, int64_t a, const Poly *y, int64_t b);
// The product, with monomials of at most `degree` variables.
const Poly *poly_product(Arena *arena, const Poly *x, const Poly *y, int degree);
const Poly *poly_times_term(Arena *arena, const Poly *x, const PolyTerm *term, int degree);
// x = q·y + r by the leading monomials, quotients of coefficients rounded down; r need not be in
// [0, y).
void poly_divide(Arena *arena, const Poly *x, const Poly *y, const Poly **q, const Poly **r);
// x/divisor, or NULL where a coefficient is no multiple of it.
const Poly *poly_exact(Arena *arena, const Poly *x, int64_t divisor);
bool poly_same(const Poly *x, const Poly *y);
bool poly_is_const(const Poly *x, int64_t *value);
static inline bool poly_is_zero(const Poly *x) {
  return x->count == 0;
}
// The coefficient of the monomial without variables.
static inline int64_t poly_constant(const Poly *x) {
  return x->count && !x->terms[x->count - 1].v[0] ? x->terms[x->count - 1].coefficient : 0;
}
// Whether no coefficient is negative.
bool poly_nonnegative(const Poly *x);
// Negative, 0 or positive: the order of the monomials.
int monomial_compare(const PolyTerm *a, const PolyTerm *b);
// The monomial of `a` without that of `b`; false when it does not contain that.
bool monomial_divide(const PolyTerm *a, const PolyTerm *b, PolyTerm *out);

#endif
