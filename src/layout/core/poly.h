// SPDX-License-Identifier: Apache-2.0
// Polynomials with 64-bit coefficients over numbered variables, for symbolic extents and for the
// proofs of certificates. The caller knows what the variables are. A polynomial is a value of two
// words: a constant needs no memory, and adding one shares the terms of the other polynomial.
// Terms are kept in an arena and never changed. A polynomial that does not fit is POLY_NONE, which
// functions pass on.
#ifndef PLEAT_LAYOUT_CORE_POLY_H
#define PLEAT_LAYOUT_CORE_POLY_H

#include "layout/layout.h"

enum { POLY_DEGREE = 16 };

typedef struct PolyTerm {
  int64_t coefficient;
  uint16_t v[POLY_DEGREE]; // the monomial: variables + 1, descending, then zeros
} PolyTerm;

// Monomials descend, first by their greatest variables; no coefficient is 0.
typedef struct PolyTerms {
  int count;
  PolyTerm items[];
} PolyTerms;

typedef struct Poly {
  int64_t constant;
  const PolyTerms *terms; // those with variables: &poly_no_terms for a constant; NULL: POLY_NONE
} Poly;

extern const PolyTerms poly_no_terms;
#define POLY_NONE ((Poly){0, NULL})

static inline Poly poly_const(int64_t value) {
  return (Poly){value, &poly_no_terms};
}
static inline bool poly_fits(Poly x) {
  return x.terms != NULL;
}
// Whether it is a constant; then *value is that.
static inline bool poly_is_const(Poly x, int64_t *value) {
  *value = x.constant;
  return x.terms == &poly_no_terms;
}
static inline bool poly_is(Poly x, int64_t value) {
  return x.constant == value && x.terms == &poly_no_terms;
}
static inline bool poly_is_zero(Poly x) {
  return poly_is(x, 0);
}
Poly poly_of_term(Arena *arena, PolyTerm term);
Poly poly_variable(Arena *arena, int variable);
// a·x + b·y
Poly poly_linear(Arena *arena, Poly x, int64_t a, Poly y, int64_t b);
// x + value
Poly poly_plus(Poly x, int64_t value);
// The product, with monomials of at most `degree` variables.
Poly poly_product(Arena *arena, Poly x, Poly y, int degree);
Poly poly_times_term(Arena *arena, Poly x, const PolyTerm *term, int degree);
// x = q·y + r by the leading monomials, quotients of coefficients rounded down; r need not be in
// [0, y).
void poly_divide(Arena *arena, Poly x, Poly y, Poly *q, Poly *r);
// x/divisor, or POLY_NONE where a coefficient is no multiple of it.
Poly poly_exact(Arena *arena, Poly x, int64_t divisor);
// False where one of them does not fit.
bool poly_same(Poly x, Poly y);
// Whether no coefficient is negative (positive), and whether x - 1 has none that is negative. So
// the polynomial has that sign where no variable is negative. False where it does not fit.
bool poly_nonnegative(Poly x);
bool poly_nonpositive(Poly x);
bool poly_positive(Poly x);
// The number of terms, with that of the constant where it is not 0, and term i, descending: the
// constant is last.
static inline int poly_count(Poly x) {
  return x.terms->count + (x.constant != 0);
}
static inline PolyTerm poly_term(Poly x, int i) {
  return i < x.terms->count ? x.terms->items[i] : (PolyTerm){.coefficient = x.constant};
}
// Negative, 0 or positive: the order of the monomials.
int monomial_compare(const PolyTerm *a, const PolyTerm *b);
// The monomial of `a` without that of `b`; false when it does not contain that.
bool monomial_divide(const PolyTerm *a, const PolyTerm *b, PolyTerm *out);

#endif
