// SPDX-License-Identifier: Apache-2.0
// Implements polynomials as sorted lists of terms, whose monomials are sorted lists of variables:
// sums merge lists of terms, products merge monomials, and division takes away leading monomials.
#include "layout/core/poly.h"

// ---- Monomials ---------------------------------------------------------------------------------

int monomial_compare(const PolyTerm *a, const PolyTerm *b) {
  for (int i = 0; i < POLY_DEGREE; i++) {
    if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
    if (!a->v[i]) return 0;
  }
  return 0;
}

static bool monomial_product(const PolyTerm *a, const PolyTerm *b, int degree, PolyTerm *out) {
  int i = 0, j = 0, n = 0;
  memset(out->v, 0, sizeof out->v);
  for (;; n++) {
    uint16_t x = i < POLY_DEGREE ? a->v[i] : 0, y = j < POLY_DEGREE ? b->v[j] : 0;
    if (!x && !y) return true;
    if (n == degree) return false;
    out->v[n] = x >= y ? x : y;
    i += x >= y;
    j += x < y;
  }
}

bool monomial_divide(const PolyTerm *a, const PolyTerm *b, PolyTerm *out) {
  int n = 0, j = 0;
  memset(out->v, 0, sizeof out->v);
  for (int i = 0; i < POLY_DEGREE && a->v[i]; i++)
    if (j < POLY_DEGREE && a->v[i] == b->v[j])
      j++;
    else
      out->v[n++] = a->v[i];
  return j == POLY_DEGREE || !b->v[j];
}

// ---- Building ----------------------------------------------------------------------------------

const PolyTerms poly_no_terms = {0};

static PolyTerms *new_terms(Arena *arena, int count) {
  PolyTerms *terms = arena_take(arena, sizeof *terms + sizeof *terms->items * (size_t)count);
  terms->count = 0;
  return terms;
}

static void append(PolyTerms *terms, const PolyTerm *monomial, int64_t coefficient) {
  if (!coefficient) return;
  terms->items[terms->count] = *monomial;
  terms->items[terms->count++].coefficient = coefficient;
}

static Poly poly_of(int64_t constant, const PolyTerms *terms) {
  return (Poly){constant, terms->count ? terms : &poly_no_terms};
}

Poly poly_of_term(Arena *arena, PolyTerm term) {
  if (!term.v[0] || !term.coefficient) return poly_const(term.coefficient);
  PolyTerms *terms = new_terms(arena, 1);
  append(terms, &term, term.coefficient);
  return poly_of(0, terms);
}

Poly poly_variable(Arena *arena, int variable) {
  return poly_of_term(arena, (PolyTerm){.coefficient = 1, .v = {(uint16_t)(variable + 1)}});
}

// ---- Questions ---------------------------------------------------------------------------------

bool poly_same(Poly x, Poly y) {
  if (!poly_fits(x) || !poly_fits(y) || x.constant != y.constant) return false;
  if (x.terms == y.terms) return true;
  if (x.terms->count != y.terms->count) return false;
  for (int i = 0; i < x.terms->count; i++)
    if (x.terms->items[i].coefficient != y.terms->items[i].coefficient ||
        monomial_compare(&x.terms->items[i], &y.terms->items[i]))
      return false;
  return true;
}

bool poly_nonnegative(Poly x) {
  if (!poly_fits(x) || x.constant < 0) return false;
  for (int i = 0; i < x.terms->count; i++)
    if (x.terms->items[i].coefficient < 0) return false;
  return true;
}

bool poly_nonpositive(Poly x) {
  if (!poly_fits(x) || x.constant > 0) return false;
  for (int i = 0; i < x.terms->count; i++)
    if (x.terms->items[i].coefficient > 0) return false;
  return true;
}

bool poly_positive(Poly x) {
  return x.constant > 0 && poly_nonnegative(x);
}

// ---- Arithmetic --------------------------------------------------------------------------------

static bool merge_terms(PolyTerms *out, const PolyTerms *x, int64_t a, const PolyTerms *y,
                        int64_t b) {
  for (int i = 0, j = 0; i < x->count || j < y->count;) {
    int order = i == x->count   ? -1
                : j == y->count ? 1
                                : monomial_compare(&x->items[i], &y->items[j]);
    const PolyTerm *left = order >= 0 ? &x->items[i++] : NULL;
    const PolyTerm *right = order <= 0 ? &y->items[j++] : NULL;
    int64_t sum;
    if (!linear_fits(left ? left->coefficient : 0, a, right ? right->coefficient : 0, b, &sum))
      return false;
    append(out, left ? left : right, sum);
  }
  return true;
}

Poly poly_linear(Arena *arena, Poly x, int64_t a, Poly y, int64_t b) {
  int64_t constant;
  if (!poly_fits(x) || !poly_fits(y) || !linear_fits(x.constant, a, y.constant, b, &constant))
    return POLY_NONE;
  const PolyTerms *p = a ? x.terms : &poly_no_terms, *q = b ? y.terms : &poly_no_terms;
  if (!q->count && (a == 1 || !p->count)) return (Poly){constant, p};
  if (!p->count && b == 1) return (Poly){constant, q};
  PolyTerms *terms = new_terms(arena, p->count + q->count);
  return merge_terms(terms, p, a, q, b) ? poly_of(constant, terms) : POLY_NONE;
}

Poly poly_plus(Poly x, int64_t value) {
  return poly_fits(x) && add_fits(x.constant, value, &x.constant) ? x : POLY_NONE;
}

static bool append_product(PolyTerms *terms, const PolyTerm *a, const PolyTerm *b, int degree) {
  PolyTerm *out = &terms->items[terms->count++];
  return monomial_product(a, b, degree, out) &&
         mul_fits(a->coefficient, b->coefficient, &out->coefficient);
}

Poly poly_times_term(Arena *arena, Poly x, const PolyTerm *term, int degree) {
  if (!poly_fits(x)) return POLY_NONE;
  if (!term->v[0]) return poly_linear(arena, x, term->coefficient, poly_const(0), 0);
  if (!term->coefficient) return poly_const(0);
  PolyTerms *terms = new_terms(arena, x.terms->count + 1);
  for (int i = 0; i < x.terms->count; i++)
    if (!append_product(terms, &x.terms->items[i], term, degree)) return POLY_NONE;
  PolyTerm constant = {.coefficient = x.constant};
  if (x.constant && !append_product(terms, &constant, term, degree)) return POLY_NONE;
  return poly_of(0, terms);
}

Poly poly_product(Arena *arena, Poly x, Poly y, int degree) {
  if (!poly_fits(x) || !poly_fits(y)) return POLY_NONE;
  if (!y.terms->count) return poly_linear(arena, x, y.constant, poly_const(0), 0);
  Poly sum = poly_linear(arena, y, x.constant, poly_const(0), 0);
  for (int i = 0; i < x.terms->count; i++)
    sum = poly_linear(arena, sum, 1, poly_times_term(arena, y, &x.terms->items[i], degree), 1);
  return sum;
}

Poly poly_exact(Arena *arena, Poly x, int64_t divisor) {
  if (!poly_fits(x) || x.constant % divisor) return POLY_NONE;
  if (!x.terms->count) return poly_const(x.constant / divisor);
  PolyTerms *terms = new_terms(arena, x.terms->count);
  for (int i = 0; i < x.terms->count; i++) {
    int64_t coefficient = x.terms->items[i].coefficient;
    if (coefficient % divisor) return POLY_NONE;
    append(terms, &x.terms->items[i], coefficient / divisor);
  }
  return poly_of(x.constant / divisor, terms);
}

// x = y·whole + rest, the quotient rounded down. False where that does not fit.
static bool divide_number(int64_t x, int64_t y, int64_t *whole, int64_t *rest) {
  int64_t taken;
  *whole = floor_div(x, y);
  return mul_fits(*whole, y, &taken) && sub_fits(x, taken, rest);
}

// x = q·y + r for a y of one term. False where that does not fit.
static bool divide_by_term(Arena *arena, Poly x, const PolyTerm *y, Poly *q, Poly *r) {
  int64_t constant = 0, rest = x.constant, whole, left;
  PolyTerms *wholes = new_terms(arena, x.terms->count), *rests = new_terms(arena, x.terms->count);
  if (!y->v[0] && !divide_number(x.constant, y->coefficient, &constant, &rest)) return false;
  for (int i = 0; i < x.terms->count; i++) {
    const PolyTerm *t = &x.terms->items[i];
    PolyTerm part;
    bool divides = monomial_divide(t, y, &part);
    if (!divide_number(divides ? t->coefficient : 0, y->coefficient, &whole, &left)) return false;
    if (divides && !part.v[0])
      constant = whole;
    else
      append(wholes, &part, whole);
    append(rests, t, divides ? left : t->coefficient);
  }
  *q = poly_of(constant, wholes);
  *r = poly_of(rest, rests);
  return true;
}

static void divide_by_lead(Arena *arena, Poly y, Poly *q, Poly *r) {
  const PolyTerm *lead = &y.terms->items[0];
  for (int i = 0; poly_fits(*r) && poly_fits(*q) && i < r->terms->count;) {
    const PolyTerm *term = &r->terms->items[i];
    PolyTerm part;
    part.coefficient = floor_div(term->coefficient, lead->coefficient);
    if (!part.coefficient || !monomial_divide(term, lead, &part)) {
      i++;
      continue;
    }
    *q = poly_linear(arena, *q, 1, poly_of_term(arena, part), 1);
    *r = poly_linear(arena, *r, 1, poly_times_term(arena, y, &part, POLY_DEGREE), -1);
    i += poly_fits(*r) && i < r->terms->count && !monomial_compare(&r->terms->items[i], term);
  }
}

void poly_divide(Arena *arena, Poly x, Poly y, Poly *q, Poly *r) {
  *q = *r = POLY_NONE;
  if (!poly_fits(x) || !poly_fits(y) || poly_is_zero(y)) return;
  PolyTerm lead = poly_term(y, 0);
  *q = poly_const(0);
  *r = x;
  bool fits = true;
  if (!x.terms->count)
    fits = lead.v[0] || divide_number(x.constant, y.constant, &q->constant, &r->constant);
  else if (poly_count(y) == 1)
    fits = divide_by_term(arena, x, &lead, q, r);
  else
    divide_by_lead(arena, y, q, r);
  if (!fits) *q = *r = POLY_NONE;
}
