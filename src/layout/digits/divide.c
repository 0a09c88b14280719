// SPDX-License-Identifier: Apache-2.0
// Divides forms by constants, with floors, for the normal form (docs/layouts.md, Division).
//
// F // m is Q when F = m·Q + R with 0 <= R < m by the bounds. Digits split at m give Q and R:
//   (16·n + x) // 4, x < 16   =>   4·n + x//4, the rest x % 4
// Where that fails, the digits that do not divide are fused with those that continue them densely,
// and the floor is taken of the fused base:
//   (49·c + 7·h + w) // 16    =>   ⌊B/16⌋, B = 49·c + 7·h + w
//   (x + 3) // 4              =>   ⌊(x + 3)/4⌋
#include "layout/digits/form.h"

// The state of the division of a form F.
typedef struct Division {
  DigitSpace *d;
  int64_t divisor;
  bool floored;
  Digit digits[MAX_DIGITS]; // of F, where its cuts are chains
  int count;
} Division;

static void add_to(DigitSpace *d, const DigitForm **sum, const DigitForm *f) {
  *sum = layout_form_linear(d, *sum, 1, f, 1);
}

// w = divisor·whole + rest. The rest has the sign of w, or is not negative when `floored`.
static int64_t split_weight(const Division *v, int64_t w, int64_t *rest) {
  int64_t whole = v->floored ? floor_div(w, v->divisor) : w / v->divisor;
  *rest = w - whole * v->divisor;
  return whole;
}

// Cuts w·digit at m/|w|, where |w| divides the divisor m. False where the digit cannot be cut
// there.
static bool cut_digit(Division *v, const Digit *digit, const DigitForm **q, const DigitForm **r) {
  Digit low, high;
  int64_t size = digit->weight < 0 ? -digit->weight : digit->weight;
  if (!digit_split(digit, v->divisor / size, &low, &high)) return false;
  high.weight /= v->divisor;
  add_to(v->d, q, layout_form_digit(v->d, &high));
  add_to(v->d, r, layout_form_digit(v->d, &low));
  return true;
}

static void split_digit(Division *v, Digit digit, const DigitForm **q, const DigitForm **r) {
  int64_t m = v->divisor, rest, whole = split_weight(v, digit.weight, &rest);
  int64_t size = rest < 0 ? -rest : rest;
  Digit part = digit;
  if (whole) {
    part.weight = whole;
    add_to(v->d, q, layout_form_digit(v->d, &part));
  }
  if (!rest) return;
  part.weight = rest;
  if (m % size == 0 && m / size < digit.radix && cut_digit(v, &part, q, r)) return;
  add_to(v->d, r, layout_form_digit(v->d, &part));
}

static void split_xors(Division *v, const DigitForm *f, const DigitForm **q, const DigitForm **r) {
  for (int i = 0; i < f->xor_count; i++) {
    int64_t rest, whole = split_weight(v, f->xors[i].coefficient, &rest);
    if (whole) add_to(v->d, q, layout_form_parity(v->d, f->xors[i].mask, whole));
    if (rest) add_to(v->d, r, layout_form_parity(v->d, f->xors[i].mask, rest));
  }
}

// Cuts digit by digit. NULL when the rest does not stay within one multiple of the divisor.
static const DigitForm *divide_evenly(Division *v, const DigitForm *f, bool floored) {
  int64_t m = v->divisor;
  const DigitForm *q = layout_form_const(v->d, floor_div(f->constant, m));
  const DigitForm *r = layout_form_const(v->d, floor_mod(f->constant, m));
  v->floored = floored;
  for (int i = 0; i < v->count; i++) split_digit(v, v->digits[i], &q, &r);
  split_xors(v, f, &q, &r);
  Interval b;
  if (!q || !r || !layout_form_bounds(v->d, r, &b) || floor_div(b.low, m) != floor_div(b.high, m))
    return NULL;
  return layout_form_add_const(v->d, q, floor_div(b.low, m));
}

static bool has_negative(const Division *v, const DigitForm *f) {
  for (int i = 0; i < v->count; i++)
    if (v->digits[i].weight < 0) return true;
  for (int i = 0; i < f->xor_count; i++)
    if (f->xors[i].coefficient < 0) return true;
  return false;
}

// ---- Fusing ------------------------------------------------------------------------------------

static int compare_weights(const Digit *a, const Digit *b) {
  if (a->weight != b->weight) return a->weight < b->weight ? -1 : 1;
  return a->base != b->base ? a->base - b->base : (a->cut > b->cut) - (a->cut < b->cut);
}

static void sort_by_weight(Digit *digits, int count) {
  for (int i = 1; i < count; i++)
    for (int j = i; j && compare_weights(&digits[j], &digits[j - 1]) < 0; j--) {
      Digit t = digits[j];
      digits[j] = digits[j - 1];
      digits[j - 1] = t;
    }
}

// The weight at which a dense run of digits would go on; 0 when it is not dense or too large.
static int64_t dense_end(const Digit *run, int count) {
  int64_t next = count ? run[0].weight : 0;
  for (int i = 0; i < count; i++)
    if (run[i].weight != next || next <= 0 || !mul_fits(next, run[i].radix, &next)) return 0;
  return next;
}

// Collects the digits that the divisor does not divide, and those that continue them densely. The
// quotient of the others is added to *q.
static int fused_run(Division *v, Digit *run, const DigitForm **q) {
  int count = 0;
  bool taken[MAX_DIGITS] = {false};
  for (int i = 0; i < v->count; i++)
    if ((taken[i] = floor_mod(v->digits[i].weight, v->divisor) != 0)) run[count++] = v->digits[i];
  sort_by_weight(run, count);
  for (int64_t next = dense_end(run, count), found = 1; next && found;) {
    found = 0;
    for (int i = 0; i < v->count && !found; i++) {
      if (taken[i] || v->digits[i].weight != next) continue;
      found = taken[i] = true;
      run[count++] = v->digits[i];
      next = dense_end(run, count);
    }
  }
  for (int i = 0; i < v->count; i++) {
    Digit even = v->digits[i];
    even.weight /= v->divisor;
    if (!taken[i]) add_to(v->d, q, layout_form_digit(v->d, &even));
  }
  return count;
}

static int64_t form_gcd(const DigitForm *f, int64_t gcd) {
  for (int i = 0; i < f->count; i++) gcd = gcd_of(gcd, f->terms[i].coefficient);
  for (int i = 0; i < f->xor_count; i++) gcd = gcd_of(gcd, f->xors[i].coefficient);
  return gcd;
}

static const DigitForm *form_exact_quotient(DigitSpace *d, const DigitForm *f, int64_t divisor) {
  DigitForm *out = arena_copy(d->arena, f, sizeof *f);
  FormTerm *terms = arena_copy(d->arena, f->terms, sizeof *terms * (size_t)f->count);
  FormXor *xors = arena_copy(d->arena, f->xors, sizeof *xors * (size_t)f->xor_count);
  for (int i = 0; i < f->count; i++) terms[i].coefficient /= divisor;
  for (int i = 0; i < f->xor_count; i++) xors[i].coefficient /= divisor;
  out->constant = floor_div(f->constant, divisor);
  out->terms = terms;
  out->xors = xors;
  return out;
}

// ⌊f / m⌋ as one floor: of f's base when f is one floor, otherwise of a base for f.
static const DigitForm *floor_of(DigitSpace *d, const DigitForm *f, int64_t m) {
  int64_t g = form_gcd(f, m), constant, offset, cut;
  f = form_exact_quotient(d, f, g);
  m /= g;
  constant = f->constant;
  f = layout_form_add_const(d, f, -constant);
  if (!f) return NULL;
  if (f->count == 1 && !f->xor_count && f->terms[0].coefficient == 1) {
    const FormTerm *t = &f->terms[0];
    if (!mul_fits(constant, t->cut, &offset) || !add_fits(offset, t->offset, &offset) ||
        !mul_fits(t->cut, m, &cut))
      return NULL;
    return layout_form_floor(d, t->base, offset, cut);
  }
  Interval b;
  int64_t extent;
  if (!layout_form_bounds(d, f, &b) || !sub_fits(b.high, b.low, &extent) ||
      extent > INT64_MAX / 4 || !add_fits(constant, b.low, &offset))
    return NULL;
  int base = layout_base_of_form(d, layout_form_add_const(d, f, -b.low), extent + 1);
  return base < 0 ? NULL : layout_form_floor(d, base, offset, m);
}

static const DigitForm *sum_of_run(Division *v, const Digit *run, int count) {
  const DigitForm *sum = layout_form_const(v->d, 0);
  for (int i = 0; i < count; i++) add_to(v->d, &sum, layout_form_digit(v->d, &run[i]));
  return sum;
}

// The largest multiple of m in each term, towards 0; with `whole` only of the terms that divide.
static const DigitForm *even_terms(DigitSpace *d, const DigitForm *f, int64_t m, bool whole) {
  const DigitForm *even = layout_form_const(d, 0);
  for (int i = 0; i < f->count; i++) {
    FormTerm t = f->terms[i];
    int64_t rest = t.coefficient % m;
    if (rest == t.coefficient || (rest && whole)) continue;
    t.coefficient -= rest;
    even = layout_form_linear(d, even, 1, &(DigitForm){.terms = &t, .count = 1}, 1);
  }
  return even;
}

// Divides the even part term by term, and the rest as one floor. With `single` only whole terms are
// even, and the rest must be one term, as in (x%3 + 1)//3 = ⌊(x + 1)/3⌋ - ⌊x/3⌋.
static const DigitForm *divide_terms(DigitSpace *d, const DigitForm *f, int64_t m, bool single) {
  const DigitForm *even = even_terms(d, f, m, single), *odd = layout_form_linear(d, f, 1, even, -1);
  if (!odd || (single && (odd->count != 1 || odd->xor_count))) return NULL;
  if (single && m % odd->terms[0].coefficient) return NULL;
  return layout_form_linear(d, form_exact_quotient(d, even, m), 1, floor_of(d, odd, m), 1);
}

static const DigitForm *divide_fused(Division *v, const DigitForm *f) {
  Digit run[MAX_DIGITS];
  const DigitForm *q = layout_form_const(v->d, 0);
  int count = fused_run(v, run, &q);
  const DigitForm *fused = sum_of_run(v, run, count);
  if (f->xor_count)
    fused = layout_form_linear(v->d, fused, 1,
                               &(DigitForm){.xors = f->xors, .xor_count = f->xor_count}, 1);
  fused = layout_form_add_const(v->d, fused, f->constant);
  if (!fused || !q) return NULL;
  return layout_form_linear(v->d, q, 1, floor_of(v->d, fused, v->divisor), 1);
}

// Whether the weight of largest size that the divisor does not divide is negative.
static bool counts_down(const Division *v) {
  int64_t largest = 0, sign = 0;
  for (int i = 0; i < v->count; i++) {
    int64_t w = v->digits[i].weight;
    if (w % v->divisor == 0 || w == INT64_MIN) continue;
    if ((w < 0 ? -w : w) > largest) {
      largest = w < 0 ? -w : w;
      sign = w;
    }
  }
  return sign < 0;
}

// ⌊F/m⌋ = -⌊(m - 1 - F)/m⌋
static const DigitForm *divide_negated(DigitSpace *d, const DigitForm *f, int64_t m) {
  const DigitForm *up = layout_form_add_const(d, layout_form_times(d, f, -1), m - 1);
  return layout_form_times(d, layout_form_divide(d, up, m), -1);
}

static bool is_one_floor(const DigitForm *f) {
  return f->count == 1 && !f->xor_count && !f->constant && f->terms[0].coefficient == 1;
}

const DigitForm *layout_form_divide(DigitSpace *d, const DigitForm *f, int64_t m) {
  Interval b;
  int64_t cut;
  if (!f || m == INT64_MIN) return NULL;
  if (m < 0) return layout_form_divide(d, layout_form_times(d, f, -1), -m);
  if (m == 1) return f;
  if (is_one_floor(f) && mul_fits(f->terms[0].cut, m, &cut))
    return layout_form_floor(d, f->terms[0].base, f->terms[0].offset, cut);
  if (!layout_form_bounds(d, f, &b)) return NULL;
  int64_t least = floor_div(b.low, m);
  if (least == floor_div(b.high, m)) return layout_form_const(d, least);
  Division v = {.d = d, .divisor = m};
  const DigitForm *plain = f, *q;
  f = layout_form_regroup(d, f);
  if (!layout_form_digits(d, f, v.digits, &v.count)) return divide_terms(d, plain, m, false);
  if ((q = divide_evenly(&v, f, false))) return q;
  if (has_negative(&v, f) && (q = divide_evenly(&v, f, true))) return q;
  if ((q = divide_terms(d, plain, m, true))) return q;
  if (counts_down(&v)) return divide_negated(d, f, m);
  return divide_fused(&v, f);
}

const DigitForm *layout_form_modulo(DigitSpace *d, const DigitForm *f, int64_t m) {
  return layout_form_linear(d, f, 1, layout_form_divide(d, f, m), -m);
}
