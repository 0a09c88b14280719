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

static Poly *new_poly(Arena *arena, int count) {
  Poly *p = arena_take(arena, sizeof *p + sizeof *p->terms * (size_t)count);
  *p = (Poly){0, (PolyTerm *)(p + 1)};
  return p;
}

static void append(Poly *p, const PolyTerm *monomial, int64_t coefficient) {
  if (!coefficient) return;
  p->terms[p->count] = *monomial;
  p->terms[p->count++].coefficient = coefficient;
}

const Poly *poly_of_term(Arena *arena, PolyTerm term) {
  Poly *p = new_poly(arena, 1);
  append(p, &term, term.coefficient);
  return p;
}

const Poly *poly_const(Arena *arena, int64_t value) {
  static const PolyTerm minus_one = {.coefficient = -1}, one = {.coefficient = 1};
  static const Poly small[] = {{1, (PolyTerm *)&minus_one}, {0, NULL}, {1, (PolyTerm *)&one}};
  if (value >= -1 && value <= 1) return &small[value + 1];
  return poly_of_term(arena, (PolyTerm){.coefficient = value});
}

const Poly *poly_variable(Arena *arena, int variable) {
  return poly_of_term(arena, (PolyTerm){.coefficient = 1, .v = {(uint16_t)(variable + 1)}});
}

// ---- Questions ---------------------------------------------------------------------------------

bool poly_same(const Poly *x, const Poly *y) {
  if (!x || !y || x->count != y->count) return false;
  if (x == y) return true;
  for (int i = 0; i < x->count; i++)
    if (x->terms[i].coefficient != y->terms[i].coefficient ||
        monomial_compare(&x->terms[i], &y->terms[i]))
      return false;
  return true;
}

bool poly_is_const(const Poly *x, int64_t *value) {
  if (!x || x->count > 1 || (x->count && x->terms[0].v[0])) return false;
  *value = x->count ? x->terms[0].coefficient : 0;
  return true;
}

bool poly_nonnegative(const Poly *x) {
  for (int i = 0; x && i < x->count; i++)
    if (x->terms[i].coefficient < 0) return false;
  return x != NULL;
}

static bool is_one(const Poly *x) {
  return x->count == 1 && !x->terms[0].v[0] && x->terms[0].coefficient == 1;
}

// ---- Arithmetic --------------------------------------------------------------------------------

static bool combine(int64_t x, int64_t a, int64_t y, int64_t b, int64_t *out) {
  int64_t p, q;
  return mul_fits(x, a, &p) && mul_fits(y, b, &q) && add_fits(p, q, out);
}

const Poly *poly_linear(Arena *arena, const Poly *x, int64_t a, const Poly *y, int64_t b) {
  if (!x || !y) return NULL;
  if (a == 1 && !(b && y->count)) return x;
  if (b == 1 && !(a && x->count)) return y;
  int64_t p, q, sum;
  if (poly_is_const(x, &p) && poly_is_const(y, &q))
    return combine(p, a, q, b, &sum) ? poly_const(arena, sum) : NULL;
  Poly *out = new_poly(arena, x->count + y->count);
  for (int i = 0, j = 0; i < x->count || j < y->count;) {
    int order = i == x->count   ? -1
                : j == y->count ? 1
                                : monomial_compare(&x->terms[i], &y->terms[j]);
    const PolyTerm *left = order >= 0 ? &x->terms[i++] : NULL;
    const PolyTerm *right = order <= 0 ? &y->terms[j++] : NULL;
    if (!combine(left ? left->coefficient : 0, a, right ? right->coefficient : 0, b, &sum))
      return NULL;
    append(out, left ? left : right, sum);
  }
  return out;
}

const Poly *poly_times_term(Arena *arena, const Poly *x, const PolyTerm *term, int degree) {
  Poly *out = new_poly(arena, x->count);
  for (int i = 0; i < x->count; i++)
    if (!monomial_product(&x->terms[i], term, degree, &out->terms[i]) ||
        !mul_fits(x->terms[i].coefficient, term->coefficient, &out->terms[i].coefficient))
      return NULL;
  out->count = term->coefficient ? x->count : 0;
  return out;
}

const Poly *poly_product(Arena *arena, const Poly *x, const Poly *y, int degree) {
  if (!x || !y) return NULL;
  if (!x->count || is_one(y)) return x;
  if (!y->count || is_one(x)) return y;
  const Poly *sum = poly_const(arena, 0);
  for (int i = 0; i < y->count && sum; i++)
    sum = poly_linear(arena, sum, 1, poly_times_term(arena, x, &y->terms[i], degree), 1);
  return sum;
}

const Poly *poly_exact(Arena *arena, const Poly *x, int64_t divisor) {
  if (!x) return NULL;
  Poly *out = new_poly(arena, x->count);
  for (int i = 0; i < x->count; i++) {
    if (x->terms[i].coefficient % divisor) return NULL;
    append(out, &x->terms[i], x->terms[i].coefficient / divisor);
  }
  return out;
}

// x = q·y + r for a y of one term.
static void divide_by_term(Arena *arena, const Poly *x, const PolyTerm *y, const Poly **q,
                           const Poly **r) {
  Poly *wholes = new_poly(arena, x->count), *rests = new_poly(arena, x->count);
  for (int i = 0; i < x->count; i++) {
    const PolyTerm *t = &x->terms[i];
    PolyTerm part;
    bool divides = monomial_divide(t, y, &part);
    int64_t whole = divides ? floor_div(t->coefficient, y->coefficient) : 0, taken, rest;
    if (!mul_fits(whole, y->coefficient, &taken) || !sub_fits(t->coefficient, taken, &rest)) {
      *q = *r = NULL;
      return;
    }
    append(wholes, &part, whole);
    append(rests, t, rest);
  }
  *q = wholes;
  *r = rests;
}

void poly_divide(Arena *arena, const Poly *x, const Poly *y, const Poly **q, const Poly **r) {
  *q = poly_const(arena, 0);
  *r = x;
  if (!x || !y || !y->count) {
    *q = *r = NULL;
    return;
  }
  const PolyTerm *lead = &y->terms[0];
  if (y->count == 1) return divide_by_term(arena, x, lead, q, r);
  for (int i = 0; *r && *q && i < (*r)->count;) {
    const PolyTerm *term = &(*r)->terms[i];
    PolyTerm part;
    part.coefficient = floor_div(term->coefficient, lead->coefficient);
    if (!part.coefficient || !monomial_divide(term, lead, &part)) {
      i++;
      continue;
    }
    *q = poly_linear(arena, *q, 1, poly_of_term(arena, part), 1);
    *r = poly_linear(arena, *r, 1, poly_times_term(arena, y, &part, POLY_DEGREE), -1);
    i += *r && i < (*r)->count && !monomial_compare(&(*r)->terms[i], term);
  }
}
