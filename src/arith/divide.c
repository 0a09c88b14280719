// SPDX-License-Identifier: Apache-2.0
// Divides linear forms by constants, with floors. To divide f by c, write f = c*Q + R digit by
// digit; when the bounds of R are within one multiple of c, the quotient is known. Otherwise try
// each divisor g of c that the digits suggest: f = g*H + L with L within one multiple of g gives
// the quotient H // (c / g). A division that resists becomes an atom.
#include "arith/internal.h"

// Finds the q with q*c <= every value < (q+1)*c.
static bool within_cell(Analyzer *analyzer, const Form *f, int64_t c, int64_t *q) {
  Interval b = interval_meet(form_bounds(analyzer, f), form_assumed_bounds(analyzer, f));
  if (b.low == NO_LOW || b.high == NO_HIGH || b.low > b.high) return false;
  *q = floor_div(b.low, c);
  return *q == floor_div(b.high, c);
}

// f = c * quotient + rest, where `quotient` has the digits whose coefficients c divides.
typedef struct Parts {
  const Form *quotient, *rest;
} Parts;

static Parts split_digits(Analyzer *analyzer, const Form *f, const Digits *digits, int64_t c) {
  Parts parts = {form_const(analyzer, f->type, floor_div(digits->constant, c)),
                 form_const(analyzer, f->type, floor_mod(digits->constant, c))};
  for (int i = 0; i < digits->count; i++) {
    const ArithDigit *d = &digits->items[i];
    bool whole = d->coef % c == 0;
    const Form *part = digit_form(analyzer, f->type, d, whole ? d->coef / c : d->coef);
    if (whole)
      parts.quotient = form_add(analyzer, parts.quotient, part);
    else
      parts.rest = form_add(analyzer, parts.rest, part);
  }
  return parts;
}

static Parts split_terms(Analyzer *analyzer, const Form *f, int64_t c) {
  Parts parts = {form_const(analyzer, f->type, floor_div(f->constant, c)),
                 form_const(analyzer, f->type, floor_mod(f->constant, c))};
  for (int i = 0; i < f->count; i++) {
    Term t = f->terms[i];
    bool whole = t.coef % c == 0;
    const Form *part = form_term(analyzer, f->type, whole ? t.coef / c : t.coef, t.atom);
    if (whole)
      parts.quotient = form_add(analyzer, parts.quotient, part);
    else
      parts.rest = form_add(analyzer, parts.rest, part);
  }
  return parts;
}

// The largest proper divisor of c among gcd(coefficient, c) that is smaller than `below`; 1 without
// one.
static int64_t next_divisor(const Digits *digits, int64_t c, int64_t below) {
  int64_t best = 1;
  for (int i = 0; i < digits->count; i++) {
    int64_t g = gcd_of(digits->items[i].coef, c);
    if (g < below && g > best) best = g;
  }
  return best;
}

static const Form *divide_by_digits(Analyzer *analyzer, const Form *f, int64_t c) {
  const Digits *digits = form_digits(analyzer, f);
  Parts parts = split_digits(analyzer, f, digits, c);
  int64_t q;
  if (!parts.rest || !parts.quotient) return NULL;
  if (within_cell(analyzer, parts.rest, c, &q)) return form_add_const(analyzer, parts.quotient, q);
  for (int64_t g = next_divisor(digits, c, c); g > 1; g = next_divisor(digits, c, g)) {
    Parts high_low = split_digits(analyzer, f, digits, g);
    if (!high_low.rest || !within_cell(analyzer, high_low.rest, g, &q)) continue;
    return form_divide(analyzer, form_add_const(analyzer, high_low.quotient, q), c / g);
  }
  return NULL;
}

// Splits coefficients larger than c where this gives the quotient: (17*i + j) // 16 for i below 2.
// The rest of a coefficient keeps its sign, or is positive when `floors` is set: (2*i - 9*j) // 2
// is i - 5*j for j below 2.
static const Form *divide_reduced(Analyzer *analyzer, const Form *f, int64_t c, bool floors) {
  const Form *quotient = form_const(analyzer, f->type, 0);
  for (int i = 0; i < f->count; i++) {
    int64_t coef = f->terms[i].coef;
    const Form *part =
        form_term(analyzer, f->type, floors ? floor_div(coef, c) : coef / c, f->terms[i].atom);
    quotient = form_add(analyzer, quotient, part);
  }
  if (!quotient || !quotient->count) return NULL;
  int64_t q;
  const Form *rest = form_add_scaled(analyzer, f, quotient, -c);
  if (!rest || !within_cell(analyzer, rest, c, &q)) return NULL;
  return form_add_const(analyzer, quotient, q);
}

static bool has_negative(const Form *f) {
  for (int i = 0; i < f->count; i++)
    if (f->terms[i].coef < 0) return true;
  return false;
}

bool form_fits_type(Analyzer *analyzer, const Form *f) {
  Interval b = form_bounds(analyzer, f);
  if (f && f->type.bits == 32) return b.low >= INT32_MIN && b.high <= INT32_MAX;
  return b.low != NO_LOW && b.high != NO_HIGH;
}

// (B // d + y) // c is (B + d*y) // (d*c).
static const Form *divide_nested(Analyzer *analyzer, const Form *f, int64_t c) {
  Expr *base = NULL;
  int64_t cut, product;
  int at = -1;
  for (int i = 0; i < f->count; i++)
    if (form_split_division(f->terms[i].atom, &base, &cut)) at = at == -1 ? i : -2;
  if (at < 0 || f->terms[at].coef != 1) return NULL;
  form_split_division(f->terms[at].atom, &base, &cut);
  const Form *others = form_sub(analyzer, f, form_term(analyzer, f->type, 1, f->terms[at].atom));
  const Form *sum = form_add_scaled(analyzer, form_of(analyzer, base), others, cut);
  if (!sum || !mul_fits(cut, c, &product)) return NULL;
  if (others->count && !form_fits_type(analyzer, sum)) return NULL;
  return form_divide(analyzer, form_typed(analyzer, sum, f->type), product);
}

static const Form *division_atom(Analyzer *analyzer, const Form *f, int64_t c) {
  Expr *base = form_expr(analyzer, f);
  if (!base || (f->type.bits == 32 && c > INT32_MAX)) return NULL;
  return form_term(analyzer, f->type, 1, form_floor_atom(analyzer, base, c));
}

// When f == r (mod g) for a divisor g of c, subtracting r from f keeps f // c.
static const Form *drop_rest(Analyzer *analyzer, const Form *f, int64_t c) {
  int64_t d, r;
  form_modular(analyzer, f, &d, &r);
  int64_t g = gcd_of(d, c);
  return g > 1 ? form_add_const(analyzer, f, -floor_mod(r, g)) : f;
}

const Form *form_divide(Analyzer *analyzer, const Form *f, int64_t c) {
  int64_t q;
  if (!f || c == 1) return f;
  if (within_cell(analyzer, f, c, &q)) return form_const(analyzer, f->type, q);
  f = drop_rest(analyzer, f, c);
  const Form *result = divide_by_digits(analyzer, f, c);
  if (result) return result;
  Parts parts = split_terms(analyzer, f, c);
  if (!parts.rest || !parts.quotient) return NULL;
  if (parts.quotient->count)
    return form_add(analyzer, parts.quotient, form_divide(analyzer, parts.rest, c));
  result = divide_reduced(analyzer, parts.rest, c, false);
  if (!result && has_negative(parts.rest)) result = divide_reduced(analyzer, parts.rest, c, true);
  if (!result) result = divide_nested(analyzer, parts.rest, c);
  if (!result) result = division_atom(analyzer, parts.rest, c);
  return result ? form_add(analyzer, parts.quotient, result) : NULL;
}

// ---- Division by symbols

enum { MOST_FACTORS = 8 };

// a / b for products of atoms with coefficients; NULL when b does not divide a.
static const Form *divide_term(Analyzer *analyzer, DType type, Term a, Term b) {
  Expr *xs[MOST_FACTORS], *ys[MOST_FACTORS];
  int n = product_factors(a.atom, xs, MOST_FACTORS), m = product_factors(b.atom, ys, MOST_FACTORS);
  if (!n || !m || a.coef % b.coef || b.coef == -1) return NULL;
  for (int j = 0; j < m; j++) {
    int i = 0;
    while (i < n && xs[i] != ys[j]) i++;
    if (i == n) return NULL;
    xs[i] = xs[--n];
  }
  if (!n) return form_const(analyzer, type, a.coef / b.coef);
  return form_term(analyzer, type, a.coef / b.coef, product_of(analyzer, xs, n));
}

static int degree(Expr *atom) {
  Expr *factors[MOST_FACTORS];
  return product_factors(atom, factors, MOST_FACTORS);
}

static Term leading_term(const Form *f) {
  Term best = f->terms[0];
  for (int i = 1; i < f->count; i++)
    if (degree(f->terms[i].atom) > degree(best.atom)) best = f->terms[i];
  return best;
}

// Finds f = quotient * divisor + rest as polynomials.
static Parts divide_polynomials(Analyzer *analyzer, const Form *f, const Form *divisor) {
  enum { MOST_STEPS = 16 };
  Term lead = leading_term(divisor);
  Parts parts = {form_const(analyzer, f->type, 0), f};
  for (int step = 0, i = 0; step < MOST_STEPS && parts.rest && i < parts.rest->count; step++) {
    const Form *q = divide_term(analyzer, f->type, parts.rest->terms[i], lead);
    if (!q) {
      i++;
      continue;
    }
    parts.quotient = form_add(analyzer, parts.quotient, q);
    parts.rest = form_sub(analyzer, parts.rest, form_mul(analyzer, q, divisor));
    i = 0;
  }
  return parts;
}

static bool below(Analyzer *analyzer, const Form *f, const Form *end) {
  return form_nonnegative(analyzer, f) &&
         form_nonnegative(analyzer, form_add_const(analyzer, form_sub(analyzer, end, f), -1));
}

// The n-th candidate for g in divisor = g * over: each factor of the divisor, its coefficient, then
// each product of all factors but one.
static const Form *nth_divisor(Analyzer *analyzer, const Form *divisor, int n) {
  Expr *factors[MOST_FACTORS];
  Term t = divisor->terms[0];
  if (divisor->count != 1 || divisor->constant) return NULL;
  int count = product_factors(t.atom, factors, MOST_FACTORS);
  if (n < count && (count > 1 || t.coef > 1))
    return form_term(analyzer, divisor->type, 1, factors[n]);
  n -= count;
  if (n == 0 && t.coef > 1) return form_const(analyzer, divisor->type, t.coef);
  if (n <= 0 || n > count || count < 3) return NULL;
  factors[n - 1] = factors[count - 1];
  return form_term(analyzer, divisor->type, 1, product_of(analyzer, factors, count - 1));
}

// Splits f into g * quotient + rest.
static Parts split_by(Analyzer *analyzer, const Form *f, const Form *g) {
  int64_t c;
  if (form_is_const(g, &c)) return split_digits(analyzer, f, form_digits(analyzer, f), c);
  return divide_polynomials(analyzer, f, g);
}

// Finds f = g*high + low and divisor = g*over with over > 0 and 0 <= low < g.
bool form_split_by_factor(Analyzer *analyzer, const Form *f, const Form *divisor, const Form **high,
                          const Form **low, const Form **over) {
  for (int n = 0; n <= 2 * MOST_FACTORS; n++) {
    const Form *g = nth_divisor(analyzer, divisor, n);
    if (!g) continue;
    Parts parts = split_by(analyzer, f, g);
    Parts other = split_by(analyzer, divisor, g);
    int64_t c;
    bool found = parts.quotient && parts.rest && parts.quotient->count && other.quotient &&
                 form_is_const(other.rest, &c) && c == 0 && below(analyzer, parts.rest, g);
    if (!found || !form_nonnegative(analyzer, form_add_const(analyzer, other.quotient, -1)))
      continue;
    *high = parts.quotient;
    *low = parts.rest;
    *over = other.quotient;
    return true;
  }
  return false;
}

// The quotient when f - quotient * divisor is proved to be in [0, divisor); NULL otherwise.
const Form *form_divide_by(Analyzer *analyzer, const Form *f, const Form *divisor) {
  int64_t c;
  if (!f || !divisor) return NULL;
  if (form_is_const(divisor, &c)) {
    if (c == 0) return NULL;
    return form_divide(analyzer, c > 0 ? f : form_scale(analyzer, f, -1), c > 0 ? c : -c);
  }
  Parts parts = divide_polynomials(analyzer, f, divisor);
  bool settled = parts.quotient && parts.rest && below(analyzer, parts.rest, divisor);
  return settled ? parts.quotient : NULL;
}

const Form *form_divide_out(Analyzer *analyzer, const Form *f, const Form *divisor,
                            const Form **rest) {
  *rest = f;
  if (divisor->count != 1 || divisor->constant) return form_const(analyzer, f->type, 0);
  Parts parts = divide_polynomials(analyzer, f, divisor);
  if (!parts.quotient || !parts.rest) return form_const(analyzer, f->type, 0);
  *rest = parts.rest;
  return parts.quotient;
}
